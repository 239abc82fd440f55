// The shape of a ClockCache, by its options: how many shards, how many slots in each, the largest entry.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "cache/clock_types.h"

namespace sluice::cache {

// One entry may take an eighth of a shard: a larger one would empty it for its own sake.
inline constexpr size_t kShardPartMax = 8;

// A power of two.
inline size_t ShardsFor(const ClockCacheOptions& options) {
  constexpr size_t kShardsMax = 64;
  constexpr size_t kShardBytesMin = 32 << 20;
  if (options.shards != 0) return std::min(kShardsMax, std::bit_ceil<size_t>(options.shards));
  return std::min(kShardsMax, std::bit_floor(std::max<size_t>(1, options.capacity / kShardBytesMin)));
}

// Of each shard, a power of two: a load of 0.35 to 0.7 when every entry has the expected charge.
inline size_t SlotsFor(const ClockCacheOptions& options) {
  constexpr size_t kSlotsMin = 8;
  const double capacity = static_cast<double>(options.capacity / ShardsFor(options));
  const double needed = capacity / (0.7 * static_cast<double>(std::max<size_t>(1, options.entry_charge_expected)));
  return std::max(kSlotsMin, std::bit_ceil(static_cast<size_t>(needed) + 1));
}

// The largest charge that is taken. Bytes.
inline size_t EntryChargeMax(const ClockCacheOptions& options) {
  return options.capacity / ShardsFor(options) / kShardPartMax;
}

}  // namespace sluice::cache
