// Store: the stored responses, in a table whose shape (shards and slots) follows the capacity.
//
// A capacity that calls for another shape moves the entries to another table. A worker may still be in the old one, so
// it stays, empty, and is used again when a reload comes back to its shape: shapes are powers of two, so there are few.
//
// Thread safety: every function from any thread. Configure, EraseIf and Evictions take a mutex; the others take none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "cache/clock_cache.h"
#include "proxy/options.h"
#include "proxy/response_cache/entry.h"
#include "proxy/response_cache/key.h"
#include "proxy/response_cache/policy.h"

namespace sluice::proxy {

// What a slot holds. Immutable.
struct StoredEntry {
  std::string key;
  CachedResponsePtr response;
  cache_policy::Lifetime life;
  uint64_t sequence = 0;  // Fetch::sequence of the one that it is from; 0: from another process

  // This client takes nothing older, and nothing stale (RFC 9111 5.2.1.1).
  bool older(std::chrono::seconds age_max, base::TimePoint now) const {
    return now - response->stored + std::chrono::seconds(response->age_at_arrival()) > age_max;
  }
  // Bytes: all that goes when the entry goes, if no client is reading it; with the counts of the two heap blocks.
  size_t charge() const { return sizeof(*this) + key.capacity() + response->bytes() + 2 * 16; }
};

class Store {
 public:
  explicit Store(const CacheOptions& options);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  // Takes over the capacity, also one for which the table is too small. `under_key(hash, fn)` runs fn where no other
  // thread stores or erases a response of this key; it is called for each entry that moves.
  using UnderKey = absl::FunctionRef<void(const cache::Key128& hash, absl::FunctionRef<void()> fn)>;
  void Configure(const CacheOptions& options, UnderKey under_key);

  // The table in use, for one operation: the next call may return another.
  cache::ClockCache& table() { return table_.load(std::memory_order_acquire)->cache; }

  // fn(const StoredEntry&) for the key's entry, under a reference; false if there is none. Never another key's.
  template <typename Fn>
  bool With(const CacheKey& key, base::TimePoint now, bool use, Fn&& fn) {
    cache::ClockCache& in = table();
    const cache::ClockCache::Handle handle = in.Lookup(key.hash, now);
    if (!handle) return false;
    const StoredEntry& entry = *static_cast<const StoredEntry*>(handle.value());
    const bool same = entry.key == key.bytes;
    if (same) fn(entry);
    in.Release(handle, /*useful=*/use && same);
    return same;
  }
  // Those for which fn is true. How many. No entry moves meanwhile.
  size_t EraseIf(absl::FunctionRef<bool(const StoredEntry&)> fn);

  // Since the start, over all tables.
  struct Evictions {
    uint64_t capacity = 0;  // to make room for bytes
    uint64_t slots = 0;     // to make room for an entry where the table had no slot left
    uint64_t expired = 0;
  };
  Evictions evictions() const;
  // Statistics: relaxed.
  std::atomic<uint64_t> purged{0}, replaced{0};

 private:
  struct Table {
    explicit Table(const CacheOptions& options);
    // Entries that went though bytes were left. Before the cache, which counts in it to its end. Relaxed.
    std::atomic<uint64_t> evicted_for_slots{0};
    cache::ClockCache cache;
  };
  static void Free(void* value, cache::Cause cause, void* table);
  static void Move(cache::ClockCache& from, cache::ClockCache& to, UnderKey under_key);

  const CacheOptions made_with_;  // all but the capacity needs a restart
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Table>> tables_;  // of different shapes; grows
  // Published after it is made; the tables live as long as the store.
  std::atomic<Table*> table_{nullptr};
};

}  // namespace sluice::proxy
