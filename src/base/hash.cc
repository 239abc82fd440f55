#include "base/hash.h"

#define XXH_INLINE_ALL
#include <unistd.h>
#include <xxhash.h>

#include "base/check.h"

namespace sluice::base {

uint64_t Hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

uint64_t Hash64(uint64_t value, uint64_t seed) {
  // Little endian, so that big endian machines build the same ring.
  unsigned char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  return XXH3_64bits_withSeed(bytes, sizeof(bytes), seed);
}

uint64_t XxHash64(std::string_view bytes) { return XXH64(bytes.data(), bytes.size(), 0); }

SecretHash::SecretHash() {
  static_assert(sizeof(secret_) >= XXH3_SECRET_SIZE_MIN);
  SLUICE_CHECK(getentropy(secret_.data(), secret_.size()) == 0);
}

Hash128 SecretHash::operator()(std::string_view bytes) const {
  const XXH128_hash_t hash = XXH3_128bits_withSecret(bytes.data(), bytes.size(), secret_.data(), secret_.size());
  return {hash.high64, hash.low64};
}

}  // namespace sluice::base
