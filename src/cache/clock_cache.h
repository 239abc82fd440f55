// ClockCache: a fixed-capacity map from 128-bit keys to shared values, read without locks. docs/clock-cache.md
//
// After RocksDB's HyperClockCache: open-addressed shards of 64-byte slots; a hit is two atomic adds on the entry's own
// line (take a reference, give it back), and these adds are also the record of use that the clock's hand reads.
//
// Costs:   the tables are sized once, by the expected charge; eviction is approximate, and its work falls to inserts;
//          an erased entry may stay until the hand passes; two inserts of one key at once, or past a hole in its path,
//          may leave two entries of it, of which either is found until one ages out.
// Layers:  clock_meta.h (states, orderings) <- clock_table.h (entries) <- clock_shard.h (capacity, clock)
//          <- here (shards)
//
// Thread safety: everything but construction and destruction, from any thread; no call waits or suspends. Lifetime:
// every handle is given back before the destructor runs, which checks that and the books.
#pragma once

#include <absl/functional/function_ref.h>

#include <memory>

#include "base/clock.h"
#include "cache/clock_shard.h"

namespace sluice::cache {

template <typename Traits>
class BasicClockCache {
  using Shard = ClockShard<Traits>;
  using Slot = typename Shard::Slot;

 public:
  using Deleter = cache::Deleter;
  using Inserted = cache::Inserted;
  using Stats = cache::Stats;

  // A reference to an entry, to be given back once by Release; a plain value, like an iterator. Keep it for as long as
  // it takes to copy a counted pointer out: an entry with references cannot be evicted.
  class Handle {
   public:
    Handle() = default;
    explicit operator bool() const { return slot_ != nullptr; }
    // The following need a handle that is not empty.
    void* value() const { return slot_->value; }
    const Key128& key() const { return slot_->key; }
    size_t charge() const { return slot_->charge; }  // bytes

   private:
    friend class BasicClockCache;
    explicit Handle(Slot* slot) : slot_(slot) {}
    Slot* slot_ = nullptr;
  };

  BasicClockCache(const ClockCacheOptions& options, Deleter deleter, void* context)
      : shard_count_(ShardsFor(options)), shards_(std::make_unique<Shard[]>(shard_count_)) {
    ClockCacheOptions part = options;
    part.capacity = options.capacity / shard_count_;
    const size_t slots = SlotsFor(options);
    for (size_t i = 0; i < shard_count_; ++i) shards_[i].Init(part, slots, deleter, context);
  }
  BasicClockCache(const BasicClockCache&) = delete;
  BasicClockCache& operator=(const BasicClockCache&) = delete;

  // A handle to the value, or an empty one. An entry is good until just before `expires`; one that is not is erased
  // here.
  Handle Lookup(const Key128& key, base::TimePoint now) { return Handle(ShardOf(key).Lookup(key, Count(now))); }

  // Gives the reference back. `useful`: it counts as a use. `erase_if_last`: if it is the last one, the entry is
  // erased and freed; of several callers that ask for that at once, the last does it. The handle is void from here on.
  void Release(Handle handle, bool useful = true, bool erase_if_last = false) {
    Slot& slot = *handle.slot_;
    // The shard is known by the key, which may be read until the reference is given back.
    if (!erase_if_last) [[likely]] {
      ShardOf(slot.key).Release(slot, useful);
    } else {
      ShardOf(slot.key).ReleaseAndEraseIfLast(slot, useful);
    }
  }

  // The cache owns the value if it says kInserted or kStandalone; otherwise it stays the caller's. `charge`: bytes, 0
  // counts as 1. `want`: set to a handle in these two cases, and left alone otherwise; without it kStandalone does not
  // come. May call the deleter for others.
  Inserted Insert(const Key128& key, void* value, size_t charge, Priority priority, base::TimePoint expires,
                  base::TimePoint now, Handle* want = nullptr) {
    Slot* slot = nullptr;
    const Inserted outcome = ShardOf(key).Insert({key, value, charge == 0 ? 1 : charge, priority, Count(expires)},
                                                 Count(now), want != nullptr ? &slot : nullptr);
    if (slot != nullptr) *want = Handle(slot);
    return outcome;
  }

  // No lookup that starts after this finds an entry that was inserted before it. How many there were; those that are
  // being read are freed by the last reader.
  size_t Erase(const Key128& key) { return ShardOf(key).Erase(key); }

  // Visits the visible entries, each under a reference, and erases those for which fn is true; how many. Entries that
  // come or go meanwhile may be missed. Takes a look at every slot: for purges, not for calls. fn may call the cache.
  size_t EraseIf(absl::FunctionRef<bool(const Key128&, void* value)> fn) {
    size_t erased = 0;
    for (size_t i = 0; i < shard_count_; ++i) erased += shards_[i].EraseIf(fn);
    return erased;
  }

  // As many shards and slots as a cache with these options would have.
  bool HasShapeOf(const ClockCacheOptions& options) const {
    return shard_count_ == ShardsFor(options) && shards_[0].slots() == SlotsFor(options);
  }
  // Bytes. A lower capacity is paid for by the inserts that follow; a higher one gives no more slots.
  void SetCapacity(size_t capacity) {
    for (size_t i = 0; i < shard_count_; ++i) shards_[i].SetCapacity(capacity / shard_count_);
  }
  size_t capacity() const {
    return Sum([](const Shard& shard) { return shard.capacity(); });
  }
  // Bytes charged: by entries, standalone ones, and inserts under way.
  size_t usage() const {
    return Sum([](const Shard& shard) { return shard.usage(); });
  }
  // Slots in use: entries, erased ones that are still being read, and inserts under way.
  size_t entries() const {
    return Sum([](const Shard& shard) { return shard.occupancy(); });
  }
  // The largest charge that is not kTooLarge. Bytes.
  size_t entry_charge_max() const { return shards_[0].capacity() / kShardPartMax; }
  size_t shards() const { return shard_count_; }
  Stats stats() const {
    Stats stats;
    for (size_t i = 0; i < shard_count_; ++i) shards_[i].AddTo(stats);
    return stats;
  }

  // The meta word of a held entry, to put its counters near their end.
  static auto& MetaForTest(Handle handle) { return handle.slot_->meta; }

 private:
  // By bits that the place in the table does not depend on.
  Shard& ShardOf(const Key128& key) { return shards_[(key.hi >> 58) & (shard_count_ - 1)]; }

  template <typename Fn>
  size_t Sum(const Fn& fn) const {
    size_t sum = 0;
    for (size_t i = 0; i < shard_count_; ++i) sum += fn(shards_[i]);
    return sum;
  }

  static int64_t Count(base::TimePoint time) { return time.time_since_epoch().count(); }

  const size_t shard_count_;
  const std::unique_ptr<Shard[]> shards_;
};

using ClockCache = BasicClockCache<DefaultTraits>;

}  // namespace sluice::cache
