// Hash: well mixed 64-bit and 128-bit hashes by xxHash (XXH3). Seeded, so that a client that does not know the
// seed cannot choose colliding keys.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::base {

// Stable across machines and versions of this program: the ring's golden file depends on it.
uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);
// Of an integer, well mixed.
uint64_t Hash64(uint64_t value, uint64_t seed);
// XXH64 with seed 0: what Envoy and gRPC hash keys and ring points by (gRFC A42). Not seeded, so a client can choose
// its value.
uint64_t XxHash64(std::string_view bytes);

struct Hash128 {
  uint64_t hi = 0, lo = 0;
  bool operator==(const Hash128&) const = default;
};

// 128-bit hashes under a secret of this object's own, drawn from the system: no two processes agree on a value, so it
// is for tables in memory only. Not a MAC: a lookup compares the whole key. Immutable, so any thread may use it.
class SecretHash {
 public:
  SecretHash();
  Hash128 operator()(std::string_view bytes) const;

 private:
  std::array<uint8_t, 192> secret_;
};

}  // namespace sluice::base
