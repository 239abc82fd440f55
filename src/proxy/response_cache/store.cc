#include "proxy/response_cache/store.h"

#include <algorithm>
#include <utility>

namespace sluice::proxy {
namespace {

cache::ClockCacheOptions TableOptions(const CacheOptions& options) {
  cache::ClockCacheOptions out;
  out.capacity = options.capacity_bytes;
  out.entry_charge_expected = options.entry_bytes_expected;
  out.strict = options.strict;
  out.doorkeeper = options.doorkeeper;
  return out;
}

}  // namespace

Store::Table::Table(const CacheOptions& options) : cache(TableOptions(options), Free, this) {}

// An entry is evicted where its shard has no bytes or no slot left. Shards fill evenly: an eighth that is free says
// that it was for a slot.
void Store::Free(void* value, cache::Cause cause, void* table) {
  delete static_cast<StoredEntry*>(value);
  if (cause != cache::Cause::kEvicted) return;
  Table& in = *static_cast<Table*>(table);
  if (in.cache.usage() < in.cache.capacity() / 8 * 7) in.evicted_for_slots.fetch_add(1, std::memory_order_relaxed);
}

Store::Store(const CacheOptions& options) : made_with_(options) {
  tables_.push_back(std::make_unique<Table>(options));
  table_.store(tables_.front().get(), std::memory_order_release);
}

void Store::Configure(const CacheOptions& options, UnderKey under_key) {
  std::lock_guard lock(mutex_);
  CacheOptions sized = made_with_;
  sized.capacity_bytes = options.capacity_bytes;
  const cache::ClockCacheOptions wanted = TableOptions(sized);
  cache::ClockCache& former = table();
  if (former.HasShapeOf(wanted)) return former.SetCapacity(options.capacity_bytes);
  auto fits =
      std::find_if(tables_.begin(), tables_.end(), [&](const auto& each) { return each->cache.HasShapeOf(wanted); });
  if (fits == tables_.end()) {
    tables_.push_back(std::make_unique<Table>(sized));
    fits = tables_.end() - 1;
  }
  cache::ClockCache& next = (*fits)->cache;
  // A worker that was in this table when it was last left may have stored something since.
  next.EraseIf([](const cache::Key128&, void*) { return true; });
  next.SetCapacity(options.capacity_bytes);
  // From here on entries are stored in the new table; those that have not moved yet are missed once.
  table_.store(fits->get(), std::memory_order_release);
  Move(former, next, under_key);
}

void Store::Move(cache::ClockCache& from, cache::ClockCache& to, UnderKey under_key) {
  constexpr base::TimePoint kNow = base::TimePoint::min();  // what has expired moves as well, and goes when it is met
  from.EraseIf([&](const cache::Key128& hash, void*) {
    under_key(hash, [&] {
      // Asked for again: another thread may have replaced or erased the entry until its key was ours.
      const cache::ClockCache::Handle handle = from.Lookup(hash, kNow);
      if (!handle) return;
      auto entry = std::make_unique<StoredEntry>(*static_cast<const StoredEntry*>(handle.value()));
      from.Release(handle, /*useful=*/false);
      // What the new table has is newer. The doorkeeper refuses a key once: the old table's has let it in.
      const size_t charge = entry->charge();
      const base::TimePoint expires = entry->life.end();
      for (int knocks = 2; knocks > 0; --knocks) {
        const cache::Inserted outcome = to.Insert(hash, entry.get(), charge, cache::Priority::kLow, expires, kNow);
        if (outcome == cache::Inserted::kInserted || outcome == cache::Inserted::kStandalone)
          static_cast<void>(entry.release());  // the table's
        if (outcome != cache::Inserted::kNotAdmitted) break;
      }
      from.Erase(hash);
    });
    return true;
  });
}

size_t Store::EraseIf(absl::FunctionRef<bool(const StoredEntry&)> fn) {
  std::lock_guard lock(mutex_);
  return table().EraseIf(
      [&](const cache::Key128&, void* value) { return fn(*static_cast<const StoredEntry*>(value)); });
}

Store::Evictions Store::evictions() const {
  std::lock_guard lock(mutex_);
  Evictions out;
  for (const auto& table : tables_) {
    const cache::Stats stats = table->cache.stats();
    const auto freed = [&](cache::Cause cause) { return stats.freed[static_cast<size_t>(cause)]; };
    const uint64_t evicted = freed(cache::Cause::kEvicted);
    const uint64_t for_slots = std::min(evicted, table->evicted_for_slots.load(std::memory_order_relaxed));
    out.capacity += evicted - for_slots;
    out.slots += for_slots;
    out.expired += freed(cache::Cause::kExpired);
  }
  return out;
}

}  // namespace sluice::proxy
