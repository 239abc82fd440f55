// HashRing: shares, digest, and how two rings differ.
#include "absl/container/flat_hash_map.h"
#include "base/hash.h"
#include "upstream/hash_ring.h"

namespace sluice::upstream {
namespace {

using uint128 = unsigned __int128;

constexpr uint128 kCircle = uint128{1} << 64;

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
  if (!blocks_.empty()) sums[OwnerAt(FirstAfter(blocks_.size() - 1))] += kCircle - done;
  std::vector<double> shares;
  shares.reserve(sums.size());
  for (uint128 sum : sums) shares.push_back(OfCircle(sum));
  return shares;
}

uint64_t HashRing::Digest() const {
  // Points are in order by construction, so a sum over (point, name) says all.
  return base::Hash64(digest_sum_, kVersion ^ point_count_);
}

namespace {

// Some neighbouring points, and the owner of the keys behind the last of them. Owners are as `Owner` numbers them.
template <typename Owner>
struct Run {
  const uint64_t* points;
  size_t size;
  Owner owner;  // of points[i]
  uint32_t next;
};

// The keys of [begin, end) that have different owners in the two.
template <typename A, typename B>
uint128 Moved(const Run<A>& a, const Run<B>& b, uint128 begin, uint128 end) {
  uint128 moved = 0;
  for (size_t i = 0, k = 0; begin < end;) {
    // Between two neighbouring points of either, the owner is constant in both.
    uint128 stop = end;
    if (i < a.size) stop = std::min(stop, uint128{a.points[i]} + 1);
    if (k < b.size) stop = std::min(stop, uint128{b.points[k]} + 1);
    const uint32_t owner_a = i < a.size ? a.owner(i) : a.next;
    const uint32_t owner_b = k < b.size ? b.owner(k) : b.next;
    if (owner_a != owner_b) moved += stop - begin;
    begin = stop;
    while (i < a.size && a.points[i] < begin) ++i;
    while (k < b.size && b.points[k] < begin) ++k;
  }
  return moved;
}

}  // namespace

struct HashRing::Flat {
  explicit Flat(const HashRing& ring) {
    for (const RingBlock& block : ring.blocks_) {
      points.insert(points.end(), block.points, block.points + block.size);
      members.insert(members.end(), block.members(), block.members() + block.size);
    }
  }
  std::vector<uint64_t> points;
  std::vector<uint16_t> members;
};

double HashRing::MovedShare(const HashRing& before, const HashRing& after) {
  if (&before == &after) return 0;
  if (before.blocks_.empty() || after.blocks_.empty()) return before.blocks_.empty() == after.blocks_.empty() ? 0 : 1;
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

  // By member number and, for the keys behind a block's last point, by the next block's first.
  auto owner_before = [&](uint16_t member) -> uint32_t { return before.index_[member]; };
  auto owner_after = [&](uint16_t member) { return place[after.index_[member]]; };
  auto next_before = [&](size_t block) { return before.OwnerAt(before.FirstAfter(block)); };
  auto next_after = [&](size_t block) { return place[after.OwnerAt(after.FirstAfter(block))]; };

  if (!related || before.shift_ != after.shift_) {
    const Flat a(before), b(after);
    auto flat_before = [&](size_t i) { return owner_before(a.members[i]); };
    auto flat_after = [&](size_t i) { return owner_after(b.members[i]); };
    return OfCircle(Moved(
        Run<decltype(flat_before)>{a.points.data(), a.points.size(), flat_before,
                                   next_before(before.blocks_.size() - 1)},
        Run<decltype(flat_after)>{b.points.data(), b.points.size(), flat_after, next_after(after.blocks_.size() - 1)},
        0, kCircle));
  }
  uint128 moved = 0;
  auto same = [&](size_t i) { return before.blocks_[i].points == after.blocks_[i].points; };
  for (size_t i = 0; i < before.blocks_.size(); ++i) {
    const RingBlock &a = before.blocks_[i], &b = after.blocks_[i];
    const size_t next = i + 1 == before.blocks_.size() ? 0 : i + 1;
    const uint128 end = uint128{i + 1} << before.shift_;
    if (same(i)) {
      // Only the owner of the keys behind its last point may differ. (Two empty blocks are the same and say nothing.)
      if (same(next) && before.blocks_[next].size != 0) continue;
      if (next_before(i) == next_after(i)) continue;
      moved += end - (a.size == 0 ? uint128{i} << before.shift_ : uint128{a.points[a.size - 1]} + 1);
      continue;
    }
    auto block_before = [&owner_before, members = a.members()](size_t at) { return owner_before(members[at]); };
    auto block_after = [&owner_after, members = b.members()](size_t at) { return owner_after(members[at]); };
    moved += Moved(Run<decltype(block_before)>{a.points, a.size, block_before, next_before(i)},
                   Run<decltype(block_after)>{b.points, b.size, block_after, next_after(i)},
                   uint128{i} << before.shift_, end);
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
