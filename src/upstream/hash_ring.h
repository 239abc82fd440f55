// HashRing: consistent hashing with weights (Karger 1997). A key belongs to the first point clockwise.
// docs/hash-ring.md
//
//   points_   sorted 64-bit points           [ 12 | 40 | 41 | 97 | ... ]           key 42 -> 97
//   owners_   whose point it is, same place  [  3 |  0 |  3 |  1 | ... |  3 ]      (one more: the first
//   again, for the wrap) index_    by the key's top bits: where in points_ that arc of the circle starts, so
//   a pick looks at about two points own_      each endpoint's places in points_, ascending; only for picks
//   that many endpoints refuse
//
// An endpoint's points depend on its name, its weight and `base` alone: adding, removing or reweighting one
// moves keys only from or to that one. Health does not change a ring: Pick's `ok` refuses, and recovery
// brings exactly the old keys back.
//
// Immutable once built; any number of threads may read it. Knows hashes and names, no networks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace sluice::upstream {

struct RingEndpoint {
  std::string_view name;  // unique in the list
  double weight = 1.0;
};

class HashRing {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;
  // Endpoints of one ring: owners are 16 bits wide. Configuration stops earlier (upstream::kEndpointsMax).
  static constexpr size_t kRingEndpointsMax = 65535;
  // Points of one ring; 60 MB. A list that asks for more is built with the base halved until it fits, which
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

  // Endpoint i of the list is index i of Pick. It gets max(1, round(base x weight)) points. With `previous`,
  // the points of endpoints whose name and count are unchanged are merged from there; the result is the same
  // bit for bit.
  static HashRing Build(std::span<const RingEndpoint> endpoints, uint32_t base,
                        const HashRing* previous = nullptr, PointHash hash = &Point);

  // The endpoint of the first point at or after `key`, wrapping, that ok(index) accepts; each endpoint is
  // asked at most once, in the order of the circle. kNone if all refuse.
  template <class Ok>
  uint32_t Pick(uint64_t key, Ok&& ok) const {
    if (points_.empty()) return kNone;
    size_t at = Find(key);
    uint32_t owner = owners_[at];
    if (ok(owner)) [[likely]]
      return owner;
    return PickNext(at, ok);
  }

  // Share of the circle of each endpoint, by the lengths of its arcs.
  std::vector<double> Shares() const;
  // Equal for equal rings, whatever the order of the list was.
  uint64_t Digest() const;
  // Share of the circle whose endpoint, by name, differs. An empty ring differs everywhere from one that is
  // not.
  static double MovedShare(const HashRing& before, const HashRing& after);

  size_t endpoints() const { return names_.size(); }
  const std::string& name(uint32_t index) const { return names_[index]; }
  std::span<const uint64_t> points() const { return points_; }
  // Whose point points()[i] is.
  std::span<const uint16_t> owners() const { return {owners_.data(), points_.size()}; }
  bool operator==(const HashRing& other) const;

 private:
  struct NewPoint {
    uint64_t point;
    uint32_t rank;  // place of the owner's name among all names
    uint32_t owner;
  };

  // The place of the first point >= key; points_.size(), where owners_ repeats the first one, past the last.
  size_t Find(uint64_t key) const {
    size_t bucket = key >> shift_;
    const uint64_t* begin = points_.data() + index_[bucket];
    const uint64_t* end = points_.data() + index_[bucket + 1];
    if (end - begin > 16) [[unlikely]]
      return static_cast<size_t>(std::lower_bound(begin, end, key) - points_.data());
    while (begin != end && *begin < key) ++begin;
    return static_cast<size_t>(begin - points_.data());
  }
  uint32_t PickNext(size_t at, absl::FunctionRef<bool(uint32_t)> ok) const;
  uint32_t PickRemaining(size_t at, std::span<const uint64_t> asked,
                         absl::FunctionRef<bool(uint32_t)> ok) const;

  std::vector<NewPoint> HashPoints(std::span<const uint8_t> kept, std::span<const uint32_t> ranks,
                                   PointHash hash) const;
  void Merge(const HashRing* previous, std::span<const uint16_t> renamed, std::span<const uint32_t> ranks,
             std::span<const NewPoint> added);
  void IndexPoints();

  std::vector<uint64_t> points_;
  std::vector<uint16_t> owners_;
  std::vector<uint32_t> index_;
  uint32_t shift_ = 0;
  std::vector<uint32_t> own_;
  std::vector<uint32_t> own_begin_;  // endpoint i's part of own_ is [own_begin_[i], own_begin_[i + 1])
  std::vector<std::string> names_;
  std::vector<uint32_t> counts_;  // points asked for; equal points of one endpoint are kept once
  PointHash hash_ = &Point;
};

}  // namespace sluice::upstream
