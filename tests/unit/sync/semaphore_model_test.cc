// Semaphore: a million random operations against a sequential model that is slow and plain, on a clock turned by hand.
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <optional>
#include <random>
#include <vector>

#include "unit/sync/semaphore_support.h"

namespace sluice::sync::test {
namespace {

constexpr int kCallers = 16;
constexpr int64_t kCapacity = 5;

// What the contract says, word for word.
struct Model {
  struct Waiting {
    int caller;
    int64_t units;
  };
  int64_t count = kCapacity;
  bool broken = false;
  size_t waiters_max = 8;
  std::deque<Waiting> queue;
  std::array<Outcome, kCallers> outcomes{};
  std::vector<int> woken;

  void Ask(int caller, int64_t units) {
    Outcome& outcome = outcomes[caller];
    if (broken) {
      outcome = Outcome::kBroken;
    } else if (units > kCapacity) {
      outcome = Outcome::kTooLarge;
    } else if (queue.empty() && units <= count) {
      count -= units;
      outcome = Outcome::kGranted;
    } else if (queue.size() >= waiters_max) {
      outcome = Outcome::kQueueFull;
    } else {
      queue.push_back({caller, units});
      outcome = Outcome::kWaiting;
    }
  }
  void Grant() {
    while (!queue.empty() && queue.front().units <= count) {
      count -= queue.front().units;
      End(queue.front().caller, Outcome::kGranted);
      queue.pop_front();
    }
  }
  void End(int caller, Outcome outcome) {
    outcomes[caller] = outcome;
    woken.push_back(caller);
  }
  void Add(int64_t units) {
    if (broken) return;
    count += units;
    Grant();
  }
  void Leave(int caller, Outcome why) {
    std::erase_if(queue, [&](const Waiting& waiting) { return waiting.caller == caller; });
    outcomes[caller] = why;
    Grant();
  }
  void Break() {
    broken = true;
    count = 0;
    for (const Waiting& waiting : queue) End(waiting.caller, Outcome::kBroken);
    queue.clear();
  }
};

// One semaphore's life, beside the model, until it is broken and its holders have ended.
class Walk {
 public:
  explicit Walk(std::mt19937& random) : random_(random) {
    semaphore_.emplace(kCapacity, kCapacity, model_.waiters_max);
  }
  ~Walk() {
    for (Caller& caller : callers_) semaphore_->Cancel(caller.waiter);
    for (Caller& caller : callers_) {
      if (caller.waiter.outcome() != Outcome::kGranted) continue;
      EXPECT_EQ(semaphore_->Adopt(caller.asked).units(), caller.asked);
    }
  }

  void Step() {
    const int number = Draw(kCallers);
    Caller& caller = callers_[number];
    switch (Draw(16)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        AskOrEnd(number);
        break;
      case 6:
      case 7:
      case 8:
        if (caller.units >= 0) Return(number);
        break;
      case 9: {
        const bool was_waiting = model_.outcomes[number] == Outcome::kWaiting;
        ASSERT_EQ(semaphore_->Cancel(caller.waiter, Outcome::kCancelled), was_waiting);
        if (was_waiting) model_.Leave(number, Outcome::kCancelled);
        break;
      }
      case 10:
      case 11:
        now_ += Draw(5);
        Expire();
        break;
      case 12:
        TryAcquire(Draw(kCapacity + 2));
        break;
      case 13: {
        const int64_t units = Draw(3);
        if (consumed_ + units > 6 || model_.broken) break;
        consumed_ += units;
        semaphore_->Consume(units);
        model_.count -= units;
        break;
      }
      case 14: {
        const int64_t units = Draw(static_cast<int>(consumed_) + 1);
        consumed_ -= units;
        semaphore_->Signal(units);
        model_.Add(units);
        break;
      }
      case 15:
        if (Draw(200) != 0) break;
        semaphore_->Break(base::ErrorKind::kDraining);
        model_.Break();
        break;
    }
  }

  void Check() {
    for (int i = 0; i < kCallers; ++i) ASSERT_EQ(callers_[i].waiter.outcome(), model_.outcomes[i]) << i;
    ASSERT_EQ(semaphore_->raw(), model_.count);
    ASSERT_EQ(semaphore_->waiters(), model_.queue.size());
    ASSERT_EQ(semaphore_->broken(), model_.broken);
    ASSERT_EQ(woken_, model_.woken);
    woken_.clear();
    model_.woken.clear();
    int64_t held = 0;
    for (int i = 0; i < kCallers; ++i) {
      if (callers_[i].permit) held += callers_[i].permit->units();
      if (model_.outcomes[i] == Outcome::kGranted) held += callers_[i].asked;
    }
    ASSERT_EQ(semaphore_->held(), held);
    if (!model_.broken) {
      ASSERT_EQ(model_.count + held, kCapacity - consumed_);
    }
  }
  bool broken() const { return model_.broken; }

 private:
  struct Caller {
    TestSemaphore::Waiter waiter;
    int64_t asked = 0;
    int64_t deadline = 0;
    std::optional<TestSemaphore::Permit> permit;
    int64_t units = -1;  // held by the permit; -1: none
  };

  int Draw(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }

  void AskOrEnd(int number) {
    Caller& caller = callers_[number];
    switch (model_.outcomes[number]) {
      case Outcome::kWaiting:
        return;
      case Outcome::kGranted:  // picks up what it was granted
        if (caller.permit) ReturnAll(number);
        caller.permit.emplace(semaphore_->Adopt(caller.asked));
        caller.units = caller.asked;
        caller.waiter.Reset();
        model_.outcomes[number] = Outcome::kNone;
        return;
      default:
        break;
    }
    caller.asked = Draw(3) == 0 ? Draw(kCapacity + 2) : Draw(3);
    caller.deadline = now_ + 1 + Draw(40);
    semaphore_->Enqueue(caller.waiter, caller.asked, RecordingWakeup(woken_, number));
    model_.Ask(number, caller.asked);
  }
  void Return(int number) {
    Caller& caller = callers_[number];
    const int64_t some = Draw(static_cast<int>(caller.units) + 1);
    if (Draw(2) == 0) {
      ASSERT_TRUE(caller.permit->GiveBack(some));
      caller.units -= some;
      return model_.Add(some);
    }
    ReturnAll(number);
  }
  void ReturnAll(int number) {
    const int64_t all = std::exchange(callers_[number].units, -1);
    callers_[number].permit.reset();
    model_.Add(all);
  }
  void Expire() {
    for (int i = 0; i < kCallers; ++i) {
      if (model_.outcomes[i] != Outcome::kWaiting || callers_[i].deadline > now_) continue;
      ASSERT_TRUE(semaphore_->Cancel(callers_[i].waiter, Outcome::kTimedOut));
      model_.Leave(i, Outcome::kTimedOut);
    }
  }
  void TryAcquire(int64_t units) {
    const bool can = !model_.broken && model_.queue.empty() && units <= model_.count;
    std::optional<TestSemaphore::Permit> permit = semaphore_->TryAcquire(units);
    ASSERT_EQ(permit.has_value(), can);
    ASSERT_EQ(semaphore_->raw(), model_.count - (can ? units : 0));
  }

  std::mt19937& random_;
  std::vector<int> woken_;
  std::optional<TestSemaphore> semaphore_;
  std::array<Caller, kCallers> callers_;  // destroyed before the semaphore
  Model model_;
  int64_t consumed_ = 0;
  int64_t now_ = 0;
};

TEST(SemaphoreModel, AgreesForAMillionSteps) {
  std::mt19937 random(4711);
  std::optional<Walk> walk;
  int after_break = 0;
  for (int step = 0; step < 1'000'000; ++step) {
    if (!walk || after_break > 200) {
      walk.reset();
      walk.emplace(random);
      after_break = 0;
    }
    walk->Step();
    walk->Check();
    if (testing::Test::HasFatalFailure()) FAIL() << "step " << step;
    after_break += walk->broken();
  }
}

}  // namespace
}  // namespace sluice::sync::test
