// Runtime: start, spawn, metrics.
#include "runtime/runtime.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "base/log.h"
#include "runtime/internal/cpu_quota.h"
#include "runtime/internal/monitor.h"
#include "runtime/internal/runtime_impl.h"

namespace sluice::runtime {
namespace {

uint32_t WorkerCount(uint32_t asked) {
  if (asked != 0) return asked;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  // More workers than the quota has cores would be stopped together, in the middle of calls, until the next period.
  const auto quota = CpuQuota();
  const auto may_use = static_cast<unsigned>(CPU_COUNT(&cores));
  const unsigned count = WorkersFor(may_use, quota);
  if (count < may_use)
    SLUICE_LOG_INFO("{} workers: the control group gives {:.2f} of the {} cores that may be used", count, *quota,
                    may_use);
  return count;
}

}  // namespace

Runtime::Impl::Impl(Runtime& runtime, uint32_t blocking_threads) : self(runtime), blocking(blocking_threads) {}

Runtime::Impl::~Impl() = default;

Runtime::Runtime(RuntimeOptions options, const base::Clock& clock)
    : options_(options), clock_(clock), impl_(std::make_unique<Impl>(*this, options.blocking_threads)) {
  const uint32_t count = WorkerCount(options.workers);
  for (uint32_t i = 0; i < count; ++i) {
    workers_.push_back(std::unique_ptr<Worker>(new Worker(*this, i, clock, count > 1)));
    workers_.back()->impl_->sightings_.resize(count);
  }
}

Runtime::~Runtime() { Shutdown(); }

void Runtime::Start() {
  SLUICE_CHECK(!impl_->started && !impl_->stopped);
  impl_->started = true;
  impl_->stop_barrier.emplace(static_cast<std::ptrdiff_t>(size()));
  for (auto& worker : workers_) impl_->threads.emplace_back([this, &worker] { impl_->RunWorker(*worker); });
  if (options_.blocking_threshold.count() > 0) {
    impl_->monitor = std::make_unique<Monitor>(*this, options_.blocking_threshold);
  }
}

void Runtime::Impl::RunWorker(Worker& worker) {
  ThreadContext& context = Context();
  context.worker = &worker;
  worker.impl_->context_ = &context;
  clockid_t cpu_clock;
  if (::pthread_getcpuclockid(::pthread_self(), &cpu_clock) == 0) {
    worker.impl_->cpu_clock_.store(cpu_clock, std::memory_order_relaxed);
    worker.impl_->has_cpu_clock_.store(true, std::memory_order_release);  // pairs with CpuTime
  }
  worker.impl_->Loop();
  worker.impl_->has_cpu_clock_.store(false, std::memory_order_relaxed);
  stop_barrier->arrive_and_wait();
  worker.impl_->StopTimersAndQueues();
  stop_barrier->arrive_and_wait();
  worker.impl_->DestroyTasks();
  stop_barrier->arrive_and_wait();
  worker.impl_->CloseInbox();
}

void Runtime::Impl::StopWithoutThreads() {
  for (void (Worker::Impl::*step)() :
       {&Worker::Impl::StopTimersAndQueues, &Worker::Impl::DestroyTasks, &Worker::Impl::CloseInbox}) {
    for (auto& worker : self.workers_) {
      Worker::ScopedCurrentForTest current(*worker);
      (worker->impl_.get()->*step)();
    }
  }
}

// The numbered steps are in stop.cc.
void Runtime::Shutdown() {
  if (impl_->stopped) return;
  SLUICE_CHECK(Worker::Current() == nullptr || &Worker::Current()->runtime() != this);
  impl_->stopped = true;
  impl_->accepting.store(false, std::memory_order_release);
  impl_->blocking.Close();
  impl_->monitor.reset();
  if (impl_->started) {
    impl_->stopping.store(true, std::memory_order_seq_cst);  // pairs with the second look in ForeignWork
    for (auto& worker : workers_) worker->impl_->WakeIfParked();
    for (std::thread& thread : impl_->threads) thread.join();
  } else {
    impl_->StopWithoutThreads();
  }
  impl_->DrainGlobal(*workers_[0]->impl_, /*close=*/true);
}

bool Runtime::Spawn(Task<void> task) {
  return impl_->Admit(*new TaskHeader(*this, task.Release(), TaskKind::kFree, nullptr), nullptr);
}

bool Runtime::SpawnPinOnStart(Task<void> task) {
  return impl_->Admit(*new TaskHeader(*this, task.Release(), TaskKind::kPinOnStart, nullptr), nullptr);
}

bool Runtime::SpawnOn(Worker& worker, Task<void> task) {
  return impl_->Admit(*new TaskHeader(*this, task.Release(), TaskKind::kPinned, &worker), &worker);
}

bool Runtime::Impl::Admit(TaskHeader& task, Worker* target) {
  Worker* here = Worker::Current();
  if (here != nullptr && &here->runtime_ != &self) here = nullptr;
  const bool mine = here != nullptr && (target == nullptr || target == here);
  bool admitted = accepting.load(std::memory_order_acquire);
  if (here != nullptr) {
    Worker::Impl::Bump(here->impl_->spawned_);
  } else {
    external_spawned.fetch_add(1, std::memory_order_relaxed);
  }
  if (admitted) {
    if (mine && target != nullptr) {
      here->impl_->PushFifo(task);
    } else if (mine) {
      here->impl_->PushStealable(task);
    } else if (target != nullptr) {
      admitted = target->impl_->Send(task, /*wake=*/true);
    } else {
      admitted = Inject(task);
    }
  }
  if (admitted) return true;
  std::exchange(task.root_, nullptr).destroy();
  if (here != nullptr) {
    here->impl_->CountFinished();
  } else {
    external_finished.fetch_add(1, std::memory_order_release);
  }
  task.Unref();
  return false;
}

bool Runtime::Impl::Inject(TaskHeader& task) {
  task.Ref();  // the message's
  if (!global.Push(task)) {
    task.Unref();
    return false;
  }
  if (self.workers_.size() == 1) {
    self.workers_[0]->impl_->WakeIfParked();
  } else {
    WakeSearcher(0);
  }
  return true;
}

bool Runtime::Block(Worker& worker, std::function<void()> fn, std::function<void()> done) {
  return impl_->blocking.Submit(worker, std::move(fn), std::move(done));
}

bool Runtime::MonitorDozesForTest() const { return impl_->doze.asleep(); }

size_t Runtime::LiveTasks() const {
  // Acquire pairs with CountFinished: a reader of 0 sees all that the tasks did. Finished first: it cannot exceed
  // spawned.
  uint64_t finished = impl_->external_finished.load(std::memory_order_acquire);
  for (auto& worker : workers_) finished += worker->impl_->finished_.load(std::memory_order_acquire);
  uint64_t spawned = impl_->external_spawned.load(std::memory_order_relaxed);
  for (auto& worker : workers_) spawned += worker->impl_->spawned_.load(std::memory_order_relaxed);
  return spawned > finished ? spawned - finished : 0;
}

}  // namespace sluice::runtime
