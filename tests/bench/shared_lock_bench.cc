// SharedLock: an uncontended pair of acquire and release in both modes beside std::shared_mutex, and a removal with ten
// thousand waiters. Promised: the removal < 100 ms; a pair needs only to be far below a millisecond.
#include <benchmark/benchmark.h>

#include <memory>
#include <shared_mutex>
#include <vector>

#include "sync/shared_lock.h"

namespace sluice::sync {
namespace {

void BM_Pair(benchmark::State& state) {
  SharedLock lock;
  const auto mode = state.range(0) == 0 ? LockMode::kShared : LockMode::kExclusive;
  for (auto _ : state) {
    SharedLock::Waiter waiter;
    lock.Start(waiter, mode, "bench", false, LockWakeup());
    benchmark::DoNotOptimize(lock.Finish(waiter).guard);
  }
}
BENCHMARK(BM_Pair)->Arg(0)->Arg(1)->ArgName("exclusive");

void BM_PairBlocking(benchmark::State& state) {
  SharedLock lock;
  for (auto _ : state) benchmark::DoNotOptimize(lock.AcquireBlocking(LockMode::kShared, "bench", base::kNever).guard);
}
BENCHMARK(BM_PairBlocking);

void BM_StdSharedMutex(benchmark::State& state) {
  std::shared_mutex mutex;
  for (auto _ : state) {
    if (state.range(0) == 0) {
      mutex.lock_shared();
      benchmark::ClobberMemory();
      mutex.unlock_shared();
    } else {
      mutex.lock();
      benchmark::ClobberMemory();
      mutex.unlock();
    }
  }
}
BENCHMARK(BM_StdSharedMutex)->Arg(0)->Arg(1)->ArgName("exclusive");

struct CountedWakeup {
  uint64_t* count = nullptr;
  void Wake() { ++*count; }
};
struct CountedTraits {
  using Mutex = std::mutex;
  using Wakeup = CountedWakeup;
};

// The lock's part: outcomes and wake-ups; what the woken do comes on top.
void BM_RemoveWithWaiters(benchmark::State& state) {
  using Lock = BasicSharedLock<CountedTraits>;
  const auto waiters = static_cast<size_t>(state.range(0));
  uint64_t woken = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto lock = std::make_unique<Lock>();
    Lock::Waiter first;
    lock->Start(first, LockMode::kExclusive, "bench", true, {});
    Lock::Result held = lock->Finish(first);
    std::vector<std::unique_ptr<Lock::Waiter>> queue;
    for (size_t i = 0; i < waiters; ++i) {
      queue.push_back(std::make_unique<Lock::Waiter>());
      lock->Start(*queue.back(), i % 2 == 0 ? LockMode::kShared : LockMode::kExclusive, "bench", true,
                  CountedWakeup{&woken});
    }
    state.ResumeTiming();
    lock->Remove(held.guard);
    state.PauseTiming();
    queue.clear();
    lock.reset();
    state.ResumeTiming();
  }
  state.counters["woken"] = static_cast<double>(woken) / static_cast<double>(state.iterations());
}
BENCHMARK(BM_RemoveWithWaiters)->Arg(10'000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice::sync
