// Hash: well mixed 64-bit hashes by xxHash (XXH3). Seeded, so that a client who does not know the seed cannot aim.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::base {

// Stable across machines and versions of this program: the ring's golden file depends on it.
uint64_t Hash64(std::string_view bytes, uint64_t seed = 0);
// Of an integer, well mixed.
uint64_t Hash64(uint64_t value, uint64_t seed);

}  // namespace sluice::base
