// The scheduler's prices: await and resume, spawn and run, wake on the own worker, wake of a parked worker.
//
// Figures of a 2-vCPU VM that is shared with other builds are in docs/scheduler.md.
//   BM_AwaitAndResume         one co_await of a child that ends at once: frame, two hops through the worker's loop
//   BM_SpawnAndRun            SpawnOn from a task of the same worker, until the child has ended
//   BM_SpawnPinOnStartAndRun  the same through the stealable queue (workers: 1 without, 2 with a CAS to pop)
//   BM_WakeOnOwnWorker        a pinned task suspends, is woken and resumed
//   BM_CrossWorkerWake        two pinned tasks on two workers wake each other; p50 and p99 of half a round trip
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/yield.h"

namespace sluice::runtime {
namespace {

RuntimeOptions Workers(uint32_t n) {
  RuntimeOptions options;
  options.workers = n;
  return options;
}

Task<int> Immediate() { co_return 1; }

Task<> AwaitMany(int n, int64_t& sum) {
  for (int i = 0; i < n; ++i) sum += co_await Immediate();
}

void BM_AwaitAndResume(benchmark::State& state) {
  constexpr int kBatch = 10'000;
  Runtime runtime(Workers(1));
  int64_t sum = 0;
  for (auto _ : state) {
    runtime.SpawnOn(runtime.worker(0), AwaitMany(kBatch, sum));
    runtime.worker(0).RunUntilIdleForTest();
  }
  benchmark::DoNotOptimize(sum);
  state.SetItemsProcessed(state.iterations() * kBatch);
}
BENCHMARK(BM_AwaitAndResume);

Task<> Nothing() { co_return; }

// With its share of the turns: one epoll_wait for 64 tasks.
void SpawnAndRun(benchmark::State& state, bool pin_on_start) {
  constexpr int kBatch = 200;  // less than a run queue holds
  Runtime runtime(Workers(static_cast<uint32_t>(state.range(0))));
  Worker& worker = runtime.worker(0);
  for (auto _ : state) {
    Worker::ScopedCurrentForTest current(worker);
    for (int i = 0; i < kBatch; ++i) {
      if (pin_on_start) {
        runtime.SpawnPinOnStart(Nothing());
      } else {
        runtime.SpawnOn(worker, Nothing());
      }
    }
    worker.RunUntilIdleForTest();
  }
  state.SetItemsProcessed(state.iterations() * kBatch);
}
void BM_SpawnAndRun(benchmark::State& state) { SpawnAndRun(state, false); }
BENCHMARK(BM_SpawnAndRun)->Arg(1);
void BM_SpawnPinOnStartAndRun(benchmark::State& state) { SpawnAndRun(state, true); }
BENCHMARK(BM_SpawnPinOnStartAndRun)->Arg(1)->Arg(2);

Task<> YieldMany(int n) {
  for (int i = 0; i < n; ++i) co_await Yield();
}

void BM_WakeOnOwnWorker(benchmark::State& state) {
  constexpr int kBatch = 10'000;
  Runtime runtime(Workers(1));
  for (auto _ : state) {
    runtime.SpawnOn(runtime.worker(0), YieldMany(kBatch));
    runtime.SpawnOn(runtime.worker(0), YieldMany(kBatch));
    runtime.worker(0).RunUntilIdleForTest();
  }
  state.SetItemsProcessed(state.iterations() * kBatch * 2);
}
BENCHMARK(BM_WakeOnOwnWorker);

// Hands a waker across; the waiter is always there first, since each side wakes the other only after it was woken.
struct Relay {
  std::atomic<bool> set{false};
  Waker waker;
};

struct RelayWait {
  Relay& mine;
  Relay& other;
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    mine.waker = Waker::ForCurrentTask(h);
    mine.set.store(true, std::memory_order_release);
    while (!other.set.exchange(false, std::memory_order_acq_rel)) __builtin_ia32_pause();
    Waker waker = other.waker;
    waker.Wake();
  }
  void await_resume() {}
};

struct FirstWait {
  Relay& mine;
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    mine.waker = Waker::ForCurrentTask(h);
    mine.set.store(true, std::memory_order_release);
  }
  void await_resume() {}
};

Task<> Answer(Relay& mine, Relay& other, int n, std::latch& done) {
  co_await FirstWait{mine};
  for (int i = 1; i < n; ++i) co_await RelayWait{mine, other};
  while (!other.set.exchange(false, std::memory_order_acq_rel)) __builtin_ia32_pause();
  other.waker.Wake();
  done.count_down();
}

Task<> Ask(Relay& mine, Relay& other, int n, std::vector<int64_t>& nanos, std::latch& done) {
  for (int i = 0; i < n; ++i) {
    const auto start = std::chrono::steady_clock::now();
    co_await RelayWait{mine, other};
    nanos.push_back((std::chrono::steady_clock::now() - start).count() / 2);
  }
  done.count_down();
}

void BM_CrossWorkerWake(benchmark::State& state) {
  constexpr int kRounds = 20'000;
  std::vector<int64_t> nanos;
  for (auto _ : state) {
    Runtime runtime(Workers(2));
    runtime.Start();
    Relay a, b;
    std::latch done(2);
    runtime.SpawnOn(runtime.worker(1), Answer(b, a, kRounds, done));
    runtime.SpawnOn(runtime.worker(0), Ask(a, b, kRounds, nanos, done));
    done.wait();
  }
  std::sort(nanos.begin(), nanos.end());
  state.counters["p50_ns"] = static_cast<double>(nanos[nanos.size() / 2]);
  state.counters["p99_ns"] = static_cast<double>(nanos[nanos.size() * 99 / 100]);
  state.SetItemsProcessed(static_cast<int64_t>(nanos.size()) * 2);
}
BENCHMARK(BM_CrossWorkerWake)->Iterations(3)->UseRealTime();

}  // namespace
}  // namespace sluice::runtime
