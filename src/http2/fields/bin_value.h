// Values of fields whose name ends in "-bin": base64 of bytes (gRPC over HTTP/2, "Binary-Header").
//
// Senders pad or do not, and join values with commas; receivers differ in what they take, and some end the whole
// connection at a value that they cannot decode. So there is one spelling that the proxy passes on: a field for each
// value, without padding, the unused bits of the last character 0. Text in that spelling is equal where the bytes are.
//
// Any thread; nothing here suspends or keeps its arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::http2 {

// The field's values are bytes. The name "-bin" alone is such a name, though no gRPC application can give it.
inline bool IsBinName(std::string_view name) { return name.ends_with("-bin"); }

enum class BinForm : uint8_t {
  kCanonical,  // one value in the one spelling; the empty value too
  kOther,      // decodes: padded, unused bits set, or several values with commas between them
  kBroken,     // one of its values does not decode
};
// The form of a field's whole value, which may be a list.
BinForm FormOfBin(std::string_view value);

// The bytes of one value. None: another character than A-Z a-z 0-9 + /, wrong padding, or a length that no bytes have.
std::optional<std::string> DecodeBin(std::string_view value);
// Bytes in the one spelling.
std::string EncodeBin(std::string_view bytes);
// One value in the one spelling, for what is compared with values of requests as text. None: it does not decode.
std::optional<std::string> CanonicalBin(std::string_view value);

// Takes the first value off a list with commas; blanks around the value go. `*list` is what follows the comma,
// `*more` whether there was one.
std::string_view TakeBinMember(std::string_view* list, bool* more);

}  // namespace sluice::http2
