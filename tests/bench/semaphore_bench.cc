// Semaphore and concurrency limiter: taking and giving back one unit, alone and on two threads, beside
// std::counting_semaphore and a mutex with a counter; a wait and its grant; 100,000 waiters that leave or are broken
// off. To meet: AcquireRelease alone <= 30 ns; Cancel100k < 50 ms. Counters of the last two: per waiter.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <semaphore>
#include <vector>

#include "limits/concurrency_limiter.h"
#include "sync/semaphore.h"

namespace sluice {
namespace {

struct NoWakeup {
  static NoWakeup ForRunningTask() { return {}; }
  void Wake() const {}
};
struct SemaphoreTraits : sync::SemaphoreTraits {
  using Wakeup = NoWakeup;
};
struct LimiterTraits : limits::ConcurrencyLimiterTraits {
  using Wakeup = NoWakeup;
};
using Semaphore = sync::BasicSemaphore<SemaphoreTraits>;
using Limiter = limits::BasicConcurrencyLimiter<LimiterTraits>;

void BM_AcquireRelease(benchmark::State& state) {
  static Semaphore semaphore(100);
  for (auto _ : state) {
    auto permit = semaphore.TryAcquire(1);
    benchmark::DoNotOptimize(permit);
  }
}
BENCHMARK(BM_AcquireRelease)->Threads(1)->Threads(2);

void BM_StdCountingSemaphore(benchmark::State& state) {
  static std::counting_semaphore<> semaphore(100);
  for (auto _ : state) {
    benchmark::DoNotOptimize(semaphore.try_acquire());
    semaphore.release();
  }
}
BENCHMARK(BM_StdCountingSemaphore)->Threads(1)->Threads(2);

void BM_MutexAndCount(benchmark::State& state) {
  static std::mutex mutex;
  static int64_t count = 100;
  for (auto _ : state) {
    {
      std::lock_guard lock(mutex);
      if (count > 0) --count;
    }
    std::lock_guard lock(mutex);
    benchmark::DoNotOptimize(++count);
  }
}
BENCHMARK(BM_MutexAndCount)->Threads(1)->Threads(2);

void BM_LimiterAskDrop(benchmark::State& state) {
  static auto limiter = std::make_shared<Limiter>(limits::ConcurrencyOptions{.max = 100});
  for (auto _ : state) {
    Limiter::Ticket ticket;
    benchmark::DoNotOptimize(ticket.Ask(*limiter, 1));
  }
}
BENCHMARK(BM_LimiterAskDrop)->Threads(1)->Threads(2);

void BM_LimiterAskDropNoLimit(benchmark::State& state) {
  static auto limiter = std::make_shared<Limiter>(limits::ConcurrencyOptions{.max = 0});
  for (auto _ : state) {
    Limiter::Ticket ticket;
    benchmark::DoNotOptimize(ticket.Ask(*limiter, 1));
  }
}
BENCHMARK(BM_LimiterAskDropNoLimit)->Threads(1)->Threads(2);

// One waits, one ends, the first goes on: all through the queue.
void BM_WaitAndGrant(benchmark::State& state) {
  Semaphore semaphore(1);
  auto permit = semaphore.TryAcquire(1);
  for (auto _ : state) {
    Semaphore::Waiter waiter;
    semaphore.Enqueue(waiter, 1, {});
    permit.reset();
    permit.emplace(semaphore.Adopt(1));
  }
}
BENCHMARK(BM_WaitAndGrant);

// The same at the limiter, with as many client connections waiting as the argument says.
void BM_LimiterWaitAndGrant(benchmark::State& state) {
  auto limiter = std::make_shared<Limiter>(limits::ConcurrencyOptions{.max = 1, .queue_max = 1'000'000});
  std::vector<Limiter::Ticket> tickets(static_cast<size_t>(state.range(0)) + 1);
  for (size_t i = 0; i < tickets.size(); ++i) tickets[i].Ask(*limiter, i);
  size_t next = 0;
  for (auto _ : state) {
    tickets[next].Drop();
    tickets[next].Ask(*limiter, next);
    next = (next + 1) % tickets.size();
  }
  state.SetLabel("flows");
}
BENCHMARK(BM_LimiterWaitAndGrant)->Arg(1)->Arg(100)->Arg(10'000);

constexpr int kMany = 100'000;

void BM_Cancel100k(benchmark::State& state) {
  std::vector<int> order(kMany);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(7));
  for (auto _ : state) {
    state.PauseTiming();
    auto semaphore = std::make_unique<Semaphore>(0, 1);
    auto waiters = std::make_unique<Semaphore::Waiter[]>(kMany);
    for (int i = 0; i < kMany; ++i) semaphore->Enqueue(waiters[i], 1, {});
    state.ResumeTiming();
    for (int i : order) semaphore->Cancel(waiters[i]);
    state.PauseTiming();
    waiters.reset();
    semaphore.reset();
    state.ResumeTiming();
  }
  state.counters["each"] =
      benchmark::Counter(kMany, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Cancel100k)->Unit(benchmark::kMillisecond);

void BM_Break100k(benchmark::State& state) {
  for (auto _ : state) {
    state.PauseTiming();
    auto semaphore = std::make_unique<Semaphore>(0, 1);
    auto waiters = std::make_unique<Semaphore::Waiter[]>(kMany);
    for (int i = 0; i < kMany; ++i) semaphore->Enqueue(waiters[i], 1, {});
    state.ResumeTiming();
    semaphore->Break();
    state.PauseTiming();
    waiters.reset();
    semaphore.reset();
    state.ResumeTiming();
  }
  state.counters["each"] =
      benchmark::Counter(kMany, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(BM_Break100k)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice
