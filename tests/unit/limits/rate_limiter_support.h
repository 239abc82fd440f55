// What the tests of RateLimiter share: a wake-up that only counts, so that a test plays the task.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "limits/rate_limiter_impl.h"

namespace sluice::limits::rate_test {

// Names the "running task" by the counter that the test has put here.
class FakeWakeup {
 public:
  using Count = std::shared_ptr<std::atomic<int>>;
  static Count& Running() {
    static thread_local Count running;
    return running;
  }
  static FakeWakeup ForRunningTask() {
    FakeWakeup wakeup;
    wakeup.count_ = Running();
    return wakeup;
  }
  void Wake() const {
    // Release: what the waker did before. Pairs with the acquire of the test's look.
    if (count_ != nullptr) count_->fetch_add(1, std::memory_order_release);
  }

 private:
  Count count_;
};

struct FakeTraits {
  template <typename V>
  using Atomic = std::atomic<V>;
  using Mutex = std::mutex;
  using Wakeup = FakeWakeup;
};

using Limiter = BasicRateLimiter<FakeTraits>;

// A call of the test: its ticket, its wakes, its last verdict.
struct Call {
  FakeWakeup::Count wakes = std::make_shared<std::atomic<int>>(0);
  int seen = 0;
  Limiter::Ticket ticket;
  Verdict verdict;

  bool Ask(const std::shared_ptr<Limiter>& limiter, base::TimePoint now, base::TimePoint deadline = base::kNever) {
    FakeWakeup::Running() = wakes;
    verdict = ticket.Ask(*limiter, now, deadline);
    FakeWakeup::Running() = nullptr;
    return went();
  }
  bool Poll(base::TimePoint now) {
    verdict = ticket.Poll(now);
    return went();
  }
  // Whether it has been woken since the last question.
  bool Woken() {
    const int now = wakes->load(std::memory_order_acquire);
    return std::exchange(seen, now) != now;
  }
  bool went() const { return verdict.kind == Verdict::Kind::kGo; }
  bool waits() const { return verdict.kind == Verdict::Kind::kWait; }
  bool refused(Refusal why) const { return verdict.kind == Verdict::Kind::kRefused && verdict.refusal == why; }
};

}  // namespace sluice::limits::rate_test
