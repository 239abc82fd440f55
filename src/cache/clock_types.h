// The clock cache's vocabulary: keys, priorities, causes, options and statistics.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::cache {

// A 128-bit hash of the caller's key, under a secret key where clients choose the keys: every bit is used as it is,
// for the shard, the place in the table and the comparison. Two keys with one hash are one key here, so the caller
// compares what it has stored in the value.
struct Key128 {
  uint64_t hi = 0, lo = 0;
  bool operator==(const Key128&) const = default;
};

// How many rounds of the clock an entry survives without being read: 3, 2, 1. With the doorkeeper one less, but at
// least 1. Reading an entry three times gives every one of them 3.
enum class Priority : uint8_t { kHigh, kLow, kBottom };

// Why the cache let a value go.
enum class Cause : uint8_t {
  kEvicted,    // to make room
  kExpired,    // its time had passed when a lookup or the clock met it
  kErased,     // Erase, EraseIf, or Release with erase_if_last
  kReleased,   // a standalone entry, which lives as long as its handle
  kDestroyed,  // the cache's end
};
inline constexpr size_t kCauses = 5;

// Called once for every value that the cache took, when nothing can refer to it any more; on the thread that
// noticed, with no lock held. May call the cache, but not from its destructor.
using Deleter = void (*)(void* value, Cause cause, void* context);

struct ClockCacheOptions {
  size_t capacity = 32 << 20;           // bytes, the sum of charges; split evenly over the shards
  size_t entry_charge_expected = 4096;  // bytes. Sizes the tables for good: see Stats::evicted_for_slots
  uint32_t shards = 0;                  // rounded up to a power of two, at most 64. 0: as many as have 32 MiB each
  // Usage never passes the capacity; what does not fit is refused. Else an insert beside pinned entries may pass it.
  bool strict = false;
  // An insert stops looking for room after this many pinned entries for each one freed, or three brought nearer to it,
  // and for one more. Not when strict. At least 1. Higher holds the capacity better where most entries are pinned,
  // lower costs less there.
  uint32_t effort_cap = 30;
  // Into a full shard only keys come that were refused once within about the last `slots` inserts. A scan then leaves
  // the cache as it is, and the first response to a key is not cached.
  bool doorkeeper = true;
};

// Sums over the shards, each number read on its own. Hits are not here: counting them would cost a third write on a
// hit.
struct Stats {
  uint64_t inserted = 0;
  uint64_t present = 0;       // inserts that found their key
  uint64_t not_admitted = 0;  // refused by the doorkeeper, or expired on arrival
  uint64_t full = 0;          // refused: no room, nothing to evict
  uint64_t too_large = 0;
  uint64_t standalone = 0;       // outside of the table, for want of room in it
  uint64_t freed[kCauses] = {};  // by cause
  uint64_t slots_examined = 0;   // by evictions
  uint64_t pinned_seen = 0;      // of these, entries that were being read
  uint64_t effort_capped = 0;    // evictions that gave up
  // Inserts that had bytes but no slot left: entry_charge_expected is larger than the charges are, and capacity lies
  // idle.
  uint64_t evicted_for_slots = 0;
  size_t slots = 0;
};

// What a hit in its home slot does not do.
enum class SlowPath : uint8_t {
  kProbedOn,         // the entry is not in the first slot of its path
  kReferenceUndone,  // a reference was taken of another key's entry
  kCountersLowered,  // the counters came near their end
  kReclaimed,        // the last reference to an erased entry was given back
};

// The seam for tests: the atomics, and a hook at every slow path.
struct DefaultTraits {
  template <typename T>
  using Atomic = std::atomic<T>;
  static void OnSlowPath(SlowPath) {}
};

}  // namespace sluice::cache
