// The table of KeyedRateLimiter: look up, take a place, evict, reconfigure.
#include "limits/keyed_rate_limiter.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace sluice::limits {

// A place, the limiter, the counters of make_shared, and the allocator's own words and rounding.
const size_t KeyedRateLimiter::kBytesPerKey = sizeof(Place) + sizeof(RateLimiter) + 16 + 24;

KeyedRateLimiter::KeyedRateLimiter(const RateOptions& each, uint32_t keys_max)
    : keys_max_(keys_max),
      sets_count_(std::max(1u, keys_max / kWays)),
      sets_(std::make_unique<Set[]>(sets_count_)),
      unlimited_(std::make_shared<RateLimiter>(RateOptions{}, base::TimePoint{})),
      on_(each.enabled()),
      each_(each) {
  SLUICE_CHECK(keys_max > 0 && keys_max <= 10'000'000);
}

KeyedRateLimiter::~KeyedRateLimiter() = default;

RateOptions KeyedRateLimiter::options() const {
  std::lock_guard lock(options_mutex_);
  return each_;
}

KeyedRateLimiter::Set& KeyedRateLimiter::SetOf(uint64_t key_hash, uint32_t& ways) {
  __extension__ typedef unsigned __int128 Wide;
  const auto index = static_cast<uint32_t>((Wide{key_hash} * sets_count_) >> 64);
  ways = keys_max_ / sets_count_ + (index < keys_max_ % sets_count_ ? 1 : 0);  // together exactly keys_max_
  return sets_[index];
}

std::shared_ptr<RateLimiter> KeyedRateLimiter::Get(uint64_t key_hash, base::TimePoint now) {
  if (!on_.load(std::memory_order_relaxed)) return unlimited_;
  uint32_t ways = 0;
  Set& set = SetOf(key_hash, ways);
  std::shared_ptr<RateLimiter> evicted;  // destroyed after the lock
  std::lock_guard lock(set.mutex);
  ++set.gets;
  for (Place& place : set.places) {
    if (place.key == key_hash && place.limiter != nullptr) {
      place.used = set.gets;
      return place.limiter;
    }
  }
  const RateOptions each = options();
  if (!each.enabled()) return unlimited_;
  Place* place = FindPlace(set, ways, now);
  if (place == nullptr) {
    refusals_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  evicted = std::move(place->limiter);
  place->key = key_hash;
  place->used = set.gets;
  place->limiter = std::make_shared<RateLimiter>(each, now, set.full_at, /*debt=*/true);
  return place->limiter;
}

KeyedRateLimiter::Place* KeyedRateLimiter::FindPlace(Set& set, uint32_t ways, base::TimePoint now) {
  if (set.places.size() < ways) {
    keys_.fetch_add(1, std::memory_order_relaxed);
    // Doubling could pass `ways`: a set's memory is bounded too.
    if (set.places.size() == set.places.capacity()) {
      set.places.reserve(std::min<size_t>(ways, std::max<size_t>(2, 2 * set.places.size())));
    }
    return &set.places.emplace_back();
  }
  Place* oldest = nullptr;
  for (Place& place : set.places) {
    // 1: only this table points to it, and another pointer is given out under the set's mutex only.
    if (place.limiter.use_count() == 1 && (oldest == nullptr || place.used < oldest->used)) oldest = &place;
  }
  if (oldest == nullptr) return nullptr;
  // The copy reads, by a read-modify-write, the count that the last user lowered: what it did to the bucket is seen.
  const std::shared_ptr<RateLimiter> limiter = oldest->limiter;
  set.full_at = std::max(set.full_at, limiter->FullAt(now));
  evictions_.fetch_add(1, std::memory_order_relaxed);
  return oldest;
}

namespace {

// A debt is in tokens; `full_at` says it at the rate `before`. When it will have been paid at the rate `after`.
base::TimePoint AtRate(base::TimePoint full_at, base::TimePoint now, double before, double after) {
  if (full_at <= now) return full_at;
  const std::chrono::duration<double> seconds = (full_at - now) * (before / after);
  const std::chrono::duration<double> most = std::chrono::hours(24 * 365);
  return now + std::chrono::duration_cast<base::Nanos>(std::min(seconds, most));
}

}  // namespace

void KeyedRateLimiter::Configure(const RateOptions& each, base::TimePoint now) {
  std::lock_guard turn(configuring_);
  const RateOptions before = options();
  {
    // First: a limiter that is made from now on is made by these; those made before are found below.
    std::lock_guard lock(options_mutex_);
    each_ = each;
  }
  on_.store(each.enabled(), std::memory_order_relaxed);
  for (uint32_t i = 0; i < sets_count_; ++i) {
    Set& set = sets_[i];
    std::vector<std::shared_ptr<RateLimiter>> old;  // told outside of the set's lock: they wake tasks
    {
      std::lock_guard lock(set.mutex);
      if (each.enabled() && before.enabled()) set.full_at = AtRate(set.full_at, now, before.rate, each.rate);
      for (Place& place : set.places) {
        old.push_back(place.limiter);
        if (each.enabled() && !place.limiter->CanBecome(each)) {
          const base::TimePoint full_at = AtRate(place.limiter->FullAt(now), now, before.rate, each.rate);
          place.limiter = std::make_shared<RateLimiter>(each, now, full_at);
        }
      }
      if (!each.enabled()) {
        keys_.fetch_sub(set.places.size(), std::memory_order_relaxed);
        set.places = {};
        set.full_at = base::TimePoint::min();
      }
    }
    for (const auto& limiter : old) {
      RateOptions now_each = each;
      now_each.capped = limiter->capped();  // calls in one that was replaced end by the new rate too
      limiter->Configure(now_each, now);
    }
  }
}

KeyedRateLimiter::Debts KeyedRateLimiter::DebtsAt(base::TimePoint now) {
  Debts out;
  out.sets = sets_count_;
  for (uint32_t i = 0; i < sets_count_; ++i) {
    Set& set = sets_[i];
    std::lock_guard lock(set.mutex);
    if (set.full_at > now) out.evicted.push_back({i, set.full_at});
    for (const Place& place : set.places) {
      if (place.limiter == nullptr) continue;
      out.waiting += place.limiter->waiting();
      const RateLimiter::Level level = place.limiter->LevelAt(now);
      if (level.missing > 0) out.keys.push_back({place.key, level.missing});
    }
  }
  return out;
}

void KeyedRateLimiter::Resume(const Debt& debt, base::TimePoint now) {
  if (const auto limiter = Get(debt.key_hash, now); limiter != nullptr && limiter != unlimited_)
    limiter->Resume({debt.missing, 0});
}

void KeyedRateLimiter::Resume(uint32_t sets, const Evicted& evicted) {
  if (sets != sets_count_ || evicted.set >= sets_count_) return;
  Set& set = sets_[evicted.set];
  std::lock_guard lock(set.mutex);
  set.full_at = std::max(set.full_at, evicted.full_at);
}

}  // namespace sluice::limits
