// DoublyBufferedData: a read through a worker's slot and through the shared one, with and without membarrier,
// alone and on two threads; a write with no reader. Read: Worker <= 5 ns and the same on two threads;
// WorkerFallback <= 15 ns. Beside it the usual alternatives: shared_mutex, atomic<shared_ptr>, and liburcu's membarrier
// flavour where it is installed. RCU only defers the freeing, while a write of ours returns when no thread reads the
// old value any more: Publish and UrcuReplace (with its grace period) are the fair pair.
#include <benchmark/benchmark.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <shared_mutex>

#ifdef SLUICE_BENCH_URCU
#define URCU_INLINE_SMALL_FUNCTIONS
#include <urcu/urcu-memb.h>
#endif

#include "concurrent/doubly_buffered_data.h"

namespace sluice::concurrent {
namespace {

struct FallbackSync : SystemSync {
  static bool Asymmetric() { return false; }
};

template <typename Sync>
DoublyBufferedData<uint64_t, Sync>& Data() {
  static DoublyBufferedData<uint64_t, Sync> data(8, 1);
  return data;
}

template <typename Sync>
void BM_ReadWorker(benchmark::State& state) {
  auto& data = Data<Sync>();
  size_t slot = static_cast<size_t>(state.thread_index());
  for (auto _ : state) benchmark::DoNotOptimize(data.Read(slot, [](const uint64_t& value) { return value; }));
}
BENCHMARK(BM_ReadWorker<SystemSync>)->Name("BM_ReadWorker")->Threads(1)->Threads(2);
BENCHMARK(BM_ReadWorker<FallbackSync>)->Name("BM_ReadWorkerFallback")->Threads(1)->Threads(2);

void BM_ReadShared(benchmark::State& state) {
  auto& data = Data<SystemSync>();
  for (auto _ : state)
    benchmark::DoNotOptimize(data.Read(data.shared_slot(), [](const uint64_t& value) { return value; }));
}
BENCHMARK(BM_ReadShared)->Threads(1)->Threads(2);

// The usual use: copy the counted pointer out.
void BM_ReadSharedPtr(benchmark::State& state) {
  static DoublyBufferedData<std::shared_ptr<int>> data(8, std::make_shared<int>(1));
  size_t slot = static_cast<size_t>(state.thread_index());
  for (auto _ : state)
    benchmark::DoNotOptimize(data.Read(slot, [](const std::shared_ptr<int>& value) { return value; }));
}
BENCHMARK(BM_ReadSharedPtr)->Threads(1)->Threads(2);

template <typename Sync>
void BM_Publish(benchmark::State& state) {
  DoublyBufferedData<uint64_t, Sync> data(8, 1);
  uint64_t value = 0;
  for (auto _ : state) data.Publish(++value);
}
BENCHMARK(BM_Publish<SystemSync>)->Name("BM_Publish");
BENCHMARK(BM_Publish<FallbackSync>)->Name("BM_PublishFallback");

void BM_SharedMutex(benchmark::State& state) {
  static std::shared_mutex mutex;
  static uint64_t value = 1;
  for (auto _ : state) {
    std::shared_lock lock(mutex);
    benchmark::DoNotOptimize(value);
  }
}
BENCHMARK(BM_SharedMutex)->Threads(1)->Threads(2);

void BM_AtomicSharedPtr(benchmark::State& state) {
  static std::atomic<std::shared_ptr<const uint64_t>> pointer(std::make_shared<const uint64_t>(1));
  for (auto _ : state) benchmark::DoNotOptimize(*pointer.load(std::memory_order_acquire));
}
BENCHMARK(BM_AtomicSharedPtr)->Threads(1)->Threads(2);

#ifdef SLUICE_BENCH_URCU
struct UrcuThread {
  UrcuThread() { urcu_memb_register_thread(); }
  ~UrcuThread() { urcu_memb_unregister_thread(); }
};

void BM_Urcu(benchmark::State& state) {
  static uint64_t value = 1;
  static uint64_t* pointer = &value;
  UrcuThread registered;
  for (auto _ : state) {
    urcu_memb_read_lock();
    benchmark::DoNotOptimize(*rcu_dereference(pointer));
    urcu_memb_read_unlock();
  }
}
BENCHMARK(BM_Urcu)->Threads(1)->Threads(2);

void BM_UrcuReplace(benchmark::State& state) {
  static uint64_t* pointer = new uint64_t(1);
  UrcuThread registered;
  for (auto _ : state) {
    uint64_t* old = rcu_xchg_pointer(&pointer, new uint64_t(2));
    urcu_memb_synchronize_rcu();
    delete old;
  }
}
BENCHMARK(BM_UrcuReplace);
#endif

// A reader on this thread while another publishes without pause: what writes cost readers.
void BM_ReadBesidePublish(benchmark::State& state) {
  static DoublyBufferedData<uint64_t> data(8, 1);
  if (state.thread_index() == 0) {
    for (auto _ : state) benchmark::DoNotOptimize(data.Read(0, [](const uint64_t& value) { return value; }));
  } else {
    for (auto _ : state) data.Publish(1);
  }
}
BENCHMARK(BM_ReadBesidePublish)->Threads(2);

}  // namespace
}  // namespace sluice::concurrent
