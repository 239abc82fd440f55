// Random: a small fast generator for jitter, victims and samples. Never for secrets. Not thread-safe.
#pragma once

#include <cstdint>

namespace sluice::base {

// SplitMix64 (Steele, Lea, Flood 2014): one add and a mix a number.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  // Of the system: differs between processes and machines. Any thread.
  static uint64_t SystemSeed();
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  // In [0, bound); 0 for bound 0.
  uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_;
};

}  // namespace sluice::base
