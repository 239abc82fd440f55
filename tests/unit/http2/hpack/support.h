// Helpers of the HPACK tests: hex, field lists as pairs, and a one-call encode.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http2/hpack/decoder.h"
#include "http2/hpack/encoder.h"

namespace sluice::http2 {

using Pairs = std::vector<std::pair<std::string, std::string>>;

// Hex digits, spaces between them ignored.
inline std::string FromHex(std::string_view hex) {
  std::string bytes;
  int digits = 0, value = 0;
  for (char c : hex) {
    if (c == ' ') continue;
    value = value * 16 + (c <= '9' ? c - '0' : c - 'a' + 10);
    if (++digits % 2 == 0) bytes.push_back(static_cast<char>(std::exchange(value, 0)));
  }
  return bytes;
}

inline std::string ToHex(std::string_view bytes) {
  std::string hex;
  for (unsigned char c : bytes) {
    hex.push_back("0123456789abcdef"[c >> 4]);
    hex.push_back("0123456789abcdef"[c & 15]);
  }
  return hex;
}

inline Pairs PairsOf(const HeaderList& list) {
  Pairs pairs;
  for (const Field* field : list) pairs.emplace_back(field->name(), field->value());
  return pairs;
}

inline std::string EncodeToString(HpackEncoder& encoder, const HeaderList& list) {
  std::string block(encoder.BytesMax(list), '\0');
  block.resize(encoder.Encode(list, reinterpret_cast<uint8_t*>(block.data())));
  return block;
}

}  // namespace sluice::http2
