// HashRing: consistent hashing with weights (Karger 1997). A key belongs to the first point clockwise.
// docs/hash-ring.md
//
//   blocks_   the circle in 2^n equal arcs, about 40 points each:
//               key's top n bits -> [ points | members ]     points ascending [ 12 | 40 | 41 | 97 | ... ]
//                                                            whose they are   [  3 |  0 |  3 |  1 | ... ]
//   members are numbered in the store that the rings of one cluster share; index_ has each one's place in this list
//
// A ring built from the one before shares with it all blocks in which no point came or went: of 1,000 endpoints x 160
// points, one endpoint's 160 points lie in 157 of 4,096 blocks.
//
// An endpoint's points depend on its name, its weight and `base` alone: adding, removing or reweighting one
// moves keys only from or to that one. (Not so in a ring of BuildXds.) Health does not change a ring: Pick's `ok`
// refuses, and recovery brings exactly the old keys back.
//
// Immutable once built; any number of threads may read it, copy it and drop it. Knows hashes and names, no networks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "upstream/hash_ring_store.h"
#include "upstream/xds_ring.h"

namespace sluice::upstream {

struct RingEndpoint {
  // What `from` says where it is no index.
  static constexpr uint32_t kNew = UINT32_MAX;
  static constexpr uint32_t kByName = UINT32_MAX - 1;

  std::string_view name;  // unique in the list
  double weight = 1.0;
  // Its index in the previous ring; kNew: it is not there; kByName: the ring looks.
  uint32_t from = kByName;
};

class HashRing {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Endpoints of one ring: members are numbered in 16 bits. Configuration stops earlier (upstream::kEndpointsMax).
  static constexpr size_t kRingEndpointsMax = RingStore::kMembersMax;
  // Points of a ring by Build; 80 MB. A list that asks for more is built with the base halved until it fits, which
  // keeps every property but one: keys move between others when a change crosses that line.
  static constexpr size_t kRingPointsMax = size_t{1} << 22;
  // Part of every point's hash and of the digest. Raised when the ring of a given list changes, never
  // otherwise.
  static constexpr uint64_t kVersion = 1;

  // Point i of an endpoint; `seed` is the hash of its name. Tests pass bad ones.
  using PointHash = uint64_t (*)(uint64_t seed, uint32_t i);
  static uint64_t Point(uint64_t seed, uint32_t i);
  static uint64_t Seed(std::string_view name);

  HashRing() = default;  // empty: Pick returns kNone
  ~HashRing();
  HashRing(const HashRing& other);
  HashRing(HashRing&& other) noexcept { Swap(other); }
  HashRing& operator=(HashRing other) noexcept {
    Swap(other);
    return *this;
  }

  // Endpoint i of the list is index i of Pick. It gets max(1, round(base x weight)) points. With `previous`,
  // what is there of endpoints whose name and count are unchanged is shared; the result is the same, point for point.
  static HashRing Build(std::span<const RingEndpoint> endpoints, uint32_t base, const HashRing* previous = nullptr,
                        PointHash hash = &Point);
  // The same with the points of Envoy's and gRPC's ring (xds_ring.h), so that a key of base::XxHash64 has the owner
  // that it has there. Order of the list and all weights are part of it. An endpoint may have no points: its share is
  // 0, and Pick asks it after all others.
  static HashRing BuildXds(std::span<const RingEndpoint> endpoints, XdsRingSize size,
                           const HashRing* previous = nullptr);

  // The endpoint of the first point at or after `key`, wrapping, that ok(index) accepts; each endpoint is
  // asked at most once, in the order of the circle. kNone if all refuse.
  template <class Ok>
  uint32_t Pick(uint64_t key, Ok&& ok) const {
    if (blocks_.empty()) return kNone;
    const Place at = Find(key);
    const uint32_t owner = OwnerAt(at);
    if (ok(owner)) [[likely]]
      return owner;
    return PickNext(key, at, ok);
  }

  // Share of the circle of each endpoint, by the lengths of its arcs. Looks at all points.
  std::vector<double> Shares() const;
  // Equal for equal rings, whatever the order of the list was (which is part of a ring of BuildXds).
  uint64_t Digest() const;
  // Share of the circle whose endpoint, by name, differs. An empty ring differs everywhere from one that is
  // not. Looks at what two rings do not share.
  static double MovedShare(const HashRing& before, const HashRing& after);

  size_t endpoints() const { return members_.size(); }
  const std::string& name(uint32_t index) const { return members_[index]->name; }
  size_t point_count() const { return point_count_; }
  // All points in order, each with its endpoint's index.
  std::vector<std::pair<uint64_t, uint32_t>> Points() const;
  bool operator==(const HashRing& other) const;
  // Blocks that the two have in common.
  static size_t SharedBlocks(const HashRing& a, const HashRing& b);
  size_t block_count() const { return blocks_.size(); }

 private:
  struct Place {
    size_t block;
    uint32_t at;
  };
  struct NewPoint {
    uint64_t point;
    uint16_t member;
  };
  struct Flat;

  // How many of the block's points are below the key. Points are spread evenly, so the place is known within a few: the
  // eight around it are counted without a branch.
  static uint32_t Below(const RingBlock& block, uint64_t key, uint32_t shift) {
    constexpr uint32_t kWindow = 8;
    const uint64_t* points = block.points;
    const uint64_t fraction = key << (64 - shift) >> 32;
    const uint32_t guess = static_cast<uint32_t>(fraction * block.size >> 32);
    uint32_t from = guess > kWindow / 2 ? guess - kWindow / 2 : 0;
    if (block.size >= kWindow) [[likely]] {
      from = std::min(from, block.size - kWindow);
      uint32_t below = 0;
      for (uint32_t i = 0; i < kWindow; ++i) below += points[from + i] < key;
      if ((below != 0 || from == 0) && (below != kWindow || from + kWindow == block.size)) [[likely]]
        return from + below;
    }
    return static_cast<uint32_t>(std::lower_bound(points, points + block.size, key) - points);
  }

  // The place of the first point >= key; of the first one of all past the last. The ring is not empty.
  Place Find(uint64_t key) const {
    const size_t number = key >> shift_;
    const RingBlock& block = blocks_[number];
    const uint32_t at = Below(block, key, shift_);
    return at < block.size ? Place{number, at} : FirstAfter(number);
  }
  Place FirstAfter(size_t block) const;
  uint32_t OwnerAt(Place place) const { return index_[blocks_[place.block].members()[place.at]]; }
  uint32_t PickNext(uint64_t key, Place at, absl::FunctionRef<bool(uint32_t)> ok) const;
  uint32_t PickRemaining(uint64_t key, std::span<const uint64_t> asked, absl::FunctionRef<bool(uint32_t)> ok) const;

  // With so many points for each; `hash` null: those of BuildXds.
  static HashRing BuildCounted(std::span<const RingEndpoint> endpoints, std::vector<uint32_t> counts,
                               const HashRing* previous, PointHash hash);
  static std::vector<uint32_t> Match(std::span<const RingEndpoint> endpoints, std::span<const uint32_t> counts,
                                     const HashRing& previous);
  bool Fill(std::span<const RingEndpoint> endpoints, std::span<const uint32_t> from, const HashRing* previous);
  void MergeBlocks(const HashRing* previous, std::span<const RingMember* const> fresh,
                   std::span<const uint16_t> numbers, std::span<uint8_t> touched);
  RingBlock MergeBlock(const HashRing* previous, size_t block, std::span<NewPoint> fresh) const;
  const RingMember& MemberOf(uint16_t number) const { return *members_[index_[number]]; }
  bool Has(uint16_t number) const { return number < index_.size() && index_[number] != RingStore::kNoMember; }
  void Swap(HashRing& other) noexcept;

  std::shared_ptr<RingStore> store_;  // null: empty
  std::vector<RingBlock> blocks_;
  uint32_t shift_ = 0;             // key >> shift_ is its block
  std::vector<uint16_t> index_;    // by member number: its place in the list, or kNoMember
  std::vector<uint16_t> numbers_;  // by place in the list, as the three below
  std::vector<const RingMember*> members_;
  std::vector<uint32_t> counts_;  // points asked for; equal points of one endpoint are kept once
  size_t point_count_ = 0;
  uint64_t digest_sum_ = 0;
  PointHash hash_ = &Point;  // null: points of BuildXds
};

}  // namespace sluice::upstream
