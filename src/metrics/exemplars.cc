#include "metrics/exemplars.h"

#include <algorithm>

#include "metrics/registry.h"
#include "metrics/text.h"

namespace sluice::metrics {
namespace {

// Of two buckets one bound is exported (registry.cc).
size_t PlaceOf(uint64_t nanos) { return (Histogram::BucketOf(nanos) + 1) / 2; }

}  // namespace

Exemplars::Exemplars(std::string_view family, std::string_view label)
    : line_begin_(std::string(family) + "_bucket{" + std::string(label) + "=\"") {}

void Exemplars::Put(std::string_view value, const Exemplar& exemplar) {
  const std::string key = EscapeLabelValue(value);
  std::lock_guard lock(mutex_);
  auto it = kept_.find(key);
  if (it == kept_.end()) {
    if (kept_.size() >= kSeriesMax) return;
    it = kept_.emplace(key, std::vector<Exemplar>()).first;
  }
  std::vector<Exemplar>& kept = it->second;
  auto goes = std::ranges::find(kept, PlaceOf(exemplar.nanos), [](const Exemplar& e) { return PlaceOf(e.nanos); });
  if (goes == kept.end() && kept.size() >= kPerSeriesMax)
    goes = std::ranges::min_element(kept, {}, &Exemplar::wall_nanos);
  if (goes != kept.end()) kept.erase(goes);
  kept.insert(std::ranges::upper_bound(kept, exemplar.nanos, {}, &Exemplar::nanos), exemplar);
}

std::vector<Exemplar> Exemplars::Of(std::string_view escaped) const {
  std::lock_guard lock(mutex_);
  const auto it = kept_.find(escaped);
  return it == kept_.end() ? std::vector<Exemplar>() : it->second;
}

}  // namespace sluice::metrics
