// Spill: which share of a cluster's keys goes to endpoints of which tier (tiers.h), by the weight that is in good
// health. The first tier carries all keys while it can; the next one takes what is too much, and so on.
//
//   hash2(key)   0 ------------------ until(0) ------------ until(1) --- 1
//                  the first tier's            the second's       ...
//
// A key's place on this line never changes, so the keys that are spilled are a stable set: more spill adds to it, less
// spill takes from it, and in good health it is empty.
//
// Hysteresis: the share changes in steps of kStep at least, or to nothing and all; at once where keys must leave, after
// kHold where they may come home, so an endpoint that comes and goes does not move keys to and fro.
//
// Thread safety: Update by one thread at a time; TierOf by any, a few loads of a line that is rarely written.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/clock.h"
#include "base/hash.h"
#include "upstream/options.h"

namespace sluice::upstream {

class Spill {
 public:
  static constexpr double kStep = 0.1;
  static constexpr base::Nanos kHold = std::chrono::seconds(5);

  struct Weight {
    double all = 0;      // of the endpoints in the list; 0: the tier has none
    double healthy = 0;  // of those that could take calls
    bool operator==(const Weight&) const = default;
  };
  using Weights = std::array<Weight, kTiersMax>;

  Spill();

  // By `weights` as they are now. True: keys move.
  bool Update(const Weights& weights, const SpillOptions& options, base::TimePoint now);
  // The place in `tiers`, in ascending order of their ids and not empty, of the one that takes the key.
  template <typename Tiers>
  size_t TierOf(uint64_t key, const Tiers& tiers) const {
    // Another hash than that of shares (Endpoint::Admits): the keys that an endpoint takes first as it warms shall not
    // be those that spill last.
    constexpr uint64_t kSeed = 0x7370696c6c;
    const auto place = static_cast<uint32_t>(base::Hash64(key, kSeed) >> 33);
    for (size_t i = 0; i + 1 < tiers.size(); ++i) {
      if (place < until_[tiers[i].id].load(std::memory_order_relaxed)) return i;
    }
    return tiers.size() - 1;
  }
  // The share of the keys that the tier takes, 0..1.
  double ShareOf(size_t id) const;

 private:
  static constexpr uint32_t kAll = uint32_t{1} << 31;

  // Of the keys that come to a tier, the share that it passes on.
  struct Level {
    double spilled = 0;
    double most = 0;                             // wanted since `lower_since`
    base::TimePoint lower_since = base::kNever;  // less has been wanted
    void Want(double target, base::TimePoint now);
  };

  std::array<Level, kTiersMax> levels_;
  std::array<std::atomic<uint32_t>, kTiersMax> until_;
};

}  // namespace sluice::upstream
