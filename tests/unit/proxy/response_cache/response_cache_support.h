// What the tests of the response cache share: requests, responses, a cache on a clock that stands still.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/response_cache/cache.h"

namespace sluice::test {

using Fields = std::vector<std::pair<std::string, std::string>>;

inline http2::HeaderList List(const Fields& fields) {
  http2::HeaderList list;
  for (const auto& [name, value] : fields) list.Add(name, value);
  return list;
}

inline proxy::CanonicalRequest Request(const Fields& more = {}, std::string path = "/pkg.Users/Get") {
  Fields fields = {{":method", "POST"},
                   {":scheme", "http"},
                   {":path", std::move(path)},
                   {":authority", "users"},
                   {"content-type", "application/grpc"},
                   {"te", "trailers"}};
  fields.insert(fields.end(), more.begin(), more.end());
  return proxy::Canonicalize(List(fields), proxy::PathRule::kAny);
}

// With the gRPC prefix.
inline std::string Message(std::string_view bytes, bool compressed = false) {
  std::string out(1, compressed ? '\1' : '\0');
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(bytes.size() >> shift);
  return out.append(bytes);
}

inline std::vector<base::Slice> Pieces(std::string_view bytes, size_t first = SIZE_MAX) {
  std::vector<base::Slice> pieces;
  pieces.push_back(base::Slice::Copy(bytes.substr(0, first)));
  if (first < bytes.size()) pieces.push_back(base::Slice::Copy(bytes.substr(first)));
  return pieces;
}

struct ResponseSpec {
  std::string message = "hello";
  proxy::GrpcCode status = proxy::GrpcCode::kOk;
  Fields headers, trailers;  // beside the usual ones
  bool trailers_only = false;
};

inline proxy::CachedResponsePtr Response(const ResponseSpec& spec, base::TimePoint stored) {
  const std::string status = std::to_string(static_cast<int>(spec.status));
  Fields headers = {{":status", "200"}, {"content-type", "application/grpc"}};
  headers.insert(headers.end(), spec.headers.begin(), spec.headers.end());
  Fields trailers;
  (spec.trailers_only ? headers : trailers).emplace_back("grpc-status", status);
  trailers.insert(trailers.end(), spec.trailers.begin(), spec.trailers.end());
  auto response = std::make_shared<proxy::CachedResponse>();
  response->headers = proxy::FlatHeaders(List(headers));
  if (!spec.trailers_only) {
    response->message = base::Slice::Copy(Message(spec.message));
    response->trailers = proxy::FlatHeaders(List(trailers));
  }
  response->status = spec.status;
  response->stored = stored;
  return response;
}

// A cache, a rule for /pkg.Users/Get with a TTL of 10 s, and the steps of a call.
struct CacheFixture {
  explicit CacheFixture(proxy::CacheOptions options = Defaults()) : cache(options, registry) {
    rule.methods = {{"/pkg.Users/Get", std::chrono::seconds(10)}};
    rule.fetch_timeout = std::chrono::seconds(60);
  }
  static proxy::CacheOptions Defaults() {
    proxy::CacheOptions options;
    options.capacity_bytes = 4 << 20;
    options.entry_bytes_max = 64 << 10;
    return options;
  }

  proxy::CachePlan Plan(const Fields& more = {}) {
    auto plan = cache.Plan(rule, rule.methods[0], Request(more), 0);
    return plan.value();
  }
  proxy::CacheKey Key(std::string_view message = "one", const Fields& more = {}) {
    return KeyOf(Request(more), Pieces(Message(message))).value();
  }
  template <typename MessagePieces>
  std::optional<proxy::CacheKey> KeyOf(const proxy::CanonicalRequest& request, const MessagePieces& message) {
    proxy::CacheKey key;
    if (!cache.MakeKey(rule, "users", request, message, 0, key)) return std::nullopt;
    return key;
  }
  proxy::ResponseCache::Found Look(const proxy::CacheKey& key) { return cache.Lookup(key, Plan(), clock.Now(), 0); }
  proxy::ResponseCache::Found::Kind KindOf(const proxy::CacheKey& key) { return Look(key).kind; }
  // A call's participant; wake-ups are counted instead of waking a task. As a task's, the count outlives the call: a
  // wake-up may still be under way when the call has seen its result and gone.
  struct Caller {
    proxy::Fetch::Participant participant;
    const std::shared_ptr<std::atomic<int>> count = std::make_shared<std::atomic<int>>(0);
    Caller() {
      participant.SetWakeForTest([count = count] { ++*count; });
    }
    int woken() const { return count->load(); }
  };
  proxy::ResponseCache::Joined Join(const proxy::CacheKey& key, Caller* caller, std::shared_ptr<proxy::Fetch>* fetch,
                                    std::function<void()> on_abandoned = nullptr,
                                    base::Nanos timeout = std::chrono::seconds(5), const Fields& more = {}) {
    return cache.Join(key, Plan(more), caller != nullptr ? &caller->participant : nullptr, clock.Now() + timeout,
                      clock.Now(), std::move(on_abandoned), fetch, 0);
  }
  void Complete(const std::shared_ptr<proxy::Fetch>& fetch, const ResponseSpec& spec = {},
                std::optional<base::Error> cause = std::nullopt) {
    proxy::FetchResult result;
    result.response = Response(spec, clock.Now());
    result.cause = std::move(cause);
    cache.Complete(fetch, Plan(), std::move(result), clock.Now(), 0);
  }
  // A whole fetch for which no call waits.
  void Store(const proxy::CacheKey& key, const ResponseSpec& spec = {}) {
    std::shared_ptr<proxy::Fetch> fetch;
    Join(key, nullptr, &fetch);
    if (fetch != nullptr) Complete(fetch, spec);
  }
  uint64_t NotCachedFor(proxy::NotCached why) { return cache.stats().not_cached[static_cast<size_t>(why)]; }
  static std::string TextOf(const proxy::CachedResponsePtr& response) {
    return response == nullptr ? "(none)" : std::string(response->message.view().substr(5));
  }
  std::string Text(const proxy::CacheKey& key) { return TextOf(Look(key).response); }

  base::ManualClock clock;
  metrics::Registry registry{1};
  proxy::CacheRule rule;
  proxy::ResponseCache cache;
};

}  // namespace sluice::test
