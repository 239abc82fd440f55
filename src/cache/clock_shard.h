// ClockShard: a table with a capacity. Admission, accounting, and the hand of the clock that makes room.
//
// An insert goes: admit (size, doorkeeper) -> reserve a slot -> charge the usage -> evict what is owed for both ->
// claim a place on the path -> publish. Whatever fails puts back what came before it.
//
//   strict      usage rises by CAS, to the capacity at most; what is missing must be evicted, or the insert fails
//   not strict  usage rises regardless; evicted is what is missing, and a little more once the capacity is passed,
//               because entries may be such that each insert would otherwise free just what it takes
//
// Thread safety: all but Init and the destructor, from any thread. Nothing here waits.
#pragma once

#include <algorithm>

#include "cache/cache_shape.h"
#include "cache/clock_table.h"
#include "cache/doorkeeper.h"

namespace sluice::cache {

enum class Inserted : uint8_t {
  kInserted,     // the cache has the value
  kPresent,      // the key was there and its value stays; it counts as read
  kNotAdmitted,  // a stranger to the doorkeeper, or expired already
  kFull,         // everything is being read, or the table has no place
  kTooLarge,     // above an eighth of a shard
  kStandalone,   // the cache has the value, outside of the table and only for the handle that was wanted
};

template <typename Traits>
class ClockShard : public ClockTable<Traits> {
  using Base = ClockTable<Traits>;
  template <typename T>
  using Atomic = typename Traits::template Atomic<T>;

 public:
  using Slot = typename Base::Slot;

  // Everything that an insert needs to know of an entry.
  struct Entry {
    const Key128& key;
    void* value;
    size_t charge;
    Priority priority;
    int64_t expires;
  };

  // `options.capacity` is this shard's.
  void Init(const ClockCacheOptions& options, size_t slots, Deleter deleter, void* context) {
    Base::Init(slots, deleter, context);
    capacity_.store(options.capacity, std::memory_order_relaxed);
    occupancy_max_ = slots * 84 / 100;
    strict_ = options.strict;
    effort_cap_ = std::max(1u, options.effort_cap);
    guarded_ = options.doorkeeper;
    if (guarded_) doorkeeper_.Init(slots);
  }

  // `want`: null, or where to put a reference to the entry if the cache takes it.
  Inserted Insert(const Entry& entry, int64_t now, Slot** want) {
    const size_t capacity = capacity_.load(std::memory_order_relaxed);
    if (entry.charge > capacity / kShardPartMax) return Refuse(too_large_, Inserted::kTooLarge);
    if (entry.expires <= now || !Admit(entry, capacity)) return Refuse(not_admitted_, Inserted::kNotAdmitted);

    this->Prefetch(entry.key);
    const bool owes_slot = this->occupancy_.fetch_add(1, std::memory_order_relaxed) >= occupancy_max_;
    if (owes_slot) evicted_for_slots_.fetch_add(1, std::memory_order_relaxed);
    const bool room = strict_ ? ChargeStrict(entry.charge, capacity, owes_slot, now)
                              : ChargeLoose(entry.charge, capacity, owes_slot, now);
    if (!room) {
      this->occupancy_.fetch_sub(1, std::memory_order_relaxed);
      if (strict_ || want == nullptr) return Refuse(full_, Inserted::kFull);
      this->usage_.fetch_add(entry.charge, std::memory_order_relaxed);
      return Standalone(entry, want);
    }
    // Now, while the line is here; taken back if it was too early.
    this->inserted_.fetch_add(1, std::memory_order_relaxed);
    Slot* slot;
    switch (this->Claim(entry.key, now, slot)) {
      case Base::Place::kClaimed:
        this->Publish(*slot, entry.key, entry.value, entry.charge, entry.expires, CountdownFor(entry.priority),
                      want != nullptr ? 1 : 0);
        if (want != nullptr) *want = slot;
        return Inserted::kInserted;
      case Base::Place::kPresent:
        this->inserted_.fetch_sub(1, std::memory_order_relaxed);
        this->occupancy_.fetch_sub(1, std::memory_order_relaxed);
        this->usage_.fetch_sub(entry.charge, std::memory_order_relaxed);
        return Refuse(present_, Inserted::kPresent);
      case Base::Place::kNone:  // others filled the path behind us
        break;
    }
    this->inserted_.fetch_sub(1, std::memory_order_relaxed);
    this->occupancy_.fetch_sub(1, std::memory_order_relaxed);
    if (want != nullptr) return Standalone(entry, want);
    this->usage_.fetch_sub(entry.charge, std::memory_order_relaxed);
    return Refuse(full_, Inserted::kFull);
  }

  // A lower one is paid for by the inserts that follow.
  void SetCapacity(size_t capacity) { capacity_.store(capacity, std::memory_order_relaxed); }
  size_t capacity() const { return capacity_.load(std::memory_order_relaxed); }

  void AddTo(Stats& stats) const {
    auto add = [](uint64_t& to, const Atomic<uint64_t>& from) { to += from.load(std::memory_order_relaxed); };
    add(stats.inserted, this->inserted_);
    add(stats.present, present_);
    add(stats.not_admitted, not_admitted_);
    add(stats.full, full_);
    add(stats.too_large, too_large_);
    add(stats.standalone, standalone_);
    for (size_t i = 0; i < kCauses; ++i) add(stats.freed[i], this->freed_[i]);
    add(stats.slots_examined, slots_examined_);
    add(stats.pinned_seen, pinned_seen_);
    add(stats.effort_capped, effort_capped_);
    add(stats.evicted_for_slots, evicted_for_slots_);
    stats.slots += this->slots();
  }

 private:
  // Rounds of the table that an eviction makes at most. The last takes what three have brought to zero; the original
  // stops after three, and finds nothing where every entry starts at three.
  static constexpr size_t kRoundsMax = kCountdownMax + 1;
  static constexpr size_t kStep = 4;  // slots that an eviction takes from the clock at a time

  struct Evicted {
    size_t charge = 0;
    size_t count = 0;
    size_t causes[kCauses] = {};
    size_t pinned = 0;   // passed
    size_t lowered = 0;  // countdowns
  };

  Inserted Refuse(Atomic<uint64_t>& counter, Inserted why) {
    counter.fetch_add(1, std::memory_order_relaxed);
    return why;
  }

  Inserted Standalone(const Entry& entry, Slot** want) {
    standalone_.fetch_add(1, std::memory_order_relaxed);
    *want = this->MakeStandalone(entry.key, entry.value, entry.charge);
    return Inserted::kStandalone;
  }

  // The doorkeeper notes every key, and stops unknown ones once an entry would have to be evicted for them.
  bool Admit(const Entry& entry, size_t capacity) {
    if (!guarded_ || doorkeeper_.Note(entry.key)) return true;
    return this->usage() + entry.charge <= capacity && this->occupancy() < occupancy_max_;
  }

  uint32_t CountdownFor(Priority priority) const {
    const uint32_t rounds = kCountdownMax - static_cast<uint32_t>(priority);
    return guarded_ ? std::max(1u, rounds - 1) : rounds;
  }

  // True: the charge is in usage and the debts are paid. Usage is at no time above the capacity, unless that was
  // lowered.
  bool ChargeStrict(size_t charge, size_t capacity, bool owes_slot, int64_t now) {
    size_t before = this->usage_.load(std::memory_order_relaxed);
    size_t raised;
    do {
      raised = std::min(charge, capacity - std::min(capacity, before));
    } while (raised != 0 && !this->usage_.compare_exchange_weak(before, before + raised, std::memory_order_relaxed,
                                                                std::memory_order_relaxed));
    const size_t over = before + charge > capacity ? before + charge - capacity : 0;
    if (over == 0 && !owes_slot) return true;
    const Evicted evicted = Evict(std::max<size_t>(over, owes_slot ? 1 : 0), now);
    const bool paid = evicted.charge >= over && (!owes_slot || evicted.count > 0);
    // Of what was evicted, `charge - raised` passes to the new entry. Never negative: raised + over >= charge.
    this->usage_.fetch_sub(evicted.charge + raised - (paid ? charge : 0), std::memory_order_relaxed);
    Book(evicted);
    return paid;
  }

  // True: the charge is in usage, and a slot is there.
  bool ChargeLoose(size_t charge, size_t capacity, bool owes_slot, int64_t now) {
    const size_t before = this->usage_.load(std::memory_order_relaxed);
    size_t wanted = owes_slot ? 1 : 0;
    if (before > capacity) {
      wanted = charge + std::min(capacity / 1024, charge) + 1;
    } else if (before + charge > capacity) {
      wanted = std::max(wanted, before + charge - capacity);
    }
    Evicted evicted;
    if (wanted != 0) {
      evicted = Evict(wanted, now);
      Book(evicted);
      if (owes_slot && evicted.count == 0) return false;
    }
    this->usage_.fetch_add(charge - evicted.charge, std::memory_order_relaxed);  // modulo 2^64, as the sum is
    return true;
  }

  // All but the charges, in one go: two inserts at once would pass these lines to and fro.
  void Book(const Evicted& evicted) {
    if (evicted.count != 0) this->occupancy_.fetch_sub(evicted.count, std::memory_order_relaxed);
    for (size_t i = 0; i < kCauses; ++i) {
      if (evicted.causes[i] != 0) this->freed_[i].fetch_add(evicted.causes[i], std::memory_order_relaxed);
    }
  }

  // Frees entries worth `wanted` bytes, or as much as can be had within kRoundsMax and the effort cap. The caller takes
  // the sums off usage and occupancy.
  Evicted Evict(size_t wanted, int64_t now) {
    Evicted evicted;
    size_t examined = 0;
    bool capped = false;
    do {
      const size_t hand = clock_.fetch_add(kStep, std::memory_order_relaxed);
      for (size_t i = 0; i < kStep; ++i) Visit(this->slot(hand + i), now, evicted);
      examined += kStep;
      // The original counts the freed alone. Where a few entries are free among many pinned, all the work is lowering
      // their countdowns; giving up before the third time leaves usage above the capacity.
      const size_t done = evicted.count + evicted.lowered / kCountdownMax;
      capped = !strict_ && (done + 1) * effort_cap_ <= evicted.pinned;
    } while (evicted.charge < wanted && !capped && examined < kRoundsMax * this->slots());
    slots_examined_.fetch_add(examined, std::memory_order_relaxed);
    if (evicted.pinned != 0) pinned_seen_.fetch_add(evicted.pinned, std::memory_order_relaxed);
    if (capped && evicted.charge < wanted) effort_capped_.fetch_add(1, std::memory_order_relaxed);
    return evicted;
  }

  // The hand passes a slot: one round less to live, or the end.
  void Visit(Slot& slot, int64_t now, Evicted& evicted) {
    uint64_t word = slot.meta.load(std::memory_order_relaxed);
    const Meta seen(word);
    if (!seen.shareable()) return;
    if (seen.references() != 0) {
      ++evicted.pinned;
      return;
    }
    // Perhaps another entry's time by now: then that one goes early.
    const bool expired = slot.expires.load(std::memory_order_relaxed) <= now;
    if (seen.visible() && seen.countdown() > 0 && !expired) {
      ++evicted.lowered;
      const uint32_t left = std::min(seen.countdown() - 1, kCountdownMax - 1);
      // Failure: it has just been read. Relaxed: nothing is read or published; a CAS continues the releases before
      // it.
      slot.meta.compare_exchange_strong(word, Meta::Unreferenced(left, true).word(), std::memory_order_relaxed,
                                        std::memory_order_relaxed);
      return;
    }
    if (!this->TakeOver(slot, seen)) return;
    const Cause cause = !seen.visible()                                       ? Base::CauseOf(slot)
                        : slot.expires.load(std::memory_order_relaxed) <= now ? Cause::kExpired
                                                                              : Cause::kEvicted;
    const typename Base::Vacated vacated = this->Vacate(slot);
    evicted.charge += vacated.charge;
    ++evicted.count;
    ++evicted.causes[static_cast<size_t>(cause)];
    this->Delete(vacated.value, cause);
  }

  // Set once, or by hand.
  size_t occupancy_max_ = 0;
  uint32_t effort_cap_ = 0;
  bool strict_ = false;
  bool guarded_ = false;
  Doorkeeper<Traits> doorkeeper_;
  Atomic<size_t> capacity_{0};

  // A line for what an eviction writes, and one for what is not usual.
  alignas(64) Atomic<uint64_t> clock_{0};  // slots passed by the hand; the low bits are its place
  Atomic<uint64_t> slots_examined_{0}, pinned_seen_{0}, effort_capped_{0};
  alignas(64) Atomic<uint64_t> present_{0}, not_admitted_{0}, full_{0}, too_large_{0}, standalone_{0};
  Atomic<uint64_t> evicted_for_slots_{0};
};

}  // namespace sluice::cache
