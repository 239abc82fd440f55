// Worker: what other layers may ask of a worker.
#include "runtime/worker.h"

#include <time.h>

#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/worker_impl.h"

namespace sluice::runtime {

Worker::Impl::Impl(Worker& worker, const base::Clock& clock, bool shared)
    : self_(worker),
      clock_(clock),
      shared_(shared),
      doze_(worker.runtime_.impl_->doze),
      reactor_(clock),
      run_queue_(shared) {}

Worker::Worker(Runtime& runtime, uint32_t index, const base::Clock& clock, bool shared)
    : runtime_(runtime),
      index_(index),
      now_(clock.Now()),
      random_(0x510ceull + index),
      timers_(std::make_unique<TimerWheel>(now_)),
      impl_(std::make_unique<Impl>(*this, clock, shared)) {}

Worker::~Worker() = default;

Worker* Worker::Current() { return Context().worker; }

int Worker::Watch(int fd, uint32_t events, FdWatch& watch) { return impl_->reactor_.Watch(fd, events, watch); }
void Worker::Rewatch(int fd, uint32_t events, FdWatch& watch) { impl_->reactor_.Rewatch(fd, events, watch); }
void Worker::Unwatch(int fd, FdWatch& watch) { impl_->reactor_.Unwatch(fd, watch); }
void Worker::RequeueNextTurn(FdWatch& watch) { impl_->reactor_.RequeueNextTurn(watch); }

void Worker::AtTurnEnd(TurnHook& hook) {
  if (!hook.linked() && !impl_->draining_) impl_->hooks_.PushBack(hook);
}

void Worker::AtIoEnd(IoHook& hook) {
  if (!hook.linked() && !impl_->draining_) impl_->io_hooks_.PushBack(hook);
}

bool Worker::Send(Mail& mail) { return impl_->Send(mail, /*wake=*/true); }

base::Nanos Worker::CpuTime() const {
  // Acquire pairs with RunWorker's release: the clock's id is there.
  if (!impl_->has_cpu_clock_.load(std::memory_order_acquire)) return base::Nanos(0);
  timespec time;
  if (::clock_gettime(impl_->cpu_clock_.load(std::memory_order_relaxed), &time) != 0) return base::Nanos(0);
  return std::chrono::seconds(time.tv_sec) + base::Nanos(time.tv_nsec);
}

void Worker::Post(std::function<void()> fn) {
  auto message = std::make_unique<FunctionMessage>(std::move(fn));
  if (impl_->Send(*message, /*wake=*/true)) (void)message.release();  // the receiver owns it now
}

Worker::Stats Worker::stats() const {
  constexpr auto relaxed = std::memory_order_relaxed;
  return Stats{impl_->turns_.load(relaxed), impl_->tasks_run_.load(relaxed), impl_->steals_.load(relaxed),
               impl_->parks_.load(relaxed), impl_->blocked_.load(relaxed),   impl_->idle_nanos_.load(relaxed)};
}

Worker::ScopedCurrentForTest::ScopedCurrentForTest(Worker& worker) {
  ThreadContext& context = Context();
  previous_ = context.worker;
  context.worker = &worker;
  worker.impl_->context_ = &context;
}

Worker::ScopedCurrentForTest::~ScopedCurrentForTest() { Context().worker = previous_; }

uint64_t Worker::RunUntilIdleForTest() {
  SLUICE_CHECK(!runtime_.impl_->started);
  ScopedCurrentForTest current(*this);
  const uint64_t before = stats().tasks_run;
  while (impl_->Turn(/*may_wait=*/false)) {
  }
  return stats().tasks_run - before;
}

}  // namespace sluice::runtime
