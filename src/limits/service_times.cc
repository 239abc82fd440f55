#include "limits/service_times.h"

#include <algorithm>
#include <cmath>

namespace sluice::limits {

namespace {
constexpr float kWeight = 1.0F / 16;
}  // namespace

void ServiceTimes::Note(uint64_t key, base::Nanos time, base::TimePoint now) {
  Place& place = places_[key % kPlaces];
  if (place.key != key || now - place.noted > kFresh) {
    // One that is used stays, or two methods would leave no estimate for either.
    if (place.key != key && now - place.noted <= kFresh / 10) return;
    place = {.key = key};
  }
  const float log2 = std::log2(static_cast<float>(std::max<int64_t>(time.count(), 1)));
  // The first answers count alike; then the oldest fade.
  place.log2 += (log2 - place.log2) * std::max(kWeight, 1.0F / static_cast<float>(place.answers + 1));
  place.answers = std::min(place.answers + 1, 1u << 20);
  place.noted = now;
}

base::Nanos ServiceTimes::Of(uint64_t key, base::TimePoint now) const {
  const Place& place = places_[key % kPlaces];
  if (place.key != key || place.answers < kSure || now - place.noted > kFresh) return base::Nanos(0);
  return base::Nanos(static_cast<int64_t>(std::exp2(place.log2)));
}

}  // namespace sluice::limits
