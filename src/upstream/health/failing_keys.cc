#include "upstream/health/failing_keys.h"

#include <algorithm>

namespace sluice::upstream {

FailingKeys::Place& FailingKeys::Failed(uint64_t key, const void* endpoint, base::TimePoint now) {
  Place& place = places_[key % kPlaces];
  if (place.at == nullptr || place.key != key || now - place.last >= kMemory || now - place.since >= 3 * kMemory) {
    place = {};
    place.key = key;
    place.at = endpoint;
    place.since = now;
  }
  place.last = now;
  return place;
}

void FailingKeys::Remember(uint64_t key, const void* endpoint, base::TimePoint now) { Failed(key, endpoint, now); }

bool FailingKeys::Counts(uint64_t key, const void* endpoint, Evidence& of, base::TimePoint now) {
  if (of.total == 0 || now - of.since >= kMemory) of = {now, 0};
  Place& place = Failed(key, endpoint, now);
  if (place.at != endpoint) {
    if (++place.elsewhere >= kElsewhere) place.moved_until = {};
    return false;
  }
  if (++place.row >= kRow && place.elsewhere < kElsewhere) {
    place.moved_until = now + kMoved;
    moved_until_ = std::max(moved_until_, place.moved_until);
  }
  if (place.elsewhere >= kElsewhere) return false;
  if (place.window != of.since || place.counted == 0) {
    place.window = of.since;
    place.counted = 0;
  }
  if (uint64_t{place.counted} * kShare > of.total) return false;
  ++place.counted;
  ++of.total;
  return true;
}

}  // namespace sluice::upstream
