#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace sluice::base {

uint64_t Hash64(std::string_view bytes, uint64_t seed) { return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed); }

uint64_t Hash64(uint64_t value, uint64_t seed) {
  // Little endian, so that big endian machines build the same ring.
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  return XXH3_64bits_withSeed(bytes, sizeof(bytes), seed);
}

}  // namespace sluice::base
