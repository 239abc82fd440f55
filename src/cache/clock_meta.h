// The clock cache's slot and its meta word: layout, states, transitions, and the owner of each field.
//
// Meta, from the low end:
//
//   | acquires: 30 | releases: 30 | standalone | occupied | shareable | visible |
//
//   references = acquires - releases, modulo 2^30
//   countdown  = min(3, acquires), while there are no references: rounds of the clock that the entry survives
//
// States:       occupied shareable visible
//   Empty          0         0        0      the counters mean nothing: lookups may add to them and leave it
//   Construction   1         0        0      one thread owns the slot and its plain fields; counters as above
//   Invisible      1         1        0      erased, or standalone; readers keep it until the last one leaves
//   Visible        1         1        1      lookups find it
//
// Transitions:
//   Empty -> Construction       insert: fetch_or of occupied; the thread that saw Empty owns it. Acquire, pairs with
//                               the store of Empty
//   Construction -> Visible     insert: a release store of state and counters; pairs with every acquire add
//                               of a reference
//   Visible -> Invisible        erase, under a reference: fetch_and, idempotent. Never back
//   shareable -> Construction   evict, or last reference gone: CAS from no references. Erase-if-last: CAS from one, the
//                               caller's own. Acquire, pairs with the release in every way of giving a reference back
//   Construction -> Empty       release store
//   references + 1              fetch_add of an acquire, before one knows whether the entry is the right one
//   references - 1              fetch_add of a release (read: the countdown rises), or fetch_sub of an acquire (as if
//                               never read). Release: our reads of the plain fields come before the next owner's writes
//   countdown - 1               CAS by the evicting thread, from no references
//
// Fields:  key, value, charge: written in Construction, read there and under a reference
//          tag, expires: written in Construction; read by any thread as a hint that is confirmed under a reference
//          cause: written under a reference before the entry becomes invisible, read in Construction
//          displacements: no part of the entry. How many entries have passed this slot on their path
//          and lie further on
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "cache/clock_types.h"

namespace sluice::cache {

inline constexpr uint32_t kCountdownMax = 3;

class Meta {
 public:
  static constexpr int kCounterBits = 30;
  static constexpr uint64_t kCounterMask = (uint64_t{1} << kCounterBits) - 1;
  static constexpr uint64_t kAcquireOne = 1;
  static constexpr uint64_t kReleaseOne = uint64_t{1} << kCounterBits;
  static constexpr uint64_t kStandalone = uint64_t{1} << 60;
  static constexpr uint64_t kOccupied = uint64_t{1} << 61;
  static constexpr uint64_t kShareable = uint64_t{1} << 62;
  static constexpr uint64_t kVisible = uint64_t{1} << 63;
  // The top bit of both counters: taken from both at once, which leaves their difference as it is.
  static constexpr uint64_t kCounterTop = uint64_t{1} << (kCounterBits - 1);
  static constexpr uint64_t kCounterTops = kCounterTop * (kAcquireOne | kReleaseOne);

  constexpr explicit Meta(uint64_t word) : word_(word) {}
  static constexpr Meta Construction() { return Meta(kOccupied); }
  static constexpr Meta Unreferenced(uint32_t countdown, bool visible) {
    return Meta(kOccupied | kShareable | (visible ? kVisible : 0) | countdown * (kAcquireOne | kReleaseOne));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool empty() const { return (word_ & (kOccupied | kShareable | kVisible)) == 0; }
  constexpr bool shareable() const { return (word_ & kShareable) != 0; }
  constexpr bool visible() const { return (word_ & kVisible) != 0; }
  constexpr bool standalone() const { return (word_ & kStandalone) != 0; }
  constexpr uint64_t acquires() const { return word_ & kCounterMask; }
  constexpr uint64_t releases() const { return (word_ >> kCounterBits) & kCounterMask; }
  constexpr uint64_t references() const { return (acquires() - releases()) & kCounterMask; }
  constexpr uint32_t countdown() const { return static_cast<uint32_t>(std::min<uint64_t>(acquires(), kCountdownMax)); }
  // Releases in the upper half, and at least 4 left without the top bit: lowering leaves the countdown at 3.
  constexpr bool NearOverflow() const {
    constexpr uint64_t kBits = kCounterTop | (kCountdownMax + 1);
    return (releases() & kBits) == kBits;
  }

 private:
  uint64_t word_;
};

template <typename Traits>
struct alignas(64) Slot {
  template <typename T>
  using Atomic = typename Traits::template Atomic<T>;

  Atomic<uint64_t> meta{0};
  Atomic<uint32_t> tag{0};  // bits of the key: other keys' entries are passed without a write
  Atomic<uint32_t> displacements{0};
  Atomic<int64_t> expires{0};  // base::TimePoint's count
  Key128 key;
  void* value = nullptr;
  size_t charge = 0;  // bytes
  Atomic<uint32_t> cause{0};
};
static_assert(sizeof(Slot<DefaultTraits>) == 64 && alignof(Slot<DefaultTraits>) == 64, "an entry is one cache line");

// The slots that a key may be in, in the order in which it is looked for. The step is odd, hence coprime to the table's
// size, so that size steps visit each slot once.
class Probe {
 public:
  Probe(const Key128& key, size_t mask) : index_(key.lo & mask), step_((key.hi | 1) & mask), mask_(mask) {}
  size_t index() const { return index_; }
  void Next() { index_ = (index_ + step_) & mask_; }

 private:
  size_t index_;
  size_t step_;
  size_t mask_;
};

}  // namespace sluice::cache
