// Integers with a prefix (RFC 7541 5.1).
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::http2 {

// The bytes of an integer below 2^32 with the shortest prefix we use.
inline constexpr size_t kIntegerBytesMax = 6;

// Reads an integer whose first byte, *p, has `prefix_bits` bits of it. Moves p behind it. False if the input
// ends first, or the value is above 2^32 - 1 or spelled with more than five bytes after the first: a peer
// that pads with zeros for ever gets an error, not our time (RFC 7541 5.1, last paragraph).
inline bool ReadInteger(const uint8_t*& p, const uint8_t* end, int prefix_bits, uint32_t& value) {
  const uint32_t mask = (1u << prefix_bits) - 1;
  value = *p++ & mask;
  if (value < mask) return true;
  uint64_t sum = value;
  for (int shift = 0; shift <= 28; shift += 7) {
    if (p == end) return false;
    const uint8_t byte = *p++;
    sum += uint64_t{byte & 0x7fu} << shift;
    if ((byte & 0x80) != 0) continue;
    value = static_cast<uint32_t>(sum);
    return sum <= UINT32_MAX;
  }
  return false;
}

// Writes `value` below `flags`, which has the bits above the prefix. Returns the end of what was written.
inline uint8_t* WriteInteger(uint8_t* p, uint8_t flags, int prefix_bits, size_t value) {
  const size_t mask = (size_t{1} << prefix_bits) - 1;
  if (value < mask) {
    *p++ = static_cast<uint8_t>(flags | value);
    return p;
  }
  *p++ = static_cast<uint8_t>(flags | mask);
  for (value -= mask; value >= 0x80; value >>= 7) *p++ = static_cast<uint8_t>(value | 0x80);
  *p++ = static_cast<uint8_t>(value);
  return p;
}

}  // namespace sluice::http2
