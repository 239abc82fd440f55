// MessageField: one field of a call's first request message, read from the wire: no protobuf library, no copy of the
// message, and of what lies beside the field only tags and lengths.
//
//   00 0000001a | 0a 03 626f62 | 1a 05  08 07 12 01 61 | ...      path {3, 1}: the varint 7
//   flag length | field 1      | field 3 { 1: 7, 2: "a" }
//
// One pass over the bytes with a stack of the ends of the messages it is in, at most kFieldDepthMax. As protobuf
// merges, so does the pass: the last occurrence of the field wins, over all occurrences of the messages that it lies in
// ("Last One Wins", protobuf.dev/programming-guides/encoding). Cost: O(bytes looked at), whatever they are.
//
// Errors are kinds of result. Thread safety: plain functions of their arguments; nothing suspends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/slice.h"
#include "proxy/options.h"

namespace sluice::proxy {

// The compressed flag and the length before each message (gRPC over HTTP/2, "Length-Prefixed-Message").
inline constexpr size_t kMessagePrefixBytes = 5;
// Groups inside groups that are skipped; deeper ones are malformed. Protobuf's own limit on nesting.
inline constexpr size_t kGroupDepthMax = 100;

struct FieldValue {
  enum class Kind : uint8_t {
    kFound,
    kAbsent,      // not there: its default value, so the key is the same for all calls without it
    kMalformed,   // no protobuf message, as far as it was read
    kCompressed,  // the message is compressed, and is not unpacked here
    kTruncated,   // not in the part looked at, which is not all: bytes_max, or bytes still to come
  };
  Kind kind = Kind::kAbsent;
  // More bytes of the call would change nothing: the message, or bytes_max of it, was there.
  bool complete = false;
  // kFound: a length-delimited field, whose value is bytes(); else a varint or fixed one, whose value is `number`.
  bool delimited = false;
  uint64_t number = 0;

  // Valid as long as this object and the message that was read.
  std::string_view bytes() const { return joined.empty() ? view : std::string_view(joined); }
  // There is something to hash; else (kMalformed, kCompressed) the caller chooses at random.
  bool HasKey() const { return kind != Kind::kMalformed && kind != Kind::kCompressed; }

  std::string_view view;  // within one piece
  std::string joined;     // a copy of a value that lies in several
};

// Reads the field that `numbers` names (1..kFieldDepthMax of them, from the message down) in `message`: the bytes of a
// request so far, in pieces, from the prefix on; what follows the first message is not looked at. Of the message only
// the first `bytes_max` bytes are: a value that ends beyond them is not found, one before them counts. A field of any
// wire type but a group counts, for its type is not known here; on the way down only length-delimited ones.
FieldValue ReadField(std::span<const base::Slice> message, std::span<const uint32_t> numbers, size_t bytes_max);

// How many bytes of a request ReadField wants to see before its result is complete: kMessagePrefixBytes until the
// prefix is there, then at most kMessagePrefixBytes + bytes_max.
size_t FieldBytesWanted(std::span<const base::Slice> message, size_t bytes_max);

// The key: of a number's value or of the bytes. Zero, no bytes, kAbsent and kTruncated have one key: a default that was
// written out and one that was left out are the same message. Only for values with HasKey().
uint64_t HashField(const FieldValue& value, uint64_t seed);
// As base::XxHash64 hashes a header with this value: the bytes, or a number's decimal digits. What has one key above
// has that of an empty header.
uint64_t XxHashField(const FieldValue& value);

// Where the field stands in the messages of the method at `path` ("/pkg.Service/Get"), or null. O(log methods).
const MethodField* FindMethodField(const HashBy& hash_by, std::string_view path);

}  // namespace sluice::proxy
