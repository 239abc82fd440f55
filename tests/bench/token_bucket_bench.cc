// TokenBucket and RateLimiter, uncontended and on two threads, against a bucket under a mutex and a GCRA bucket (one
// word that says when the next call may start, moved by CAS). Grab + Deficiency <= 10 ns on one thread.
//
// The bucket of "Take" is never empty; its time moves on by 100 ns a call, so that each call replenishes, which is the
// dear case: in the proxy the time stands during a turn of the loop. "SameTurn" is that cheap case.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>

#include "concurrent/token_bucket.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/rate_limiter.h"

namespace sluice {
namespace {

using concurrent::CappedTokenBucket;
using concurrent::kTokensPerCall;
using concurrent::TokenBucket;

const base::TimePoint kStart{std::chrono::hours(1)};
constexpr int64_t kStep = 100;  // ns a call; 10^7 calls a second is the rate that keeps up with one thread
constexpr double kRate = 1e9;   // so high that no call ever waits
constexpr uint32_t kBurst = 10'000'000;

template <typename Bucket>
Bucket& Shared() {
  static Bucket bucket({.rate = kRate * kTokensPerCall, .limit = kBurst * kTokensPerCall}, concurrent::kStartFull,
                       kStart);
  return bucket;
}

// The time of a thread: all start together, each goes on by itself.
struct Ticks {
  static base::TimePoint& Latest() {
    static base::TimePoint latest = kStart;
    return latest;
  }
  explicit Ticks(benchmark::State& state) : now(Latest()), first(state.thread_index() == 0) {}
  ~Ticks() {
    if (first) Latest() = now + std::chrono::hours(1);
  }
  base::TimePoint Next() { return now += base::Nanos(kStep); }
  base::TimePoint now;
  bool first;
};

void BM_GrabDeficiency(benchmark::State& state) {
  TokenBucket& bucket = Shared<TokenBucket>();
  for (auto _ : state) {
    const auto ticket = bucket.Grab(0);
    benchmark::DoNotOptimize(bucket.Deficiency(ticket));
  }
}
BENCHMARK(BM_GrabDeficiency)->Threads(1)->Threads(2);

void BM_Take(benchmark::State& state) {
  TokenBucket& bucket = Shared<TokenBucket>();
  Ticks ticks(state);
  for (auto _ : state) {
    const auto ticket = bucket.Take(kTokensPerCall, ticks.Next());
    benchmark::DoNotOptimize(bucket.Deficiency(ticket));
  }
}
BENCHMARK(BM_Take)->Threads(1)->Threads(2);

void BM_TryTake(benchmark::State& state) {
  TokenBucket& bucket = Shared<TokenBucket>();
  Ticks ticks(state);
  for (auto _ : state) benchmark::DoNotOptimize(bucket.TryTake(kTokensPerCall, ticks.Next()));
}
BENCHMARK(BM_TryTake)->Threads(1)->Threads(2);

void BM_TryTakeSameTurn(benchmark::State& state) {
  TokenBucket& bucket = Shared<TokenBucket>();
  Ticks ticks(state);
  int64_t i = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(bucket.TryTake(kTokensPerCall, ++i % 64 == 0 ? ticks.Next() : ticks.now));
}
BENCHMARK(BM_TryTakeSameTurn)->Threads(1)->Threads(2);

void BM_CappedTakeRelease(benchmark::State& state) {
  CappedTokenBucket& bucket = Shared<CappedTokenBucket>();
  Ticks ticks(state);
  for (auto _ : state) {
    if (bucket.TryTake(kTokensPerCall, ticks.Next())) benchmark::DoNotOptimize(bucket.Release(kTokensPerCall));
  }
}
BENCHMARK(BM_CappedTakeRelease)->Threads(1)->Threads(2);

// The obvious implementation.
class MutexBucket {
 public:
  bool TryTake(base::TimePoint now) {
    std::lock_guard lock(mutex_);
    if (now > stamp_) {
      tokens_ = std::min<double>(kBurst, tokens_ + std::chrono::duration<double>(now - stamp_).count() * kRate);
      stamp_ = now;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  std::mutex mutex_;
  double tokens_ = kBurst;
  base::TimePoint stamp_ = kStart;
};

void BM_MutexTryTake(benchmark::State& state) {
  static MutexBucket bucket;
  Ticks ticks(state);
  for (auto _ : state) benchmark::DoNotOptimize(bucket.TryTake(ticks.Next()));
}
BENCHMARK(BM_MutexTryTake)->Threads(1)->Threads(2);

// Generic cell rate algorithm: the theoretical arrival time in one word.
class GcraBucket {
 public:
  bool TryTake(base::TimePoint now) {
    const int64_t at = now.time_since_epoch().count();
    int64_t next = next_.load(std::memory_order_relaxed);
    while (true) {
      const int64_t start = std::max(next, at - kBurst * kCost);
      if (start > at) return false;
      if (next_.compare_exchange_weak(next, start + kCost, std::memory_order_relaxed, std::memory_order_relaxed))
        return true;
    }
  }

 private:
  static constexpr int64_t kCost = 1;  // ns a call
  std::atomic<int64_t> next_{0};
};

void BM_GcraTryTake(benchmark::State& state) {
  static GcraBucket bucket;
  Ticks ticks(state);
  for (auto _ : state) benchmark::DoNotOptimize(bucket.TryTake(ticks.Next()));
}
BENCHMARK(BM_GcraTryTake)->Threads(1)->Threads(2);

// Ask and Drop of the policy on top, with an empty queue.
void Limiter(benchmark::State& state, bool enabled, bool capped) {
  static const auto plain = std::make_shared<limits::RateLimiter>(limits::RateOptions{1e7, kBurst, false, 10}, kStart);
  static const auto cap = std::make_shared<limits::RateLimiter>(limits::RateOptions{1e7, kBurst, true, 10}, kStart);
  static const auto off = std::make_shared<limits::RateLimiter>(limits::RateOptions{0, kBurst, false, 10}, kStart);
  const auto& limiter = !enabled ? off : capped ? cap : plain;
  Ticks ticks(state);
  uint64_t refused = 0;
  for (auto _ : state) {
    limits::RateLimiter::Ticket ticket;
    const base::TimePoint now = ticks.Next() + base::Nanos(kStep);
    // The deadline has passed, so a call that would have to wait is refused: there is no task here that could wait.
    refused += ticket.Ask(*limiter, now, now).kind != limits::Verdict::Kind::kGo ? 1 : 0;
  }
  state.counters["refused"] = benchmark::Counter(static_cast<double>(refused), benchmark::Counter::kAvgIterations);
}
void BM_LimiterAsk(benchmark::State& state) { Limiter(state, true, false); }
void BM_LimiterAskCappedAndDrop(benchmark::State& state) { Limiter(state, true, true); }
void BM_LimiterAskNoLimit(benchmark::State& state) { Limiter(state, false, false); }
BENCHMARK(BM_LimiterAsk)->Threads(1)->Threads(2);
BENCHMARK(BM_LimiterAskCappedAndDrop)->Threads(1)->Threads(2);
BENCHMARK(BM_LimiterAskNoLimit)->Threads(1)->Threads(2);

// A key of a table with 10,000 keys: found, then asked.
void BM_KeyedGetAndAsk(benchmark::State& state) {
  static limits::KeyedRateLimiter table({1e7, kBurst, false, 10}, 10'000);
  Ticks ticks(state);
  uint64_t key = static_cast<uint64_t>(state.thread_index());
  for (auto _ : state) {
    const base::TimePoint now = ticks.Next();
    key = (key + 1) % 10'000;
    auto limiter = table.Get(key * 0x9e3779b97f4a7c15ull, now);
    limits::RateLimiter::Ticket ticket;
    benchmark::DoNotOptimize(ticket.Ask(*limiter, now, now).kind);
  }
}
BENCHMARK(BM_KeyedGetAndAsk)->Threads(1)->Threads(2);

}  // namespace
}  // namespace sluice
