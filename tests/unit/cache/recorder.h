// Recorder: a deleter that remembers what was let go and why; values are numbers. For one thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "cache/clock_cache.h"

namespace sluice::cache {

inline void* ValueOf(uint64_t number) { return reinterpret_cast<void*>(static_cast<uintptr_t>(number)); }
inline uint64_t NumberOf(void* value) { return reinterpret_cast<uintptr_t>(value); }

// Well spread, as the callers' hashes are.
inline Key128 KeyOf(uint64_t number) {
  auto mix = [](uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
  };
  return {mix(number * 2 + 1), mix(number * 2 + 2 + (uint64_t{1} << 60))};
}

struct Recorder {
  std::vector<std::pair<uint64_t, Cause>> freed;

  static void Delete(void* value, Cause cause, void* context) {
    static_cast<Recorder*>(context)->freed.emplace_back(NumberOf(value), cause);
  }
  bool Has(uint64_t number, Cause cause) const {
    for (const auto& one : freed) {
      if (one == std::pair(number, cause)) return true;
    }
    return false;
  }
  bool Has(uint64_t number) const {
    for (const auto& one : freed) {
      if (one.first == number) return true;
    }
    return false;
  }
};

// A cache of `slots` slots (a power of two, at least 8) in one shard, where each entry of charge 100 may have one.
inline ClockCacheOptions SmallOptions(size_t slots) {
  ClockCacheOptions options;
  options.entry_charge_expected = 100;
  options.capacity = slots * 100 * 6 / 10;
  options.shards = 1;
  options.doorkeeper = false;
  return options;
}

}  // namespace sluice::cache
