// ClockTable: one shard's slots, and every way in which an entry is found, shared, erased and freed. The states and the
// orderings are in clock_meta.h.
//
// An open-addressed table that never moves an entry. A search ends at the first slot that no insert has passed
// (displacements = 0), or after all slots. Each entry is counted once in every slot before it on its path.
//
// Rules:
//  1. Plain fields are read under a reference, or by the owner of a slot in Construction; never otherwise.
//  2. A reference is taken before it is known whether the entry is the right one. If the slot turns out Empty or in
//     Construction it was none, and nothing is given back: the counters mean nothing there, and will be overwritten.
//  3. After a reference is given back the slot may hold another entry: only its atomics are looked at again.
//
// Thread safety: all but Init and the destructor, from any thread. Nothing here waits.
#pragma once

#include <memory>
#include <utility>

#include "base/check.h"
#include "cache/clock_meta.h"
#include "cache/slot_memory.h"

namespace sluice::cache {

template <typename Traits>
class ClockTable {
 public:
  using Slot = cache::Slot<Traits>;
  template <typename T>
  using Atomic = typename Traits::template Atomic<T>;

  ClockTable() = default;
  ClockTable(const ClockTable&) = delete;
  ClockTable& operator=(const ClockTable&) = delete;

  // `slots`: a power of two.
  void Init(size_t slots, Deleter deleter, void* context) {
    mask_ = slots - 1;
    deleter_ = deleter;
    context_ = context;
    slots_ = static_cast<Slot*>(AllocateSlots(slots * sizeof(Slot)));
    std::uninitialized_value_construct_n(slots_, slots);
  }

  // Frees every value and audits the books: no reference is left, and everything counted is found.
  ~ClockTable() {
    if (slots_ == nullptr) return;
    for (size_t i = 0; i <= mask_; ++i) {
      const Meta meta(slots_[i].meta.load(std::memory_order_acquire));
      if (meta.empty()) continue;
      SLUICE_CHECK(meta.shareable() && meta.references() == 0);  // else a handle outlives the cache
      Free(slots_[i], Cause::kDestroyed);
    }
    SLUICE_CHECK(usage_.load(std::memory_order_relaxed) == 0);
    SLUICE_CHECK(occupancy_.load(std::memory_order_relaxed) == 0);
    for (size_t i = 0; i <= mask_; ++i) SLUICE_CHECK(slots_[i].displacements.load(std::memory_order_relaxed) == 0);
    FreeSlots(slots_, (mask_ + 1) * sizeof(Slot));
  }

  // The visible entry with this key, if it is good at `now`, with a reference; else null. One RMW for a hit in its
  // home slot.
  Slot* Lookup(const Key128& key, int64_t now) {
    Probe probe(key, mask_);
    for (Slot* slot = Find(key, probe); slot != nullptr; slot = FindNext(key, probe)) {
      if (now < slot->expires.load(std::memory_order_relaxed)) [[likely]]
        return slot;
      EraseReferenced(*slot, Cause::kExpired);
    }
    return nullptr;
  }

  // Gives a reference back; not `useful`: as if the entry had never been read. One RMW.
  void Release(Slot& slot, bool useful) {
    // Release: our reads of the entry come before the next owner's writes; pairs with the acquire in TakeOver.
    const Meta seen(useful ? slot.meta.fetch_add(Meta::kReleaseOne, std::memory_order_release)
                           : slot.meta.fetch_sub(Meta::kAcquireOne, std::memory_order_release));
    SLUICE_DCHECK(seen.references() > 0);
    if (seen.visible()) [[likely]] {
      if (useful && seen.NearOverflow()) [[unlikely]]
        LowerCounters(slot);
    } else if (seen.references() == 1) {
      ReclaimInvisible(slot, seen);
    }
  }

  // Gives a reference back, and erases the entry if that was the last one. Decided and done in one step while the
  // reference is still ours, so that no successor in the slot can be hit.
  void ReleaseAndEraseIfLast(Slot& slot, bool useful) {
    uint64_t word = slot.meta.load(std::memory_order_relaxed);
    if (Meta(word).standalone()) return Release(slot, useful);
    while (true) {
      const Meta seen(word);
      SLUICE_DCHECK(seen.references() > 0);
      if (seen.references() == 1) {
        // Acquire: pairs with the releases of the former references.
        if (slot.meta.compare_exchange_weak(word, Meta::Construction().word(), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {
          return Free(slot, seen.visible() ? Cause::kErased : CauseOf(slot));
        }
        continue;
      }
      const uint64_t without = useful ? word + Meta::kReleaseOne : word - Meta::kAcquireOne;
      // Release: as in Release().
      if (slot.meta.compare_exchange_weak(word, without, std::memory_order_release, std::memory_order_relaxed)) {
        if (useful && seen.NearOverflow()) LowerCounters(slot);
        return;
      }
    }
  }

  // Makes every visible entry with this key invisible; the unreferenced ones are freed. How many there were.
  size_t Erase(const Key128& key) {
    size_t erased = 0;
    Probe probe(key, mask_);
    for (Slot* slot = Find(key, probe); slot != nullptr; slot = FindNext(key, probe)) {
      erased += EraseReferenced(*slot, Cause::kErased);
    }
    return erased;
  }

  // Visits visible entries, each under a reference; erases those for which fn(key, value) is true. How many.
  template <typename Fn>
  size_t EraseIf(const Fn& fn) {
    size_t erased = 0;
    for (size_t i = 0; i <= mask_; ++i) {
      Slot& slot = slots_[i];
      if (!Meta(slot.meta.load(std::memory_order_relaxed)).visible()) continue;
      const Meta seen(slot.meta.fetch_add(Meta::kAcquireOne, std::memory_order_acquire));
      if (!seen.shareable()) continue;  // rule 2
      if (seen.visible() && fn(std::as_const(slot.key), slot.value)) {
        erased += EraseReferenced(slot, Cause::kErased);
      } else {
        Release(slot, false);
      }
    }
    return erased;
  }

  size_t usage() const { return usage_.load(std::memory_order_relaxed); }
  size_t occupancy() const { return occupancy_.load(std::memory_order_relaxed); }
  size_t slots() const { return mask_ + 1; }

 protected:
  enum class Place : uint8_t { kClaimed, kPresent, kNone };

  // Makes a slot on the key's path the caller's, in Construction; or finds the key there already, whose countdown then
  // rises. An expired entry in the way is erased. Otherwise all is as before.
  Place Claim(const Key128& key, int64_t now, Slot*& claimed) {
    Probe probe(key, mask_);
    for (size_t i = 0; i <= mask_; ++i, probe.Next()) {
      Slot& slot = slots_[probe.index()];
      // Acquire: the former owner's reads and writes come before ours; pairs with the store of Empty in Vacate.
      if (Meta(slot.meta.load(std::memory_order_relaxed)).empty() &&
          Meta(slot.meta.fetch_or(Meta::kOccupied, std::memory_order_acquire)).empty()) {
        claimed = &slot;
        return Place::kClaimed;
      }
      if (Reference(slot, key)) {
        if (now < slot.expires.load(std::memory_order_relaxed)) {
          Release(slot, true);
          RollBack(key, &slot);
          return Place::kPresent;
        }
        EraseReferenced(slot, Cause::kExpired);
      }
      slot.displacements.fetch_add(1, std::memory_order_relaxed);
    }
    for (size_t i = 0; i <= mask_; ++i) slots_[i].displacements.fetch_sub(1, std::memory_order_relaxed);
    return Place::kNone;
  }

  // Fills a claimed slot and makes it visible to all threads. `references`: 1 to keep one.
  void Publish(Slot& slot, const Key128& key, void* value, size_t charge, int64_t expires, uint32_t countdown,
               uint64_t references) {
    slot.key = key;
    slot.value = value;
    slot.charge = charge;
    slot.expires.store(expires, std::memory_order_relaxed);
    slot.tag.store(TagOf(key), std::memory_order_relaxed);
    // Publishes the fields; pairs with the acquire in Reference and EraseIf.
    slot.meta.store(Meta::Unreferenced(countdown, true).word() + references * Meta::kAcquireOne,
                    std::memory_order_release);
  }

  // An entry outside of the table, with one reference; freed when that is given back.
  Slot* MakeStandalone(const Key128& key, void* value, size_t charge) {
    Slot* slot = new Slot();
    slot->key = key;
    slot->value = value;
    slot->charge = charge;
    slot->meta.store(Meta::Unreferenced(0, false).word() | Meta::kStandalone | Meta::kAcquireOne,
                     std::memory_order_relaxed);
    return slot;
  }

  // Hides an unreferenced entry from all other threads. False if it is not as in `seen` any more.
  bool TakeOver(Slot& slot, Meta seen) {
    uint64_t word = seen.word();
    // Acquire: pairs with the release of every reference that was given back.
    return slot.meta.compare_exchange_strong(word, Meta::Construction().word(), std::memory_order_acquire,
                                             std::memory_order_relaxed);
  }

  struct Vacated {
    void* value;
    size_t charge;
  };
  // Empties a slot in Construction. The books are the caller's: the charge, the slot, the value.
  Vacated Vacate(Slot& slot) {
    const Vacated vacated{slot.value, slot.charge};
    RollBack(slot.key, &slot);                      // now, because the key is the next owner's after the store
    slot.meta.store(0, std::memory_order_release);  // pairs with the fetch_or in Claim
    return vacated;
  }

  // Why an invisible entry that is ours became so.
  static Cause CauseOf(const Slot& slot) { return static_cast<Cause>(slot.cause.load(std::memory_order_relaxed)); }

  void Delete(void* value, Cause cause) const { deleter_(value, cause, context_); }

  // The slot that an insert will look at first, while it sees to the books.
  void Prefetch(const Key128& key) const { __builtin_prefetch(&slots_[key.lo & mask_], 1); }

  Slot& slot(size_t index) { return slots_[index & mask_]; }

 private:
  // The next visible entry with this key at or after `probe`, with a reference; null at the end of the path.
  Slot* Find(const Key128& key, Probe& probe) {
    const size_t home = probe.index();
    do {
      Slot& slot = slots_[probe.index()];
      if (Reference(slot, key)) return &slot;
      if (slot.displacements.load(std::memory_order_relaxed) == 0) return nullptr;
      probe.Next();
      Traits::OnSlowPath(SlowPath::kProbedOn);
    } while (probe.index() != home);
    return nullptr;
  }

  // The same after a match at `probe`.
  Slot* FindNext(const Key128& key, Probe& probe) {
    if (slots_[probe.index()].displacements.load(std::memory_order_relaxed) == 0) return nullptr;
    probe.Next();
    if (probe.index() == (key.lo & mask_)) return nullptr;
    return Find(key, probe);
  }

  // Takes a reference if the slot has a visible entry with this key.
  bool Reference(Slot& slot, const Key128& key) {
    // A hint: an entry that was inserted before this search began shows its own tag.
    if (slot.tag.load(std::memory_order_relaxed) != TagOf(key)) return false;
    // Acquire: pairs with the store in Publish, so that the key may be read.
    const Meta seen(slot.meta.fetch_add(Meta::kAcquireOne, std::memory_order_acquire));
    if (seen.visible() && slot.key == key) [[likely]]
      return true;
    Traits::OnSlowPath(SlowPath::kReferenceUndone);
    if (seen.shareable()) Release(slot, false);
    return false;
  }

  // Under a reference, which is given back. Whether this call made the entry invisible.
  bool EraseReferenced(Slot& slot, Cause cause) {
    slot.cause.store(static_cast<uint32_t>(cause), std::memory_order_relaxed);
    // Relaxed: the release that follows publishes the cause to the thread that frees the entry.
    const Meta seen(slot.meta.fetch_and(~Meta::kVisible, std::memory_order_relaxed));
    Release(slot, false);
    return seen.visible();
  }

  // No reference is left and no lookup can find it: the first thread to say so frees it. The slot may have another
  // entry by now, even another invisible one: that one is to be freed as well.
  __attribute__((noinline)) void ReclaimInvisible(Slot& slot, Meta seen) {
    Traits::OnSlowPath(SlowPath::kReclaimed);
    if (seen.standalone()) {
      void* value = slot.value;
      usage_.fetch_sub(slot.charge, std::memory_order_relaxed);
      delete &slot;
      CountFreed(Cause::kReleased);
      return Delete(value, Cause::kReleased);
    }
    seen = Meta(slot.meta.load(std::memory_order_relaxed));
    while (seen.shareable() && !seen.visible() && seen.references() == 0) {
      if (TakeOver(slot, seen)) return Free(slot, CauseOf(slot));
      seen = Meta(slot.meta.load(std::memory_order_relaxed));
    }
  }

  // A slot in Construction.
  void Free(Slot& slot, Cause cause) {
    const Vacated vacated = Vacate(slot);
    usage_.fetch_sub(vacated.charge, std::memory_order_relaxed);
    occupancy_.fetch_sub(1, std::memory_order_relaxed);
    CountFreed(cause);
    Delete(vacated.value, cause);
  }

  void CountFreed(Cause cause) { freed_[static_cast<size_t>(cause)].fetch_add(1, std::memory_order_relaxed); }

  // Relaxed: nothing is published, the difference stays. A second thread finds the bits gone; a successor has none.
  __attribute__((noinline)) static void LowerCounters(Slot& slot) {
    slot.meta.fetch_and(~Meta::kCounterTops, std::memory_order_relaxed);
    Traits::OnSlowPath(SlowPath::kCountersLowered);
  }

  // Takes back one displacement from every slot before `end` on the key's path.
  void RollBack(const Key128& key, const Slot* end) {
    for (Probe probe(key, mask_); &slots_[probe.index()] != end; probe.Next()) {
      slots_[probe.index()].displacements.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  static uint32_t TagOf(const Key128& key) { return static_cast<uint32_t>(key.lo >> 32); }

  // Read by every call, written by none.
  Slot* slots_ = nullptr;
  size_t mask_ = 0;
  Deleter deleter_ = nullptr;
  void* context_ = nullptr;

 protected:
  // Written by inserts, evictions and erasures; relaxed: they are sums, and publish nothing.
  alignas(64) Atomic<size_t> usage_{0};  // bytes, standalone entries included, and those of inserts under way
  Atomic<size_t> occupancy_{0};          // slots, those that inserts under way have reserved included
  Atomic<uint64_t> inserted_{0};
  Atomic<uint64_t> freed_[kCauses] = {};
};

}  // namespace sluice::cache
