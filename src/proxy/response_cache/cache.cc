#include "proxy/response_cache/cache.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/hash.h"
#include "http2/fields/grpc_type.h"
#include "proxy/response_cache/fetch_table.h"
#include "proxy/response_cache/sharing.h"
#include "proxy/response_cache/store.h"

namespace sluice::proxy {
namespace {

using Entry = StoredEntry;

NotCached ReasonOf(cache::Inserted outcome) {
  switch (outcome) {
    case cache::Inserted::kTooLarge:
      return NotCached::kResponseTooLarge;
    case cache::Inserted::kNotAdmitted:
      return NotCached::kNotAdmitted;
    // kPresent: another key with the same hash came in between; as rare as it is bad luck.
    case cache::Inserted::kPresent:
    case cache::Inserted::kFull:
    case cache::Inserted::kInserted:
    case cache::Inserted::kStandalone:
      return NotCached::kFull;
  }
  return NotCached::kFull;
}

}  // namespace

struct ResponseCache::Impl {
  Impl(const CacheOptions& options, metrics::Registry& registry)
      : metrics(registry), store(std::make_shared<Store>(options)) {
    Configure(options);
  }
  void Configure(const CacheOptions& options) {
    entry_bytes_max.store(options.entry_bytes_max, std::memory_order_relaxed);
    request_bytes_max.store(options.request_bytes_max, std::memory_order_relaxed);
    fetches_max.store(options.fetches_max, std::memory_order_relaxed);
    store->Configure(options,
                     [this](const cache::Key128& hash, absl::FunctionRef<void()> fn) { fetches.UnderKey(hash, fn); });
  }
  cache::Key128 Hash(std::string_view bytes) const {
    if (hash_for_test != nullptr) return hash_for_test(bytes);
    const base::Hash128 hash = secret_hash(bytes);
    return {hash.hi, hash.lo};
  }
  Found Find(const CacheKey& key, const CachePlan& plan, base::TimePoint now, bool use);
  std::optional<NotCached> Put(const Fetch& fetch, std::unique_ptr<Entry>& entry, base::TimePoint now);
  void AddCallbacks(metrics::Registry& registry);

  const base::SecretHash secret_hash;
  cache::Key128 (*hash_for_test)(std::string_view) = nullptr;
  // Options that a reload may change. Each stands for itself: relaxed.
  std::atomic<size_t> entry_bytes_max{0}, request_bytes_max{0};
  std::atomic<uint32_t> fetches_max{0};
  CacheMetrics metrics;
  const std::shared_ptr<Store> store;  // shared with the registry's callbacks, which may outlive the cache
  FetchTable fetches;                  // destroyed, and audited, before the store
};

void ResponseCache::Impl::AddCallbacks(metrics::Registry& registry) {
  const std::weak_ptr<Store> weak = store;
  const auto add = [&](std::string_view name, std::string_view help, auto value) {
    registry.AddCallback(name, help, "gauge", [weak, value]() -> std::vector<metrics::Sample> {
      const std::shared_ptr<Store> alive = weak.lock();
      if (alive == nullptr) return {};
      return {{{}, static_cast<double>(value(*alive))}};
    });
  };
  add("sluice_cache_bytes", "Memory of stored responses and their keys.", [](Store& s) { return s.table().usage(); });
  add("sluice_cache_capacity_bytes", "What sluice_cache_bytes may reach.",
      [](Store& s) { return s.table().capacity(); });
  add("sluice_cache_entries", "Stored responses.", [](Store& s) { return s.table().entries(); });
  registry.AddCallback("sluice_cache_evictions_total", "Responses that went, by cause.", "counter",
                       [weak]() -> std::vector<metrics::Sample> {
                         const std::shared_ptr<Store> alive = weak.lock();
                         if (alive == nullptr) return {};
                         const Store::Evictions evictions = alive->evictions();
                         const auto count = [](uint64_t n) { return static_cast<double>(n); };
                         return {{{{"cause", "capacity"}}, count(evictions.capacity)},
                                 {{{"cause", "expired"}}, count(evictions.expired)},
                                 {{{"cause", "slots"}}, count(evictions.slots)},
                                 {{{"cause", "purged"}}, count(alive->purged.load(std::memory_order_relaxed))},
                                 {{{"cause", "replaced"}}, count(alive->replaced.load(std::memory_order_relaxed))}};
                       });
}

ResponseCache::ResponseCache(const CacheOptions& options, metrics::Registry& registry)
    : impl_(std::make_unique<Impl>(options, registry)) {
  impl_->AddCallbacks(registry);
}
ResponseCache::~ResponseCache() = default;

void ResponseCache::Configure(const CacheOptions& options) { impl_->Configure(options); }
size_t ResponseCache::request_bytes_max() const { return impl_->request_bytes_max.load(std::memory_order_relaxed); }
size_t ResponseCache::response_bytes_max() const { return impl_->entry_bytes_max.load(std::memory_order_relaxed); }
void ResponseCache::SetHashForTest(cache::Key128 (*hash)(std::string_view)) { impl_->hash_for_test = hash; }
void ResponseCache::Count(NotCached reason, uint32_t worker) {
  impl_->metrics.not_cached[static_cast<size_t>(reason)]->Add(worker);
}
void ResponseCache::CountStale(uint32_t worker) { impl_->metrics.stale->Add(worker); }

const CachedMethod* ResponseCache::Find(const CacheRule& rule, const CanonicalRequest& request) {
  if (!rule.enabled()) return nullptr;
  const http2::Field* type = request.Find(http2::Token::kContentType);
  const http2::Field* verb = request.Find(http2::Token::kMethod);
  const http2::Field* path = request.Find(http2::Token::kPath);
  if (type == nullptr || !http2::IsGrpcType(type->value())) return nullptr;
  if (path == nullptr || verb == nullptr || verb->value() != "POST") return nullptr;
  return Find(rule, path->value());
}

const CachedMethod* ResponseCache::Find(const CacheRule& rule, std::string_view path) {
  const auto at = std::lower_bound(rule.methods.begin(), rule.methods.end(), path,
                                   [](const CachedMethod& method, std::string_view p) { return method.path < p; });
  return at != rule.methods.end() && at->path == path ? &*at : nullptr;
}

std::optional<CachePlan> ResponseCache::Plan(const CacheRule& rule, const CachedMethod& method,
                                             const CanonicalRequest& request, uint32_t worker) {
  CachePlan plan;
  if (const auto why = cache_policy::PlanFor(rule, method, request, plan)) {
    Count(*why, worker);
    return std::nullopt;
  }
  return plan;
}

bool ResponseCache::CheckSize(size_t size, uint32_t worker) {
  if (size < cache_key::kPrefixBytes) return Count(NotCached::kNotUnary, worker), false;
  if (size - cache_key::kPrefixBytes > request_bytes_max()) return Count(NotCached::kRequestTooLarge, worker), false;
  return true;
}

void ResponseCache::StartKey(std::string& bytes, const CacheRule& rule, std::string_view cluster,
                             const CanonicalRequest& request, size_t size) {
  cache_key::Start(bytes, rule, cluster, request, size);
}

bool ResponseCache::FinishKey(CacheKey& key, size_t size, uint32_t worker) {
  if (!cache_key::IsOneMessage(std::string_view(key.bytes).substr(key.bytes.size() - size)))
    return Count(NotCached::kNotUnary, worker), false;
  key.hash = impl_->Hash(key.bytes);
  return true;
}

bool ResponseCache::FinishKeyOf(CacheKey& key, size_t size) const {
  if (size < cache_key::kPrefixBytes || size - cache_key::kPrefixBytes > request_bytes_max()) return false;
  if (!cache_key::IsOneMessage(std::string_view(key.bytes).substr(key.bytes.size() - size))) return false;
  cache_key::SetMessageSize(key.bytes, size);
  key.hash = impl_->Hash(key.bytes);
  return true;
}

ResponseCache::Found ResponseCache::Impl::Find(const CacheKey& key, const CachePlan& plan, base::TimePoint now,
                                               bool use) {
  Found found;
  if (plan.revalidate) return found;
  store->With(key, now, use, [&](const Entry& entry) {
    const bool fresh = now < entry.life.fresh_until;
    if (plan.age_max && (!fresh || entry.older(*plan.age_max, now))) return;
    if (fresh) {
      found = {Found::Kind::kFresh, entry.response};
    } else if (now < entry.life.revalidate_until) {
      found = {Found::Kind::kStale, entry.response};
    } else if (now < entry.life.unavailable_until) {
      found = {Found::Kind::kMiss, entry.response};
    }
  });
  return found;
}

ResponseCache::Found ResponseCache::Lookup(const CacheKey& key, const CachePlan& plan, base::TimePoint now,
                                           uint32_t worker) {
  Found found = impl_->Find(key, plan, now, /*use=*/true);
  switch (found.kind) {
    case Found::Kind::kFresh:
      impl_->metrics.hits->Add(worker);
      break;
    case Found::Kind::kStale:
      impl_->metrics.stale->Add(worker);
      break;
    case Found::Kind::kMiss:
      impl_->metrics.misses->Add(worker);
      break;
  }
  return found;
}

bool ResponseCache::ServeFresh(const CacheKey& key, const CachePlan& plan, base::TimePoint now, uint32_t worker,
                               absl::FunctionRef<bool(const CachedResponse&)> serve) {
  if (plan.revalidate) return false;
  bool served = false;
  impl_->store->With(key, now, /*use=*/true, [&](const Entry& entry) {
    if (now >= entry.life.fresh_until || (plan.age_max && entry.older(*plan.age_max, now))) return;
    served = serve(*entry.response);
    if (served) impl_->metrics.hits->Add(worker);
  });
  return served;
}

ResponseCache::Joined ResponseCache::Join(const CacheKey& key, const CachePlan& plan, Fetch::Participant* participant,
                                          base::TimePoint deadline, base::TimePoint now,
                                          std::function<void()> on_abandoned, std::shared_ptr<Fetch>* fetch,
                                          uint32_t worker) {
  // The backend is told the time that a call has, as without a cache. A refresh has no call that waits.
  const base::TimePoint fetch_end =
      participant == nullptr ? base::DeadlineAfter(now, plan.rule->fetch_timeout) : deadline;
  // Calls with little time that come again and again must not hold up one with more: the second time it waits for none
  // that ends before half of its own time.
  const base::TimePoint least = !plan.joined_before        ? base::TimePoint::min()
                                : deadline == base::kNever ? deadline
                                                           : now + (deadline - now) / 2;
  const FetchTable::Request request{.hash = key.hash,
                                    .key = key.bytes,
                                    .fetch_deadline = fetch_end,
                                    .own = plan.revalidate,
                                    .least = least,
                                    .fetches_max = impl_->fetches_max.load(std::memory_order_relaxed),
                                    .client = plan.client,
                                    .hops = plan.hops};
  const auto stored_since = [&] {
    Found found = impl_->Find(key, plan, now, /*use=*/false);
    return found.kind == Found::Kind::kFresh ? std::move(found.response) : nullptr;
  };
  switch (impl_->fetches.Join(request, participant, std::move(on_abandoned), stored_since, fetch)) {
    case FetchTable::Joined::kStarted:
      impl_->metrics.fetches->Add(worker);
      return Joined::kStarted;
    case FetchTable::Joined::kJoined:
    case FetchTable::Joined::kAnswered:
      if (participant != nullptr) impl_->metrics.coalesced->Add(worker);
      return Joined::kJoined;
    case FetchTable::Joined::kFull:
      Count(NotCached::kFetchesFull, worker);
      return Joined::kAlone;
  }
  return Joined::kAlone;
}

// Under the key's mutex, so that no other thread stores or purges this key's fetch meanwhile. Null `entry`: what is
// there is out of date.
std::optional<NotCached> ResponseCache::Impl::Put(const Fetch& fetch, std::unique_ptr<Entry>& entry,
                                                  base::TimePoint now) {
  cache::ClockCache& table = store->table();
  std::optional<NotCached> keep_old;
  store->With({fetch.hash(), fetch.key()}, now, /*use=*/false, [&](const Entry& old) {
    // An error that is cached for a second must not push out the answer that is kept for just that case.
    const bool failed = entry != nullptr && !cache_policy::Answered(entry->response->status);
    if (failed && cache_policy::Answered(old.response->status) && now < old.life.end()) keep_old = NotCached::kStatus;
    if (old.sequence > fetch.sequence()) keep_old = NotCached::kSuperseded;
  });
  if (keep_old) return keep_old;
  // The table keeps an old value on insert.
  const size_t replaced = table.Erase(fetch.hash());
  store->replaced.fetch_add(replaced, std::memory_order_relaxed);
  if (entry == nullptr) return std::nullopt;

  const size_t charge = entry->charge();
  const base::TimePoint expires = entry->life.end();
  cache::Inserted outcome = cache::Inserted::kFull;
  // The doorkeeper refuses a key once; one that was in the table a moment ago needs no second knock.
  for (int knocks = replaced > 0 ? 2 : 1; knocks > 0; --knocks) {
    outcome = table.Insert(fetch.hash(), entry.get(), charge, cache::Priority::kLow, expires, now);
    if (outcome != cache::Inserted::kNotAdmitted) break;
  }
  if (outcome != cache::Inserted::kInserted && outcome != cache::Inserted::kStandalone) return ReasonOf(outcome);
  static_cast<void>(entry.release());  // the table's
  return std::nullopt;
}

void ResponseCache::Complete(const std::shared_ptr<Fetch>& fetch, const CachePlan& plan, FetchResult result,
                             base::TimePoint now, uint32_t worker) {
  std::unique_ptr<Entry> entry;
  std::optional<NotCached> refused;
  bool out_of_date = false;
  if (result.response != nullptr) {
    const cache_policy::Lifetime life = cache_policy::LifetimeOf(result, plan, response_bytes_max(), now);
    refused = life.refused;
    const bool ok = !result.cause && result.response->status == GrpcCode::kOk;
    result.leaders_only =
        refused && (ok ? cache_policy::IsForOneCaller(*plan.rule, *result.response) : !fetch_sharing::IsForAll(result));
    // The upstream has said something else since. Of a client that asked past what is stored it takes nothing away.
    out_of_date = refused && ok && !plan.revalidate;
    if (!refused) entry.reset(new Entry{fetch->key(), result.response, life, fetch->sequence()});
  }
  const bool storable = entry != nullptr;
  auto shared = std::make_shared<const FetchResult>(std::move(result));
  const FetchTable::Stored stored = impl_->fetches.Complete(fetch, std::move(shared), [&] {
    if (!storable && !out_of_date) return;
    if (const auto why = impl_->Put(*fetch, entry, now); why && storable) refused = why;
  });
  if (storable && stored == FetchTable::Stored::kPurged) refused = NotCached::kPurged;
  if (refused && stored != FetchTable::Stored::kAbandoned) Count(*refused, worker);
}

size_t ResponseCache::Purge(const CachePurge& what) {
  // In this order: see fetch_table.h. What is stored between the two is from fetches that began after the purge; it
  // goes too, which costs a fetch.
  impl_->fetches.Forget([&](std::string_view key) { return cache_key::Covers(what, key); });
  const size_t purged = impl_->store->EraseIf([&](const Entry& entry) { return cache_key::Covers(what, entry.key); });
  impl_->store->purged.fetch_add(purged, std::memory_order_relaxed);
  return purged;
}

void ResponseCache::ForEachStored(absl::FunctionRef<void(const Stored&)> fn) const {
  (void)impl_->store->EraseIf([&](const Entry& entry) {
    fn({entry.key, *entry.response, entry.life});
    return false;
  });
}

bool ResponseCache::Restore(std::string key, CachedResponsePtr response, const cache_policy::Lifetime& life,
                            base::TimePoint now) {
  if (!cache_key::IsKey(key) || life.end() <= now || response->message.size() > response_bytes_max()) return false;
  const cache::Key128 hash = impl_->Hash(key);
  std::unique_ptr<Entry> entry(new Entry{std::move(key), std::move(response), life});
  const size_t charge = entry->charge();
  cache::Inserted outcome = cache::Inserted::kFull;
  // The doorkeeper refuses a key once: the other process's has let this one in.
  for (int knocks = 2; knocks > 0; --knocks) {
    outcome = impl_->store->table().Insert(hash, entry.get(), charge, cache::Priority::kLow, life.end(), now);
    if (outcome != cache::Inserted::kNotAdmitted) break;
  }
  if (outcome != cache::Inserted::kInserted && outcome != cache::Inserted::kStandalone) return false;
  static_cast<void>(entry.release());  // the table's
  return true;
}

CacheStats ResponseCache::stats() const {
  const CacheMetrics& metrics = impl_->metrics;
  Store& store = *impl_->store;
  const Store::Evictions evictions = store.evictions();
  CacheStats out{.capacity_bytes = store.table().capacity(),
                 .usage_bytes = store.table().usage(),
                 .entries = store.table().entries(),
                 .fetches = impl_->fetches.fetches(),
                 .hits = metrics.hits->Value(),
                 .misses = metrics.misses->Value(),
                 .stale = metrics.stale->Value(),
                 .coalesced = metrics.coalesced->Value(),
                 .evicted = evictions.capacity + evictions.slots,
                 .expired = evictions.expired,
                 .purged = store.purged.load(std::memory_order_relaxed),
                 .replaced = store.replaced.load(std::memory_order_relaxed)};
  for (size_t i = 0; i < kNotCachedReasons; ++i) out.not_cached[i] = metrics.not_cached[i]->Value();
  return out;
}

}  // namespace sluice::proxy
