// RateLimiter: order, bounds, refusals, changes and the end of a limit, on a clock that stands still until told.
#include "limits/rate_limiter.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <vector>

#include "base/random.h"
#include "runtime/sleep.h"
#include "support/manual_worker.h"
#include "unit/limits/rate_limiter_support.h"

namespace sluice::limits {
namespace {

using rate_test::Call;
using rate_test::Limiter;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const base::TimePoint kStart{std::chrono::hours(1)};
base::TimePoint At(int64_t ms) { return kStart + milliseconds(ms); }

// 1000 a second: a call a millisecond.
std::shared_ptr<Limiter> Make(uint32_t burst, bool capped = false, uint32_t queue_max = 1024, double rate = 1000) {
  return std::make_shared<Limiter>(RateOptions{rate, burst, capped, queue_max}, kStart);
}

TEST(RateLimiter, TheBurstGoesAndTheRestWaitInTheirOrder) {
  auto limiter = Make(2);
  Call a, b, c, d;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_TRUE(b.Ask(limiter, kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_FALSE(d.Ask(limiter, kStart));
  EXPECT_EQ(c.verdict.check_at, At(1));         // the first has a time
  EXPECT_EQ(d.verdict.check_at, base::kNever);  // the others wait to be woken
  EXPECT_EQ(limiter->waiting(), 2u);
  EXPECT_FALSE(a.ticket.holding());  // uncapped: nothing to give back
  EXPECT_FALSE(d.Poll(At(5)));       // not first, though there are tokens
  EXPECT_FALSE(c.Poll(At(0)));       // spurious
  EXPECT_TRUE(c.Poll(At(1)));
  EXPECT_TRUE(d.Woken());
  EXPECT_FALSE(d.Poll(At(1)));
  EXPECT_EQ(d.verdict.check_at, At(2));
  EXPECT_TRUE(d.Poll(At(2)));
  EXPECT_EQ(limiter->waiting(), 0u);
}

TEST(RateLimiter, NoRequestBargesPastTheQueue) {
  auto limiter = Make(1);
  Call a, b, late;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_FALSE(late.Ask(limiter, At(1)));  // b's token is there, b has not looked yet
  EXPECT_TRUE(b.Poll(At(1)));
  EXPECT_FALSE(late.Poll(At(1)));
}

TEST(RateLimiter, TheTimeToAskAgainIsNeverEarly) {
  base::Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    auto limiter = Make(1, random.Below(2) == 0, 10, 0.001 + 1e5 * random.Unit() * random.Unit() * random.Unit());
    Call a, b;
    ASSERT_TRUE(a.Ask(limiter, kStart));
    a.ticket.Drop();
    ASSERT_FALSE(b.Ask(limiter, kStart));
    const base::TimePoint when = b.verdict.check_at;
    ASSERT_FALSE(b.Poll(when - base::Nanos(1)));
    ASSERT_TRUE(b.Poll(when));
  }
}

TEST(RateLimiter, LeavingTheHeadWakesTheNextAndCostsNothing) {
  auto limiter = Make(1);
  Call a, b, c, d;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_FALSE(d.Ask(limiter, kStart));
  c.ticket.Drop();
  c.ticket.Drop();
  EXPECT_FALSE(d.Woken());  // it is not first yet
  b.ticket.Drop();
  EXPECT_TRUE(d.Woken());
  EXPECT_FALSE(d.Poll(kStart));
  EXPECT_EQ(d.verdict.check_at, At(1));  // as if the others had never been
  EXPECT_TRUE(d.Poll(At(1)));
}

TEST(RateLimiter, TheQueueIsBounded) {
  auto limiter = Make(1, false, 2);
  Call a, b, c, d;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_FALSE(d.Ask(limiter, kStart));
  EXPECT_TRUE(d.refused(Refusal::kQueueFull));
  EXPECT_EQ(d.verdict.retry_after, milliseconds(3));
  EXPECT_FALSE(d.ticket.waiting());
  EXPECT_EQ(limiter->waiting(), 2u);
  auto none = Make(1, false, 0);
  Call e, f;
  EXPECT_TRUE(e.Ask(none, kStart));
  EXPECT_FALSE(f.Ask(none, kStart));
  EXPECT_TRUE(f.refused(Refusal::kQueueFull));
}

TEST(RateLimiter, AWaitThatWouldPassTheDeadlineIsRefusedAtOnce) {
  auto limiter = Make(1);
  Call a, b, c, d;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart, At(1)));  // exactly in time
  EXPECT_TRUE(b.waits());
  EXPECT_FALSE(c.Ask(limiter, kStart, At(2) - base::Nanos(1)));
  EXPECT_TRUE(c.refused(Refusal::kTooLate));
  EXPECT_EQ(c.verdict.retry_after, milliseconds(2));
  EXPECT_EQ(limiter->waiting(), 1u);
  EXPECT_FALSE(c.Ask(limiter, kStart + microseconds(500), kStart));
  EXPECT_EQ(c.verdict.retry_after, milliseconds(2));  // rounded up: a retry is not early
  EXPECT_FALSE(d.Ask(limiter, kStart, At(2)));
  EXPECT_TRUE(d.waits());
  auto alone = Make(1, false, 10, 1e6);
  Call e, f;
  EXPECT_TRUE(e.Ask(alone, kStart));
  EXPECT_FALSE(f.Ask(alone, kStart, kStart));  // also the first
  EXPECT_TRUE(f.refused(Refusal::kTooLate));
  EXPECT_EQ(f.verdict.retry_after, milliseconds(1));  // at least
  EXPECT_EQ(alone->waiting(), 0u);
}

TEST(RateLimiter, NoLimitHoldsNothing) {
  auto limiter = Make(1, true, 0, 0);
  Call calls[3];
  for (Call& call : calls) {
    EXPECT_TRUE(call.Ask(limiter, kStart));
    EXPECT_FALSE(call.ticket.holding());
  }
  EXPECT_EQ(limiter->rate(), 0.0);
}

TEST(RateLimiter, TimeThatGoesBackIsHarmless) {
  auto limiter = Make(2);
  Call a, b, c;
  EXPECT_TRUE(a.Ask(limiter, At(100)));
  EXPECT_TRUE(b.Ask(limiter, At(50)));
  EXPECT_FALSE(c.Ask(limiter, At(20)));
  EXPECT_EQ(c.verdict.check_at, At(101));
  EXPECT_FALSE(c.Poll(At(10)));
  EXPECT_TRUE(c.Poll(At(101)));
}

TEST(RateLimiterCapped, AnEndWakesTheFirstThatTimeWouldLetGo) {
  auto limiter = Make(2, true);
  Call a, b, c, d;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_TRUE(b.Ask(limiter, kStart));
  EXPECT_TRUE(a.ticket.holding());
  EXPECT_EQ(limiter->outstanding(), 2u);
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_EQ(c.verdict.check_at, base::kNever);  // time alone does not help
  EXPECT_FALSE(d.Ask(limiter, kStart));
  a.ticket.Drop();
  a.ticket.Drop();
  EXPECT_TRUE(c.Woken());
  EXPECT_FALSE(d.Woken());
  EXPECT_FALSE(c.Poll(kStart));
  EXPECT_EQ(c.verdict.check_at, At(1));  // now time does
  b.ticket.Drop();
  EXPECT_FALSE(c.Woken());  // it has its time: no wake for nothing
  EXPECT_TRUE(c.Poll(At(1)));
  EXPECT_TRUE(d.Woken());
  EXPECT_TRUE(d.Poll(At(2)));
  c.ticket.Drop();
  d.ticket.Drop();
  EXPECT_EQ(limiter->outstanding(), 0u);
}

TEST(RateLimiterCapped, ADestroyedTicketGivesItsTokenBackAndLeaves) {
  auto limiter = Make(1, true);
  auto holder = std::make_unique<Call>();
  auto waiter = std::make_unique<Call>();
  EXPECT_TRUE(holder->Ask(limiter, kStart));
  EXPECT_FALSE(waiter->Ask(limiter, kStart));
  holder.reset();
  EXPECT_TRUE(waiter->Woken());
  waiter.reset();
  EXPECT_EQ(limiter->waiting(), 0u);
  EXPECT_EQ(limiter->outstanding(), 0u);
}

TEST(RateLimiterCapped, ATokenTakenWithoutATicketIsOneOfTheBurstAndWakesTheFirstAtItsEnd) {
  using Start = Limiter::Start;
  auto limiter = Make(2, true);
  Call a, b;
  EXPECT_EQ(limiter->TryStart(kStart), Start::kHeld);
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_EQ(limiter->TryStart(kStart), Start::kNo);
  EXPECT_TRUE(a.ticket.Detach());
  EXPECT_FALSE(a.ticket.Detach());
  a.ticket.Drop();  // gives back nothing
  EXPECT_EQ(limiter->outstanding(), 2u);
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_EQ(limiter->TryStart(At(1000)), Start::kNo);  // there is a waiter
  limiter->Release();
  EXPECT_TRUE(b.Woken());
  limiter->ReleaseUnused();
  EXPECT_TRUE(b.Woken());
  EXPECT_TRUE(b.Poll(kStart));
  EXPECT_EQ(limiter->outstanding(), 1u);
}

TEST(RateLimiter, AStartWithoutATicketHoldsNothing) {
  using Start = Limiter::Start;
  auto limiter = Make(1);
  EXPECT_EQ(limiter->TryStart(kStart), Start::kFree);
  EXPECT_EQ(limiter->TryStart(kStart), Start::kNo);
  limiter->Refund();
  EXPECT_EQ(limiter->TryStart(kStart), Start::kFree);
  limiter->Close();
  EXPECT_EQ(limiter->TryStart(kStart), Start::kUnlimited);
}

TEST(RateLimiter, ARefundLetsTheFirstGo) {
  auto limiter = std::make_shared<Limiter>(RateOptions{1, 1, false, 10}, kStart);
  Call a, b, c;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  limiter->Refund();
  EXPECT_TRUE(b.Woken());
  EXPECT_TRUE(b.Poll(kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
}

TEST(RateLimiterCapped, AnUnusedTokenComesBackWithItsCredit) {
  for (bool unused : {true, false}) {
    auto limiter = std::make_shared<Limiter>(RateOptions{1, 2, true, 10}, kStart);
    Call a, b, c;
    EXPECT_TRUE(a.Ask(limiter, kStart));
    EXPECT_TRUE(b.Ask(limiter, kStart));
    EXPECT_FALSE(c.Ask(limiter, kStart));
    unused ? a.ticket.DropUnused() : a.ticket.Drop();
    EXPECT_TRUE(c.Woken());
    EXPECT_EQ(c.Poll(kStart), unused);
    EXPECT_EQ(limiter->outstanding(), unused ? 2u : 1u);
  }
}

// Let go while there was no limit, refunded when there is one again: another call's token is not this one's to return.
TEST(RateLimiterCapped, ARefundWithoutATokenIsNothing) {
  auto limiter = std::make_shared<Limiter>(RateOptions{1, 2, true, 10}, kStart);
  limiter->Refund();
  Call a;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  limiter->Refund();
  EXPECT_EQ(limiter->outstanding(), 1u);
}

TEST(RateLimiter, ANewRateReachesPresentWaiters) {
  auto limiter = Make(1, false, 10, 1);
  Call a, b, c;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_LE(b.verdict.check_at, At(1000));  // a token of the call's 2^20, a microsecond, may have been due already
  EXPECT_GE(b.verdict.check_at, At(1000) - microseconds(1));
  limiter->Configure({100, 1, false, 10}, At(500));  // half a token has come
  EXPECT_TRUE(b.Woken());
  EXPECT_FALSE(b.Poll(At(500)));
  EXPECT_GE(b.verdict.check_at, At(505));
  EXPECT_LE(b.verdict.check_at, At(505) + microseconds(1));
  EXPECT_TRUE(b.Poll(At(506)));
  EXPECT_TRUE(c.Woken());
  EXPECT_TRUE(c.Poll(At(516)));
  EXPECT_NEAR(limiter->rate(), 100, 1e-6);
}

TEST(RateLimiter, ALowerBurstAndQueueHoldFromNowOn) {
  auto limiter = Make(100);
  limiter->Configure({1000, 1, false, 1}, kStart);
  Call a, b, c;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_TRUE(b.waits());
  EXPECT_FALSE(c.Ask(limiter, kStart));
  EXPECT_TRUE(c.refused(Refusal::kQueueFull));
  EXPECT_FALSE(limiter->CanBecome({1000, 1, true, 1}));
  EXPECT_TRUE(limiter->CanBecome({0, 1, true, 1}));
}

// `off`: by an option that can be taken back, or for ever.
void EveryoneGoes(bool close) {
  for (bool capped : {false, true}) {
    auto limiter = Make(1, capped);
    std::list<Call> calls(100);
    Call first, later, again;
    EXPECT_TRUE(first.Ask(limiter, kStart));
    for (Call& call : calls) EXPECT_FALSE(call.Ask(limiter, kStart));
    if (close) {
      limiter->Close();
    } else {
      limiter->Configure({0, 1, capped, 1024}, kStart);
    }
    EXPECT_EQ(limiter->waiting(), 0u);
    for (Call& call : calls) {
      EXPECT_TRUE(call.Woken());
      EXPECT_TRUE(call.Poll(kStart));
      EXPECT_FALSE(call.ticket.holding());
    }
    EXPECT_TRUE(later.Ask(limiter, kStart));
    EXPECT_FALSE(later.ticket.holding());
    limiter->Configure({1000, 1, capped, 1024}, kStart);
    EXPECT_EQ(again.Ask(limiter, kStart), close);
    first.ticket.Drop();
    again.ticket.Drop();
    EXPECT_EQ(limiter->outstanding(), 0u);
  }
}
TEST(RateLimiter, AClosedLimiterLetsAllGo) { EveryoneGoes(true); }
TEST(RateLimiter, ALimiterTurnedOffLetsAllGoAndCanBeTurnedOnAgain) { EveryoneGoes(false); }

// Timers fire once a millisecond; the queue is never empty. A burst of less than a millisecond's calls is a lower rate.
TEST(RateLimiter, WhileCallsQueueTheBurstIsAllThatALookBrings) {
  for (auto [burst, share] : {std::pair(50u, 0.5), {100u, 1.0}, {200u, 1.0}}) {
    auto limiter = std::make_shared<Limiter>(RateOptions{1e5, burst, false, 1'000'000}, kStart);
    std::deque<Call> queue;
    int went = 0;
    for (int ms = 0; ms <= 1000; ++ms) {
      while (queue.size() < 400) queue.emplace_back().Ask(limiter, At(ms));
      while (!queue.empty() && (queue.front().went() || queue.front().Poll(At(ms)))) {
        queue.pop_front();
        ++went;
      }
    }
    EXPECT_NEAR(went, 1e5 * share, 1e5 * 0.005 + burst) << burst;
    while (!queue.empty()) queue.pop_back();
  }
}

TEST(RateLimiter, ABucketCanGoOnWhereAnotherEnded) {
  auto first = Make(10);
  EXPECT_LE(first->FullAt(kStart), kStart);
  Call calls[10];
  for (Call& call : calls) EXPECT_TRUE(call.Ask(first, kStart));
  EXPECT_EQ(first->FullAt(kStart), At(10));
  auto second = std::make_shared<Limiter>(RateOptions{1000, 10, false, 10}, At(4), first->FullAt(At(4)));
  Call more[6];
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(more[i].Ask(second, At(4) + base::Nanos(1))) << i;
  EXPECT_FALSE(more[4].Ask(second, At(4) + base::Nanos(1)));
}

// A hundred thousand random asks, polls, leaves, ends and changes, against a deque.
void AgreesWithADeque(bool capped, uint64_t seed) {
  SCOPED_TRACE(seed);
  base::Random random(seed);
  auto limiter = Make(5, capped, 40);
  std::list<Call> calls;
  std::deque<Call*> queue;
  std::vector<Call*> running;
  base::TimePoint now = kStart;
  uint64_t granted = 0;
  auto erase = [&](Call* call) { calls.remove_if([&](const Call& c) { return &c == call; }); };
  for (int step = 0; step < 100'000; ++step) {
    switch (random.Below(8)) {
      case 0:
        now += microseconds(random.Below(3000));
        break;
      case 1:
      case 2:
      case 3: {
        Call& call = calls.emplace_back();
        const bool must_wait = !queue.empty();
        call.Ask(limiter, now, random.Below(4) == 0 ? now + milliseconds(random.Below(20)) : base::kNever);
        if (call.went()) {
          ASSERT_FALSE(must_wait);
          ++granted;
          running.push_back(&call);
        } else if (call.waits()) {
          ASSERT_LT(queue.size(), 40u);
          if (must_wait) {
            ASSERT_EQ(call.verdict.check_at, base::kNever);
          }
          queue.push_back(&call);
        } else {
          ASSERT_GE(call.verdict.retry_after, milliseconds(1));
          if (call.refused(Refusal::kQueueFull)) {
            ASSERT_EQ(queue.size(), 40u);
          }
          calls.pop_back();
        }
        break;
      }
      case 4:
      case 5: {  // a waiter polls; only the first may go
        if (queue.empty()) break;
        const size_t place = random.Below(2) == 0 ? 0 : random.Below(queue.size());
        Call* call = queue[place];
        const bool had_time = place == 0 && call->verdict.check_at <= now;
        call->Poll(now);
        if (had_time && !capped) {  // never early
          ASSERT_TRUE(call->went());
        }
        if (!call->went()) break;
        ASSERT_EQ(place, 0u);
        ++granted;
        queue.pop_front();
        if (!queue.empty()) {
          ASSERT_TRUE(queue.front()->Woken());
        }
        running.push_back(call);
        break;
      }
      case 6: {  // a waiter leaves the queue
        if (queue.empty()) break;
        const size_t place = random.Below(queue.size());
        Call* call = queue[place];
        queue.erase(queue.begin() + static_cast<ptrdiff_t>(place));
        if (!queue.empty()) (void)queue.front()->Woken();
        erase(call);
        if (place == 0 && !queue.empty()) {
          ASSERT_TRUE(queue.front()->Woken());
        }
        break;
      }
      default: {  // a call ends
        if (running.empty()) break;
        const size_t which = random.Below(running.size());
        erase(running[which]);
        running.erase(running.begin() + static_cast<ptrdiff_t>(which));
      }
    }
    ASSERT_EQ(limiter->waiting(), queue.size());
    if (capped) {
      ASSERT_EQ(limiter->outstanding(), running.size());
    }
    if (capped) {
      ASSERT_LE(running.size(), 5u);
    }
  }
  const double span = std::chrono::duration<double>(now - kStart).count();
  EXPECT_LE(static_cast<double>(granted), span * 1000 + 5 + 1);
  EXPECT_GT(granted, 1000u);
  queue.clear();
  calls.clear();
  EXPECT_EQ(limiter->outstanding(), 0u);
  EXPECT_EQ(limiter->waiting(), 0u);
}
TEST(RateLimiter, AgreesWithADequeOverManyRandomSteps) { AgreesWithADeque(false, 201); }
TEST(RateLimiterCapped, AgreesWithADequeOverManyRandomSteps) { AgreesWithADeque(true, 202); }

// Real tasks on a worker's timers: each waits until check_at or a wake, whichever comes.
struct WakeAt final : runtime::Timer {
  void OnTimer(base::TimePoint) override { waker.Wake(); }
  runtime::Waker waker;
};
struct Suspend {
  WakeAt& timer;
  base::TimePoint when;
  bool await_ready() const { return false; }
  void await_suspend(std::coroutine_handle<> h) {
    timer.waker = runtime::Waker::ForCurrentTask(h);
    if (when != base::kNever) runtime::Worker::Current()->timers().Arm(timer, when);
  }
  void await_resume() const {}
};
runtime::Task<> CallTask(std::shared_ptr<RateLimiter> limiter, int id, std::vector<int>& order, int& polls) {
  RateLimiter::Ticket ticket;
  Verdict verdict = ticket.Ask(*limiter, runtime::Worker::Current()->now(), base::kNever);
  while (verdict.kind == Verdict::Kind::kWait) {
    WakeAt timer;
    Suspend suspend{timer, verdict.check_at};
    co_await suspend;
    ++polls;
    verdict = ticket.Poll(runtime::Worker::Current()->now());
  }
  order.push_back(id);
  co_await runtime::SleepUntil(runtime::Worker::Current()->now() + milliseconds(10));  // the call
}

TEST(RateLimiter, TasksGoInTheirOrderAtTheRate) {
  for (bool capped : {false, true}) {
    sluice::test::ManualWorker worker;
    auto limiter = std::make_shared<RateLimiter>(RateOptions{1000, 20, capped, 1024}, worker.clock.Now());
    std::vector<int> order;
    int polls = 0;
    for (int i = 0; i < 120; ++i) worker.runtime.SpawnOn(worker.worker, CallTask(limiter, i, order, polls));
    worker.Run();
    EXPECT_EQ(order.size(), 20u);
    for (int ms = 1; ms <= 150; ++ms) {
      worker.clock.Advance(milliseconds(1));
      worker.Run();
      ASSERT_LE(order.size(), 20u + static_cast<size_t>(ms));
    }
    EXPECT_EQ(order.size(), 120u);
    for (int i = 0; i < 120; ++i) EXPECT_EQ(order[i], i);
    EXPECT_LE(polls, 400);  // become first, then its time: no spinning
    EXPECT_EQ(worker.runtime.LiveTasks(), 0u);
    EXPECT_EQ(limiter->outstanding(), 0u);
  }
}

}  // namespace
}  // namespace sluice::limits
