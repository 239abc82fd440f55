// HashRing: shares, digest, and how two rings differ.
#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "upstream/hash_ring.h"

namespace sluice::upstream {
namespace {

using uint128 = unsigned __int128;

double OfCircle(uint128 length) { return static_cast<double>(length) * 0x1.0p-64; }

}  // namespace

std::vector<std::pair<uint64_t, uint32_t>> HashRing::Points() const {
  std::vector<std::pair<uint64_t, uint32_t>> out;
  out.reserve(point_count_);
  for (const RingBlock& block : blocks_) {
    for (uint32_t i = 0; i < block.size; ++i) out.emplace_back(block.points[i], index_[block.members()[i]]);
  }
  return out;
}

std::vector<double> HashRing::Shares() const {
  std::vector<uint128> sums(members_.size(), 0);
  uint128 done = 0;  // keys below this are counted
  for (const RingBlock& block : blocks_) {
    for (uint32_t i = 0; i < block.size; ++i) {
      const uint128 end = uint128{block.points[i]} + 1;
      sums[index_[block.members()[i]]] += end - done;
      done = end;
    }
  }
  if (!blocks_.empty()) sums[OwnerAt(FirstAfter(blocks_.size() - 1))] += (uint128{1} << 64) - done;
  std::vector<double> shares;
  shares.reserve(sums.size());
  for (uint128 sum : sums) shares.push_back(OfCircle(sum));
  return shares;
}

uint64_t HashRing::Digest() const {
  // Points are in order by construction, so a sum over (point, name) says all.
  return base::Hash64(digest_sum_, kVersion ^ point_count_);
}

// Part of a circle: its keys, the points in it, whose the keys behind the last point are.
struct HashRing::Arc {
  std::span<const uint64_t> points;
  std::span<const uint32_t> owners;
  uint32_t next;
};

namespace {

// The keys of [begin, end) that have different owners in the two.
template <typename Arc>
uint128 Moved(const Arc& a, const Arc& b, uint128 begin, uint128 end) {
  uint128 moved = 0;
  for (size_t i = 0, k = 0; begin < end;) {
    // Between two neighbouring points of either, the owner is constant in both.
    uint128 stop = end;
    if (i < a.points.size()) stop = std::min(stop, uint128{a.points[i]} + 1);
    if (k < b.points.size()) stop = std::min(stop, uint128{b.points[k]} + 1);
    const uint32_t owner_a = i < a.points.size() ? a.owners[i] : a.next;
    const uint32_t owner_b = k < b.points.size() ? b.owners[k] : b.next;
    if (owner_a != owner_b) moved += stop - begin;
    begin = stop;
    while (i < a.points.size() && a.points[i] < begin) ++i;
    while (k < b.points.size() && b.points[k] < begin) ++k;
  }
  return moved;
}

}  // namespace

double HashRing::MovedShare(const HashRing& before, const HashRing& after) {
  if (&before == &after) return 0;
  if (before.blocks_.empty() || after.blocks_.empty())
    return before.blocks_.empty() == after.blocks_.empty() ? 0 : 1;
  const bool related = before.store_ == after.store_;
  // The same name must be the same number in both: its index in `before`.
  absl::flat_hash_map<std::string_view, uint32_t> places;
  for (uint32_t i = 0; i < before.endpoints(); ++i) {
    if (!related || !after.Has(before.numbers_[i])) places.emplace(before.name(i), i);
  }
  std::vector<uint32_t> place(after.endpoints());
  for (uint32_t i = 0; i < after.endpoints(); ++i) {
    if (related && before.Has(after.numbers_[i])) {
      place[i] = before.index_[after.numbers_[i]];
      continue;
    }
    auto it = places.find(after.name(i));
    place[i] = it == places.end() ? kNone : it->second;
  }

  std::vector<uint64_t> points_before, points_after;
  std::vector<uint32_t> owners_before, owners_after;
  auto take = [&](const HashRing& ring, size_t block) {
    const bool old = &ring == &before;
    std::vector<uint64_t>& points = old ? points_before : points_after;
    std::vector<uint32_t>& owners = old ? owners_before : owners_after;
    const RingBlock& from = ring.blocks_[block];
    for (uint32_t i = 0; i < from.size; ++i) {
      const uint32_t owner = ring.index_[from.members()[i]];
      points.push_back(from.points[i]);
      owners.push_back(old ? owner : place[owner]);
    }
  };
  // Sweeps what has been taken: all blocks up to these, which begin at `begin`.
  uint128 moved = 0;
  auto sweep = [&](size_t last_before, size_t last_after, uint128 begin, uint128 end) {
    const Arc a{points_before, owners_before, before.OwnerAt(before.FirstAfter(last_before))};
    const Arc b{points_after, owners_after, place[after.OwnerAt(after.FirstAfter(last_after))]};
    moved += Moved(a, b, begin, end);
    for (auto* points : {&points_before, &points_after}) points->clear();
    for (auto* owners : {&owners_before, &owners_after}) owners->clear();
  };

  if (!related || before.shift_ != after.shift_) {
    for (size_t i = 0; i < before.blocks_.size(); ++i) take(before, i);
    for (size_t i = 0; i < after.blocks_.size(); ++i) take(after, i);
    sweep(before.blocks_.size() - 1, after.blocks_.size() - 1, 0, uint128{1} << 64);
    return OfCircle(moved);
  }
  auto same = [&](size_t i) { return before.blocks_[i].points == after.blocks_[i].points; };
  for (size_t i = 0; i < before.blocks_.size(); ++i) {
    // The keys behind a block's last point are the next block's. (Two empty blocks are the same and say nothing.)
    const size_t next = i + 1 == before.blocks_.size() ? 0 : i + 1;
    if (same(i) && same(next) && before.blocks_[next].size != 0) continue;
    take(before, i);
    take(after, i);
    sweep(i, i, uint128{i} << before.shift_, uint128{i + 1} << before.shift_);
  }
  return OfCircle(moved);
}

bool HashRing::operator==(const HashRing& other) const {
  if (point_count_ != other.point_count_ || endpoints() != other.endpoints()) return false;
  const auto mine = Points(), theirs = other.Points();
  for (size_t i = 0; i < mine.size(); ++i) {
    if (mine[i].first != theirs[i].first || name(mine[i].second) != other.name(theirs[i].second)) return false;
  }
  return true;
}

size_t HashRing::SharedBlocks(const HashRing& a, const HashRing& b) {
  size_t shared = 0;
  for (size_t i = 0; i < std::min(a.blocks_.size(), b.blocks_.size()); ++i) {
    shared += a.blocks_[i].size != 0 && a.blocks_[i].points == b.blocks_[i].points;
  }
  return shared;
}

}  // namespace sluice::upstream
