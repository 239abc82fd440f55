#include "upstream/hash_ring.h"

#include <bit>
#include <cmath>
#include <numeric>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "base/check.h"
#include "base/hash.h"

namespace sluice::upstream {
namespace {

using uint128 = unsigned __int128;

constexpr uint16_t kGone = UINT16_MAX;
constexpr uint128 kCircle = uint128{1} << 64;

// Length of the arc (from, to], never 0: equal ends mean the whole circle.
uint128 Arc(uint64_t from, uint64_t to) { return from == to ? kCircle : uint128{to - from}; }

double OfCircle(uint128 length) { return static_cast<double>(length) * 0x1.0p-64; }

uint32_t PointCount(double weight, uint32_t base) {
  double wanted = std::round(base * weight);
  if (!(wanted >= 1)) return 1;  // also when it is no number
  return wanted < static_cast<double>(HashRing::kRingPointsMax) ? static_cast<uint32_t>(wanted)
                                                                : HashRing::kRingPointsMax;
}

std::vector<uint32_t> PointCounts(std::span<const RingEndpoint> endpoints, uint32_t base) {
  while (true) {
    std::vector<uint32_t> counts;
    size_t total = 0;
    for (const RingEndpoint& endpoint : endpoints) {
      counts.push_back(PointCount(endpoint.weight, base));
      total += counts.back();
    }
    if (total <= HashRing::kRingPointsMax || base <= 1) return counts;
    base /= 2;
  }
}

// The place of each endpoint's name among all names.
std::vector<uint32_t> Ranks(const std::vector<std::string>& names) {
  std::vector<uint32_t> order(names.size()), ranks(names.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return names[a] < names[b]; });
  for (uint32_t rank = 0; rank < order.size(); ++rank) ranks[order[rank]] = rank;
  return ranks;
}

}  // namespace

uint64_t HashRing::Seed(std::string_view name) { return base::Hash64(name, kVersion); }
uint64_t HashRing::Point(uint64_t seed, uint32_t i) { return base::Hash64(uint64_t{i}, seed); }

HashRing HashRing::Build(std::span<const RingEndpoint> endpoints, uint32_t base, const HashRing* previous,
                         PointHash hash) {
  SLUICE_CHECK(endpoints.size() <= kRingEndpointsMax);
  HashRing ring;
  ring.hash_ = hash;
  if (endpoints.empty()) return ring;
  ring.counts_ = PointCounts(endpoints, base);
  ring.names_.reserve(endpoints.size());
  for (const RingEndpoint& endpoint : endpoints) ring.names_.emplace_back(endpoint.name);
  if (previous != nullptr && previous->hash_ != hash) previous = nullptr;

  // Previous index -> index now, for endpoints that keep their points.
  std::vector<uint16_t> renamed(previous == nullptr ? 0 : previous->names_.size(), kGone);
  std::vector<uint8_t> kept(endpoints.size(), 0);
  if (previous != nullptr) {
    absl::flat_hash_map<std::string_view, uint16_t> places;
    places.reserve(renamed.size());
    for (size_t i = 0; i < renamed.size(); ++i) places.emplace(previous->names_[i], static_cast<uint16_t>(i));
    for (size_t i = 0; i < endpoints.size(); ++i) {
      auto place = places.find(endpoints[i].name);
      if (place == places.end() || previous->counts_[place->second] != ring.counts_[i]) continue;
      renamed[place->second] = static_cast<uint16_t>(i);
      kept[i] = 1;
    }
  }
  std::vector<uint32_t> ranks = Ranks(ring.names_);
  ring.Merge(previous, renamed, ranks, ring.HashPoints(kept, ranks, hash));
  ring.IndexPoints();
  return ring;
}

// The points of all endpoints that are not kept, in order, equal ones of one endpoint once.
std::vector<HashRing::NewPoint> HashRing::HashPoints(std::span<const uint8_t> kept,
                                                     std::span<const uint32_t> ranks, PointHash hash) const {
  std::vector<NewPoint> added;
  for (uint32_t owner = 0; owner < names_.size(); ++owner) {
    if (kept[owner]) continue;
    uint64_t seed = Seed(names_[owner]);
    for (uint32_t i = 0; i < counts_[owner]; ++i) added.push_back({hash(seed, i), ranks[owner], owner});
  }
  std::sort(added.begin(), added.end(), [](const NewPoint& a, const NewPoint& b) {
    return a.point != b.point ? a.point < b.point : a.rank < b.rank;
  });
  auto same = [](const NewPoint& a, const NewPoint& b) { return a.point == b.point && a.owner == b.owner; };
  added.erase(std::unique(added.begin(), added.end(), same), added.end());
  return added;
}

void HashRing::Merge(const HashRing* previous, std::span<const uint16_t> renamed,
                     std::span<const uint32_t> ranks, std::span<const NewPoint> added) {
  size_t old_count = previous == nullptr ? 0 : previous->points_.size();
  points_.resize(old_count + added.size());
  owners_.resize(old_count + added.size() + 1);
  size_t out = 0;
  auto next = added.begin();
  for (size_t i = 0; i < old_count; ++i) {
    uint64_t point = previous->points_[i];
    uint16_t owner = renamed[previous->owners_[i]];
    if (owner == kGone) continue;
    while (next != added.end() &&
           (next->point < point || (next->point == point && next->rank < ranks[owner]))) {
      points_[out] = next->point;
      owners_[out++] = static_cast<uint16_t>(next++->owner);
    }
    points_[out] = point;
    owners_[out++] = owner;
  }
  for (; next != added.end(); ++next) {
    points_[out] = next->point;
    owners_[out++] = static_cast<uint16_t>(next->owner);
  }
  points_.resize(out);
  owners_.resize(out + 1);
  owners_[out] = owners_[0];
}

void HashRing::IndexPoints() {
  // About one bucket a point, so that a pick looks at two; not above 2^16, where the index would push points
  // out of the cache. At least two buckets: a shift by 64 is undefined.
  int bits = std::clamp(static_cast<int>(std::bit_width(points_.size())), 1, 16);
  shift_ = static_cast<uint32_t>(64 - bits);
  size_t buckets = size_t{1} << bits;
  index_.resize(buckets + 1);
  size_t at = 0;
  for (size_t bucket = 0; bucket < buckets; ++bucket) {
    while (at < points_.size() && (points_[at] >> shift_) < bucket) ++at;
    index_[bucket] = static_cast<uint32_t>(at);
  }
  index_[buckets] = static_cast<uint32_t>(points_.size());

  own_begin_.assign(names_.size() + 1, 0);
  for (size_t i = 0; i < points_.size(); ++i) ++own_begin_[owners_[i] + 1];
  std::partial_sum(own_begin_.begin(), own_begin_.end(), own_begin_.begin());
  std::vector<uint32_t> fill(own_begin_.begin(), own_begin_.end() - 1);
  own_.resize(points_.size());
  for (size_t i = 0; i < points_.size(); ++i) own_[fill[owners_[i]]++] = static_cast<uint32_t>(i);
}

// The owner of points_[at] refused. Walks on, skipping whom it asked. Coming to the last of n endpoints takes
// about n ln n steps, and with unequal weights up to all points; so after a few steps an endpoint the rest
// are asked by way of own_.
uint32_t HashRing::PickNext(size_t at, absl::FunctionRef<bool(uint32_t)> ok) const {
  if (at == points_.size()) at = 0;
  absl::InlinedVector<uint64_t, 16> asked((names_.size() + 63) / 64, 0);
  auto mark = [&](uint32_t owner) { asked[owner / 64] |= uint64_t{1} << (owner % 64); };
  mark(owners_[at]);
  size_t left = names_.size() - 1;
  size_t steps = std::min(points_.size() - 1, 4 * names_.size());
  for (size_t i = at; left > 0 && steps > 0; --steps) {
    i = i + 1 == points_.size() ? 0 : i + 1;
    uint32_t owner = owners_[i];
    if (asked[owner / 64] >> (owner % 64) & 1) continue;
    if (ok(owner)) return owner;
    mark(owner);
    --left;
  }
  return left == 0 ? kNone : PickRemaining(at, asked, ok);
}

// Asks those not asked in the order in which the walk from `at` would come to them: by the distance of their
// next point.
uint32_t HashRing::PickRemaining(size_t at, std::span<const uint64_t> asked,
                                 absl::FunctionRef<bool(uint32_t)> ok) const {
  struct Next {
    size_t distance;
    uint32_t owner;
  };
  std::vector<Next> rest;
  for (uint32_t owner = 0; owner < names_.size(); ++owner) {
    if (asked[owner / 64] >> (owner % 64) & 1) continue;
    auto begin = own_.begin() + own_begin_[owner];
    auto end = own_.begin() + own_begin_[owner + 1];
    auto next = std::lower_bound(begin, end, at);
    rest.push_back({next != end ? *next - at : *begin + points_.size() - at, owner});
  }
  std::sort(rest.begin(), rest.end(), [](const Next& a, const Next& b) { return a.distance < b.distance; });
  for (const Next& next : rest) {
    if (ok(next.owner)) return next.owner;
  }
  return kNone;
}

std::vector<double> HashRing::Shares() const {
  std::vector<uint128> sums(names_.size(), 0);
  if (!points_.empty()) sums[owners_[0]] += Arc(points_.back(), points_.front());
  for (size_t i = 1; i < points_.size(); ++i) sums[owners_[i]] += points_[i] - points_[i - 1];
  std::vector<double> shares;
  shares.reserve(sums.size());
  for (uint128 sum : sums) shares.push_back(OfCircle(sum));
  return shares;
}

uint64_t HashRing::Digest() const {
  // Points are in order by construction, so a sum over (point, name) says all and costs no dependency from
  // one to the next.
  std::vector<uint64_t> seeds;
  for (const std::string& name : names_) seeds.push_back(Seed(name));
  uint64_t sum = 0;
  for (size_t i = 0; i < points_.size(); ++i) sum += base::Hash64(points_[i], seeds[owners_[i]]);
  return base::Hash64(sum, kVersion ^ points_.size());
}

double HashRing::MovedShare(const HashRing& before, const HashRing& after) {
  if (before.points_.empty() || after.points_.empty())
    return before.points_.empty() == after.points_.empty() ? 0 : 1;
  // The same name must be the same number in both.
  absl::flat_hash_map<std::string_view, uint32_t> numbers;
  for (uint32_t i = 0; i < before.names_.size(); ++i) numbers.emplace(before.names_[i], i);
  std::vector<uint32_t> number;
  for (const std::string& name : after.names_) {
    auto found = numbers.find(name);
    number.push_back(found == numbers.end() ? kNone : found->second);
  }
  // Both circles are swept together: between two neighbouring points of either, the endpoint is constant in
  // both.
  const std::vector<uint64_t>&a = before.points_, &b = after.points_;
  uint64_t previous = std::max(a.back(), b.back());
  uint128 moved = 0;
  for (size_t i = 0, k = 0; i < a.size() || k < b.size();) {
    uint64_t point = i == a.size() ? b[k] : k == b.size() ? a[i] : std::min(a[i], b[k]);
    // Past the last point of one circle, owners_ goes on with its first.
    if (before.owners_[i] != number[after.owners_[k]]) moved += Arc(previous, point);
    while (i < a.size() && a[i] == point) ++i;
    while (k < b.size() && b[k] == point) ++k;
    previous = point;
  }
  return OfCircle(moved);
}

bool HashRing::operator==(const HashRing& other) const {
  if (points_ != other.points_ || names_.size() != other.names_.size()) return false;
  for (size_t i = 0; i < points_.size(); ++i) {
    if (names_[owners_[i]] != other.names_[other.owners_[i]]) return false;
  }
  return true;
}

}  // namespace sluice::upstream
