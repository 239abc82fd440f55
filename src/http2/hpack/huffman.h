// The Huffman code of RFC 7541 Appendix B.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

// Bytes that HuffmanEncode() writes for `text`.
size_t HuffmanSize(std::string_view text);
// Returns the end of what was written.
uint8_t* HuffmanEncode(std::string_view text, uint8_t* out);

// An upper bound of the decoded size: the shortest code has 5 bits.
constexpr size_t HuffmanDecodedMax(size_t bytes) { return bytes * 8 / 5; }
// Decodes to `out`, which has room for HuffmanDecodedMax(size). Returns the end of what was written; null if
// the code holds EOS, or the padding is longer than 7 bits or not all ones (RFC 7541 5.2).
char* HuffmanDecode(const uint8_t* code, size_t size, char* out);

}  // namespace sluice::http2
