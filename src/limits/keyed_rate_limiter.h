// KeyedRateLimiter: a RateLimiter for each client key, in a table of bounded size. docs/token-bucket.md
//
// Set-associative: a key's hash chooses a set of about kWays places, each set has a small mutex and finds a key by
// looking at all its places. A new key takes a free place; else that of the key that was asked for longest ago among
// those not in use (no waiter, no token out: only the table points to the limiter). Where all are in
// use there is no place.
//
// An evicted key must not come back with a full bucket, nor may a client get a full bucket each time by taking another
// name. So a set remembers the largest debt that it has evicted, as the instant at which the last of its evicted
// buckets would have been full again (thus it decays at the rate), and a new key of that set starts with that debt. A
// place in a set therefore gives at most burst + rate x time, whatever the keys that have it; the table
// keys_max times that.
//
// Costs: a lock and a look at the tags for each Get. Memory: kBytesPerKey for a key that is kept, and about 5 bytes a
// key of keys_max for the sets, whether used or not. Any thread; never suspends.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "limits/options.h"
#include "limits/rate_limiter.h"

namespace sluice::limits {

class KeyedRateLimiter {
 public:
  // Limits each key by `each`. keys_max: 1..10^7.
  KeyedRateLimiter(const RateOptions& each, uint32_t keys_max);
  KeyedRateLimiter(const KeyedRateLimiter&) = delete;
  KeyedRateLimiter& operator=(const KeyedRateLimiter&) = delete;
  // Holders of a limiter keep it.
  ~KeyedRateLimiter();

  // The key's limiter, kept or new. `key_hash`: well mixed, by a seed the client does not know; two keys of one hash
  // share a limiter. Null: no room for another key, refuse with kTableFull. Not enabled: one that lets all go. `now`
  // may go back.
  std::shared_ptr<RateLimiter> Get(uint64_t key_hash, base::TimePoint now);

  // For keys that are there and new ones. A change of `capped` gives each key a new limiter that goes on from the level
  // of its old one; calls in the old one stay there until they end. Not enabled: all waiters go, the table is emptied.
  void Configure(const RateOptions& each, base::TimePoint now);

  // What another process's table goes on from. Not of tokens that are out: such a client may have as many calls more
  // until those of the other process have ended.
  struct Debt {
    uint64_t key_hash = 0;
    uint64_t missing = 0;  // as in RateLimiter::Level
  };
  // What a set remembers of evicted keys.
  struct Evicted {
    uint32_t set = 0;
    base::TimePoint full_at;
  };
  struct Debts {
    std::vector<Debt> keys;  // of those that are not full
    uint32_t sets = 0;       // Evicted says something only to a table of as many
    std::vector<Evicted> evicted;
    size_t waiting = 0;  // calls, of all keys
  };
  Debts DebtsAt(base::TimePoint now);
  // Before any call. What does not fit the table is left out.
  void Resume(const Debt& debt, base::TimePoint now);
  void Resume(uint32_t sets, const Evicted& evicted);

  // There is a limit.
  bool enabled() const { return on_.load(std::memory_order_relaxed); }
  // Approximate while others work.
  size_t keys() const { return keys_.load(std::memory_order_relaxed); }
  uint64_t evictions() const { return evictions_.load(std::memory_order_relaxed); }
  uint64_t refusals() const { return refusals_.load(std::memory_order_relaxed); }  // for want of a place

  static constexpr uint32_t kWays = 16;
  static const size_t kBytesPerKey;  // of a kept key, all in all

 private:
  struct Place {
    uint64_t key = 0;
    uint64_t used = 0;  // the set's count of Gets when it was last asked for
    std::shared_ptr<RateLimiter> limiter;
  };
  struct Set {
    std::mutex mutex;
    // Under mutex:
    std::vector<Place> places;  // grows up to the set's ways
    uint64_t gets = 0;
    base::TimePoint full_at = base::TimePoint::min();  // when the last evicted bucket would have been full again
  };

  Set& SetOf(uint64_t key_hash, uint32_t& ways);
  // Under the set's mutex: the place for a new key, or null.
  Place* FindPlace(Set& set, uint32_t ways, base::TimePoint now);
  RateOptions options() const;

  const uint32_t keys_max_;
  const uint32_t sets_count_;
  const std::unique_ptr<Set[]> sets_;
  const std::shared_ptr<RateLimiter> unlimited_;
  std::atomic<bool> on_;
  std::atomic<size_t> keys_{0};
  std::atomic<uint64_t> evictions_{0};
  std::atomic<uint64_t> refusals_{0};
  std::mutex configuring_;            // Configure takes turns; before options_mutex_ and the sets' mutexes
  mutable std::mutex options_mutex_;  // after a set's mutex
  RateOptions each_;                  // under options_mutex_
};

}  // namespace sluice::limits
