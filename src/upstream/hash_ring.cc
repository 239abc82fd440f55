// HashRing: building one, from nothing or from the one before, and picks that are refused. Shares, digests and
// comparisons: hash_ring_compare.cc.
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

uint32_t PointCount(double weight, uint32_t base) {
  double wanted = std::round(base * weight);
  if (!(wanted >= 1)) return 1;  // also when it is no number
  return wanted < static_cast<double>(HashRing::kRingPointsMax) ? static_cast<uint32_t>(wanted)
                                                                : HashRing::kRingPointsMax;
}

std::vector<uint32_t> PointCounts(std::span<const RingEndpoint> endpoints, uint32_t base) {
  std::vector<uint32_t> counts(endpoints.size());
  while (true) {
    size_t total = 0;
    for (size_t i = 0; i < endpoints.size(); ++i) total += counts[i] = PointCount(endpoints[i].weight, base);
    if (total <= HashRing::kRingPointsMax || base <= 1) return counts;
    base /= 2;
  }
}

// n, where a ring of so many points has 2^n blocks: 32 to 64 points a block, but two blocks at least (a shift by 64 is
// undefined).
int BlockBits(size_t points) { return std::max(static_cast<int>(std::bit_width(points)) - 6, 1); }

std::unique_ptr<const RingMember> MakeMember(std::string_view name, uint32_t count, HashRing::PointHash hash) {
  auto member = std::make_unique<RingMember>();
  member->name = name;
  const uint64_t seed = HashRing::Seed(name);
  member->points.resize(count);
  if (hash == nullptr) {
    XdsPoints(name, member->points);
    member->digest = seed;  // of two lists that differ in endpoints without points too
  } else {
    for (uint32_t i = 0; i < count; ++i) member->points[i] = hash(seed, i);
  }
  std::sort(member->points.begin(), member->points.end());
  member->points.erase(std::unique(member->points.begin(), member->points.end()), member->points.end());
  for (uint64_t point : member->points) member->digest += base::Hash64(point, seed);
  return member;
}

}  // namespace

uint64_t HashRing::Seed(std::string_view name) { return base::Hash64(name, kVersion); }
uint64_t HashRing::Point(uint64_t seed, uint32_t i) { return base::Hash64(uint64_t{i}, seed); }

HashRing::~HashRing() {
  if (store_ != nullptr) store_->Release(blocks_, numbers_);
}

HashRing::HashRing(const HashRing& other)
    : store_(other.store_),
      blocks_(other.blocks_),
      shift_(other.shift_),
      index_(other.index_),
      numbers_(other.numbers_),
      members_(other.members_),
      counts_(other.counts_),
      point_count_(other.point_count_),
      digest_sum_(other.digest_sum_),
      hash_(other.hash_) {
  if (store_ != nullptr) store_->Hold(blocks_, numbers_);
}

void HashRing::Swap(HashRing& other) noexcept {
  std::swap(store_, other.store_);
  std::swap(blocks_, other.blocks_);
  std::swap(shift_, other.shift_);
  std::swap(index_, other.index_);
  std::swap(numbers_, other.numbers_);
  std::swap(members_, other.members_);
  std::swap(counts_, other.counts_);
  std::swap(point_count_, other.point_count_);
  std::swap(digest_sum_, other.digest_sum_);
  std::swap(hash_, other.hash_);
}

// Where each endpoint stands in `previous` with the same number of points; kNew: nowhere.
std::vector<uint32_t> HashRing::Match(std::span<const RingEndpoint> endpoints, std::span<const uint32_t> counts,
                                      const HashRing& previous) {
  std::vector<uint32_t> from(endpoints.size());
  absl::flat_hash_map<std::string_view, uint32_t> places;
  for (size_t i = 0; i < endpoints.size(); ++i) {
    uint32_t place = endpoints[i].from;
    if (place == RingEndpoint::kByName) {
      if (places.empty()) {
        places.reserve(previous.endpoints());
        for (uint32_t k = 0; k < previous.endpoints(); ++k) places.emplace(previous.name(k), k);
      }
      auto it = places.find(endpoints[i].name);
      place = it == places.end() ? RingEndpoint::kNew : it->second;
    }
    SLUICE_CHECK(place == RingEndpoint::kNew || place < previous.endpoints());
    from[i] = place != RingEndpoint::kNew && previous.counts_[place] == counts[i] ? place : RingEndpoint::kNew;
  }
  return from;
}

HashRing HashRing::Build(std::span<const RingEndpoint> endpoints, uint32_t base, const HashRing* previous,
                         PointHash hash) {
  return BuildCounted(endpoints, PointCounts(endpoints, base), previous, hash);
}

HashRing HashRing::BuildXds(std::span<const RingEndpoint> endpoints, XdsRingSize size, const HashRing* previous) {
  std::vector<double> weights;
  weights.reserve(endpoints.size());
  for (const RingEndpoint& endpoint : endpoints) weights.push_back(endpoint.weight);
  return BuildCounted(endpoints, XdsPointCounts(weights, size), previous, nullptr);
}

HashRing HashRing::BuildCounted(std::span<const RingEndpoint> endpoints, std::vector<uint32_t> counts,
                                const HashRing* previous, PointHash hash) {
  SLUICE_CHECK(endpoints.size() <= kRingEndpointsMax);
  HashRing ring;
  ring.hash_ = hash;
  if (endpoints.empty()) return ring;
  ring.counts_ = std::move(counts);
  const size_t wanted = std::accumulate(ring.counts_.begin(), ring.counts_.end(), size_t{0});
  const int bits = BlockBits(wanted);
  if (previous != nullptr && (previous->store_ == nullptr || previous->hash_ != hash)) previous = nullptr;
  std::vector<uint32_t> from;
  if (previous != nullptr) {
    from = Match(endpoints, ring.counts_, *previous);
    size_t kept = 0;
    for (size_t i = 0; i < from.size(); ++i) kept += from[i] == RingEndpoint::kNew ? 0 : ring.counts_[i];
    // Blocks that have come to hold half as many points as meant, or twice as many, are made anew; so are those of a
    // ring that is mostly new.
    if (std::abs(bits - (64 - static_cast<int>(previous->shift_))) > 1 || kept * 2 < wanted) previous = nullptr;
  }
  if (previous != nullptr && ring.Fill(endpoints, from, previous)) return ring;
  from.assign(endpoints.size(), RingEndpoint::kNew);
  ring.store_ = std::make_shared<RingStore>();
  ring.shift_ = static_cast<uint32_t>(64 - bits);
  SLUICE_CHECK(ring.Fill(endpoints, from, nullptr));
  return ring;
}

// False: the store has not enough numbers.
bool HashRing::Fill(std::span<const RingEndpoint> endpoints, std::span<const uint32_t> from, const HashRing* previous) {
  std::vector<std::unique_ptr<const RingMember>> fresh;
  std::vector<const RingMember*> fresh_members;
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] != RingEndpoint::kNew) continue;
    fresh.push_back(MakeMember(endpoints[i].name, counts_[i], hash_));
    fresh_members.push_back(fresh.back().get());
  }
  std::vector<uint16_t> fresh_numbers(fresh.size());
  std::shared_ptr<RingStore> store = previous == nullptr ? store_ : previous->store_;
  if (!store->AddMembers(fresh, fresh_numbers)) return false;
  store_ = std::move(store);

  // The endpoints of the list.
  numbers_.resize(from.size());
  members_.resize(from.size());
  std::vector<uint16_t> kept_numbers;
  kept_numbers.reserve(from.size());
  uint16_t highest = 0;
  for (size_t i = 0, next = 0; i < from.size(); ++i) {
    if (from[i] == RingEndpoint::kNew) {
      numbers_[i] = fresh_numbers[next];
      members_[i] = fresh_members[next++];
    } else {
      numbers_[i] = previous->numbers_[from[i]];
      members_[i] = previous->members_[from[i]];
      kept_numbers.push_back(numbers_[i]);
    }
    highest = std::max(highest, numbers_[i]);
  }
  index_.assign(size_t{highest} + 1, RingStore::kNoMember);
  for (size_t i = 0; i < numbers_.size(); ++i) {
    SLUICE_CHECK(index_[numbers_[i]] == RingStore::kNoMember);  // `from` named one twice
    index_[numbers_[i]] = static_cast<uint16_t>(i);
  }

  // Their points.
  std::vector<uint8_t> touched;
  if (previous == nullptr) {
    blocks_.resize(size_t{1} << (64 - shift_));
    touched.assign(blocks_.size(), 1);
  } else {
    shift_ = previous->shift_;
    blocks_ = previous->blocks_;
    point_count_ = previous->point_count_;
    digest_sum_ = previous->digest_sum_;
    touched.assign(blocks_.size(), 0);
    for (size_t i = 0; i < previous->numbers_.size(); ++i) {
      if (Has(previous->numbers_[i])) continue;
      const RingMember& gone = *previous->members_[i];
      for (uint64_t point : gone.points) touched[point >> shift_] = 1;
      point_count_ -= gone.points.size();
      digest_sum_ -= gone.digest;
    }
  }
  MergeBlocks(previous, fresh_members, fresh_numbers, touched);
  store_->Hold(blocks_, kept_numbers);
  return true;
}

void HashRing::MergeBlocks(const HashRing* previous, std::span<const RingMember* const> fresh,
                           std::span<const uint16_t> numbers, std::span<uint8_t> touched) {
  // The new points by their blocks: counted, then laid out.
  std::vector<uint32_t> ends(blocks_.size(), 0);
  size_t count = 0;
  for (const RingMember* member : fresh) {
    for (uint64_t point : member->points) ++ends[point >> shift_];
    count += member->points.size();
    digest_sum_ += member->digest;
  }
  point_count_ += count;
  uint32_t sum = 0;
  for (uint32_t& end : ends) end = std::exchange(sum, sum + end);  // where it begins; the layout moves it on to its end
  std::vector<NewPoint> points(count);
  for (size_t i = 0; i < fresh.size(); ++i) {
    for (uint64_t point : fresh[i]->points) {
      points[ends[point >> shift_]++] = {point, numbers[i]};
      touched[point >> shift_] = 1;
    }
  }
  for (size_t block = 0; block < blocks_.size(); ++block) {
    if (!touched[block]) continue;
    const uint32_t begin = block == 0 ? 0 : ends[block - 1];
    blocks_[block] = MergeBlock(previous, block, std::span(points).subspan(begin, ends[block] - begin));
  }
}

// The block of `previous` without what is gone, with `fresh`. By point, then by name.
RingBlock HashRing::MergeBlock(const HashRing* previous, size_t block, std::span<NewPoint> fresh) const {
  auto before = [this](uint64_t a, uint16_t member_a, uint64_t b, uint16_t member_b) {
    return a != b ? a < b : MemberOf(member_a).name < MemberOf(member_b).name;
  };
  std::sort(fresh.begin(), fresh.end(),
            [&](const NewPoint& a, const NewPoint& b) { return before(a.point, a.member, b.point, b.member); });
  const RingBlock old = previous == nullptr ? RingBlock() : previous->blocks_[block];
  const uint16_t* old_members = old.members();
  uint32_t size = static_cast<uint32_t>(fresh.size());
  for (uint32_t i = 0; i < old.size; ++i) size += Has(old_members[i]);
  if (size == 0) return {};
  RingBlock out = RingBlock::Make(size);
  uint64_t* points = const_cast<uint64_t*>(out.points);
  uint16_t* members = const_cast<uint16_t*>(out.members());
  auto next = fresh.begin();
  uint32_t at = 0;
  auto put = [&](uint64_t point, uint16_t member) {
    points[at] = point;
    members[at++] = member;
  };
  for (uint32_t i = 0; i < old.size; ++i) {
    if (!Has(old_members[i])) continue;
    for (; next != fresh.end() && before(next->point, next->member, old.points[i], old_members[i]); ++next)
      put(next->point, next->member);
    put(old.points[i], old_members[i]);
  }
  for (; next != fresh.end(); ++next) put(next->point, next->member);
  SLUICE_CHECK(at == size);
  return out;
}

HashRing::Place HashRing::FirstAfter(size_t block) const {
  do {
    block = block + 1 == blocks_.size() ? 0 : block + 1;
  } while (blocks_[block].size == 0);
  return {block, 0};
}

// The owner of the point at `at`, the first for `key`, refused. Walks on, past endpoints that it has asked already. To
// reach the last of n endpoints takes about n ln n steps, and with unequal weights up to all points; so after a few
// steps per endpoint the others are asked through their own points.
uint32_t HashRing::PickNext(uint64_t key, Place at, absl::FunctionRef<bool(uint32_t)> ok) const {
  absl::InlinedVector<uint64_t, 16> asked((members_.size() + 63) / 64, 0);
  auto mark = [&](uint32_t owner) { asked[owner / 64] |= uint64_t{1} << (owner % 64); };
  mark(OwnerAt(at));
  size_t left = members_.size() - 1;
  for (size_t steps = std::min(point_count_ - 1, 4 * members_.size()); left > 0 && steps > 0; --steps) {
    at = at.at + 1 < blocks_[at.block].size ? Place{at.block, at.at + 1} : FirstAfter(at.block);
    const uint32_t owner = OwnerAt(at);
    if (asked[owner / 64] >> (owner % 64) & 1) continue;
    if (ok(owner)) return owner;
    mark(owner);
    --left;
  }
  return left == 0 ? kNone : PickRemaining(key, asked, ok);
}

// Asks those not asked in the order in which the walk from `key` would come to them: by the distance of their next
// point, then by name. Those without points come last, by the distance of what would have been their first point, so
// that keys with nowhere else to go do not all go to the same one.
uint32_t HashRing::PickRemaining(uint64_t key, std::span<const uint64_t> asked,
                                 absl::FunctionRef<bool(uint32_t)> ok) const {
  struct Next {
    bool pointless;
    uint64_t distance;
    uint32_t owner;
  };
  std::vector<Next> rest;
  for (uint32_t owner = 0; owner < members_.size(); ++owner) {
    if (asked[owner / 64] >> (owner % 64) & 1) continue;
    const std::vector<uint64_t>& own = members_[owner]->points;
    if (own.empty()) {
      uint64_t first = 0;
      XdsPoints(name(owner), std::span(&first, 1));
      rest.push_back({true, first - key, owner});
      continue;
    }
    auto next = std::lower_bound(own.begin(), own.end(), key);
    rest.push_back({false, (next != own.end() ? *next : own.front()) - key, owner});
  }
  std::sort(rest.begin(), rest.end(), [this](const Next& a, const Next& b) {
    if (a.pointless != b.pointless) return b.pointless;
    return a.distance != b.distance ? a.distance < b.distance : name(a.owner) < name(b.owner);
  });
  for (const Next& next : rest) {
    if (ok(next.owner)) return next.owner;
  }
  return kNone;
}

}  // namespace sluice::upstream
