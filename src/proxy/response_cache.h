// ResponseCache: responses of unary calls by method, message and chosen metadata, and the fetches under way for them.
// One for the process; knows HTTP/2 header lists and gRPC, not calls. docs/response-cache.md
//
// Key: cluster, path, authority, the content and encoding fields that decide whether a client can read a response
// (content-type, grpc-encoding, grpc-accept-encoding), the values of `vary` and the message. A keyed 128-bit hash finds the
// slot; the stored key is compared whole, so nobody reads another's response because two hashes are equal.
//
// Thread safety: every function from any thread; locks are held for a few instructions. Nothing here suspends.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "base/slice.h"
#include "metrics/registry.h"
#include "proxy/cached_response.h"
#include "proxy/fetch.h"
#include "proxy/options.h"

namespace sluice::proxy {

// Why a response was not cached, or a call did not look. Labels of sluice_cache_not_cached_total.
enum class NotCached : uint8_t {
  kRequestTooLarge,    // the request message is above request_bytes_max
  kNotUnary,           // request or response is not exactly one message
  kAuthorization,      // authorization is not in vary and the method is not shared
  kNoStore,            // the client's or the upstream's cache-control
  kStatus,             // a status that is not cached
  kResponseTooLarge,   // above entry_bytes_max
  kNotAdmitted,        // the doorkeeper has not seen the key before
  kFull,               // no room could be made
  kPurged,             // a purge came while it was fetched
  kFetchesFull,        // fetches_max fetches were under way
  kEncoding,           // a response this cache does not keep (no trailers, 1xx only, not gRPC)
};
inline constexpr size_t kNotCachedReasons = static_cast<size_t>(NotCached::kEncoding) + 1;
std::string_view ToString(NotCached reason);

struct CacheMetrics {
  explicit CacheMetrics(metrics::Registry& registry);
  metrics::Counter *hits, *misses, *stale, *coalesced, *fetches;
  std::array<metrics::Counter*, kNotCachedReasons> not_cached;
};

struct CacheKey {
  cache::Key128 hash;
  std::string bytes;
};

// What the cache may do for a call, from its headers alone. nullopt with a reason: go to the upstream.
struct CachePlan {
  std::chrono::milliseconds ttl{0};
  const CacheRule* rule = nullptr;
  // The client's `cache-control: no-cache`: fetch anew, then store. no-store never gets a plan.
  bool revalidate = false;
};

struct CachePurge {
  std::string service;             // "pkg.Service"; empty: all
  std::string method;              // with service; empty: all of it
  std::optional<std::string> key;  // the request message's bytes, exactly (without the gRPC prefix); with service and method
};

struct CacheStats {
  size_t capacity_bytes = 0, usage_bytes = 0, entries = 0, fetches = 0;
  uint64_t hits = 0, misses = 0, stale = 0, coalesced = 0;
  uint64_t evicted = 0, expired = 0, purged = 0;
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
  // From the request headers: authorization, cache-control. `worker`: slot of the counters.
  std::optional<CachePlan> Plan(const CacheRule& rule, const CachedMethod& method, const http2::HeaderList& request,
                                uint32_t worker);
  // `message`: all DATA of the request, in pieces. nullopt (counted) if it is not exactly one gRPC message.
  template <typename Pieces>
  std::optional<CacheKey> MakeKey(const CacheRule& rule, std::string_view cluster, const http2::HeaderList& request,
                                  const Pieces& message, uint32_t worker);

  struct Found {
    enum class Kind : uint8_t { kMiss, kFresh, kStale } kind = Kind::kMiss;
    // kStale: may be served while it is fetched anew. kMiss: may be served if fetching fails with UNAVAILABLE, or null.
    CachedResponsePtr response;
  };
  Found Lookup(const CacheKey& key, const CachePlan& plan, base::TimePoint now, uint32_t worker);

  enum class Joined : uint8_t {
    kStarted,  // the caller must run the upstream call and Complete() *fetch
    kJoined,   // somebody does; the participant (if given) is woken with the result
    kAlone,    // fetches_max, or `deadline` is later than the fetch's: call the upstream without sharing
  };
  // Takes part in the fetch for `key`, or starts one. `participant` null: refresh a stale entry; goes on without participants.
  // On the task that will wait (its waker is taken).
  // A started fetch's upstream call must end by max(deadline, now + fetch_timeout) = (*fetch)->deadline().
  // on_abandoned: runs at most once, on any thread, outside of locks, when the last participant has left early.
  Joined Join(const CacheKey& key, const CachePlan& plan, Fetch::Participant* participant, base::TimePoint deadline,
              base::TimePoint now, std::function<void()> on_abandoned, std::shared_ptr<Fetch>* fetch, uint32_t worker);

  // Once for each started fetch. Stores result.response if it may be stored (status, cache-control, size, no purge since),
  // then wakes every participant. A null response: all go by themselves.
  void Complete(const std::shared_ptr<Fetch>& fetch, const CachePlan& plan, FetchResult result, base::TimePoint now,
                uint32_t worker);

  // No call that begins after this returns gets a response, or joins a fetch, from before. Returns how many entries went.
  size_t Purge(const CachePurge& what);
  CacheStats stats() const;
  void Count(NotCached reason, uint32_t worker);

 private:
  friend class Fetch::Participant;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::proxy
