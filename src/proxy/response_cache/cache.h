// ResponseCache: responses of unary calls by method, message and chosen metadata, and the fetches under way for them.
// One for the process; knows HTTP/2 header lists and gRPC, not calls. docs/response-cache.md
//
// Key: cluster, path, authority, the content and encoding fields that decide whether a client can read a response
// (content-type, grpc-encoding, grpc-accept-encoding), the values of `vary` and the message. A keyed 128-bit hash finds
// the slot; the stored key is compared whole, so no client reads another's response because two hashes are equal.
//
// Thread safety: every function from any thread; locks are held for a few instructions. Nothing here suspends.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "metrics/registry.h"
#include "proxy/canonical/request.h"
#include "proxy/options.h"
#include "proxy/response_cache/entry.h"
#include "proxy/response_cache/fetch.h"
#include "proxy/response_cache/key.h"
#include "proxy/response_cache/policy.h"

namespace sluice::proxy {

// Written by `worker` (metrics::Registry's slot), read on any thread.
struct CacheMetrics {
  explicit CacheMetrics(metrics::Registry& registry);
  metrics::Counter *hits, *misses, *stale, *coalesced, *fetches;
  std::array<metrics::Counter*, kNotCachedReasons> not_cached;
};

struct CacheStats {
  size_t capacity_bytes = 0, usage_bytes = 0, entries = 0, fetches = 0;
  uint64_t hits = 0, misses = 0, stale = 0, coalesced = 0;
  uint64_t evicted = 0, expired = 0, purged = 0, replaced = 0;
  std::array<uint64_t, kNotCachedReasons> not_cached{};
};

class ResponseCache {
 public:
  ResponseCache(const CacheOptions& options, metrics::Registry& registry);
  ~ResponseCache();  // no participant and no fetch is left
  ResponseCache(const ResponseCache&) = delete;
  ResponseCache& operator=(const ResponseCache&) = delete;

  // What a reload may change: capacity, the maxima. The rest needs a restart.
  void Configure(const CacheOptions& options);
  size_t request_bytes_max() const;
  // Bytes of a response that a fetch may hold; above it goes to one call alone. entry_bytes_max.
  size_t response_bytes_max() const;

  // Null if no rule covers the method (not counted as anything).
  static const CachedMethod* Find(const CacheRule& rule, std::string_view path);
  // The request's. Only gRPC calls are covered, each of them a POST: another method is not in the key, so what it is
  // answered is not for others.
  static const CachedMethod* Find(const CacheRule& rule, const CanonicalRequest& request);
  // From the request headers: authorization, cache-control. nullopt (counted): go to the upstream, store nothing.
  // `worker`: slot of the counters.
  std::optional<CachePlan> Plan(const CacheRule& rule, const CachedMethod& method, const CanonicalRequest& request,
                                uint32_t worker);
  // Makes `key` the request's; its memory is used again. `message`: all DATA of the request, in pieces: a range of
  // base::Slice. False (counted), and no key, if it is not exactly one gRPC message, or a too large one.
  template <typename Pieces>
  bool MakeKey(const CacheRule& rule, std::string_view cluster, const CanonicalRequest& request, const Pieces& message,
               uint32_t worker, CacheKey& key) {
    size_t size = 0;
    for (const auto& piece : message) size += piece.size();
    if (!CheckSize(size, worker)) return false;
    key.bytes.clear();
    StartKey(key.bytes, rule, cluster, request, size);
    for (const auto& piece : message) key.bytes.append(piece.view());
    return FinishKey(key, size, worker);
  }

  // The same by `head`, which cache_key::Start wrote for a message of no bytes. Counts nothing.
  template <typename Pieces>
  bool MakeKey(std::string_view head, const Pieces& message, CacheKey& key) {
    key.bytes.assign(head);
    for (const auto& piece : message) key.bytes.append(piece.view());
    return FinishKeyOf(key, key.bytes.size() - head.size());
  }

  struct Found {
    enum class Kind : uint8_t { kMiss, kFresh, kStale } kind = Kind::kMiss;
    // kStale: may be served while it is fetched anew. kMiss: may be served if fetching fails with UNAVAILABLE, or null.
    CachedResponsePtr response;
  };
  // Counts a hit, a miss or a stale answer. Two read-modify-writes on the entry's slot, one on the response's count.
  Found Lookup(const CacheKey& key, const CachePlan& plan, base::TimePoint now, uint32_t worker);
  // Lookup for a caller that uses fresh responses only: calls `serve` with one and counts the hit, or does nothing.
  // `serve` returns false where it has served nothing: then nothing is counted.
  // The entry's slot is held meanwhile, and no count of the response is taken. `serve` must not call the cache.
  bool ServeFresh(const CacheKey& key, const CachePlan& plan, base::TimePoint now, uint32_t worker,
                  absl::FunctionRef<bool(const CachedResponse&)> serve);
  // Found::response of a miss was served, because fetching failed: counted as stale.
  void CountStale(uint32_t worker);

  enum class Joined : uint8_t {
    kStarted,  // the caller must see to it that the upstream call is made, and Complete() *fetch
    kJoined,   // another call does; the participant (if given) is woken with the result, or has it already
    kAlone,    // fetches_max (counted): call the upstream without sharing
  };
  // Takes part in the fetch for `key`, or starts one (then *fetch is set). `participant` null: refresh a stale entry;
  // goes on without participants, until now + fetch_timeout. With plan.revalidate no fetch is joined: another one
  // begins, beside one that is there. A participant that starts a fetch takes part in it too. Its waker is the task's
  // that runs now; waking is spurious for other waits, so wait in a loop on result(). If the response was stored after
  // the caller had looked, the participant has it on return, without a fetch. A started fetch's upstream call must end
  // by
  // (*fetch)->deadline(), which is `deadline` or that of a call that joined in time. on_abandoned: runs at most once,
  // on any thread, outside of locks, when the last participant has left early; perhaps after Complete has returned, so
  // it must own what it uses.
  Joined Join(const CacheKey& key, const CachePlan& plan, Fetch::Participant* participant, base::TimePoint deadline,
              base::TimePoint now, std::function<void()> on_abandoned, std::shared_ptr<Fetch>* fetch, uint32_t worker);

  // Exactly once for each started fetch, abandoned ones too. Stores result.response if it may be stored (status,
  // cache-control, size, no purge since), then wakes every participant: where it is not stored and its leader's alone
  // (sharing.h), the others with a result without a response. A null response: all go by themselves; why is for the
  // caller to Count. `plan`: the call's that started the fetch.
  void Complete(const std::shared_ptr<Fetch>& fetch, const CachePlan& plan, FetchResult result, base::TimePoint now,
                uint32_t worker);

  // No call that begins after this returns gets a response, or joins a fetch, from before. Returns how many entries
  // went.
  size_t Purge(const CachePurge& what);
  // A handover (docs/handover.md): each stored response, as far as it is there while fn is called; and one that another
  // process has stored. False: `key` is none, the response is over, or there is no room.
  struct Stored {
    std::string_view key;
    const CachedResponse& response;
    const cache_policy::Lifetime& life;
  };
  void ForEachStored(absl::FunctionRef<void(const Stored&)> fn) const;
  bool Restore(std::string key, CachedResponsePtr response, const cache_policy::Lifetime& life, base::TimePoint now);
  CacheStats stats() const;
  void Count(NotCached reason, uint32_t worker);

  // Another hash, to force collisions. Before the first key is made.
  void SetHashForTest(cache::Key128 (*hash)(std::string_view));

 private:
  struct Impl;
  // The parts of MakeKey that do not depend on Pieces. `size`: of the message with its prefix.
  bool CheckSize(size_t size, uint32_t worker);
  static void StartKey(std::string& bytes, const CacheRule& rule, std::string_view cluster,
                       const CanonicalRequest& request, size_t size);
  bool FinishKey(CacheKey& key, size_t size, uint32_t worker);
  bool FinishKeyOf(CacheKey& key, size_t size) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::proxy
