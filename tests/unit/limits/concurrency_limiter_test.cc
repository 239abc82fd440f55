#include "limits/concurrency_limiter.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "runtime/runtime.h"
#include "support/manual_worker.h"
#include "sync/event.h"

namespace sluice::limits {
namespace {

using std::chrono::milliseconds;

// A wake-up that notes its asker's number in a log.
struct RecordingWakeup {
  static inline std::vector<int> log;
  static inline int asking = 0;  // the present asker
  static RecordingWakeup ForRunningTask() { return RecordingWakeup{asking}; }
  void Wake() const { log.push_back(number); }
  int number = -1;
};

struct TestTraits : ConcurrencyLimiterTraits {
  using Wakeup = RecordingWakeup;
  static inline base::TimePoint now = base::kNever;
  static base::TimePoint Now() { return now; }
};

using Limiter = BasicConcurrencyLimiter<TestTraits>;
using Kind = Verdict::Kind;

class ConcurrencyLimiterTest : public testing::Test {
 protected:
  void SetUp() override {
    RecordingWakeup::log.clear();
    TestTraits::now = base::kNever;
  }
  void Make(uint32_t max, uint32_t queue_max = 100) {
    limiter_ = std::make_shared<Limiter>(ConcurrencyOptions{.max = max, .queue_max = queue_max});
  }
  Kind Ask(int number, uint64_t flow = 1) {
    RecordingWakeup::asking = number;
    return tickets_[number].Ask(*limiter_, flow).kind;
  }
  std::vector<int> Woken() { return std::exchange(RecordingWakeup::log, {}); }

  std::shared_ptr<Limiter> limiter_;
  Limiter::Ticket tickets_[10];
};

using Numbers = std::vector<int>;

TEST_F(ConcurrencyLimiterTest, LetsMaxGoAndTheRestWaitTheirTurn) {
  Make(2);
  EXPECT_TRUE(limiter_->HasRoom());
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kGo);
  EXPECT_FALSE(limiter_->HasRoom());
  EXPECT_EQ(Ask(2), Kind::kWait);
  EXPECT_EQ(Ask(3), Kind::kWait);
  EXPECT_EQ(tickets_[2].Poll().kind, Kind::kWait);  // a spurious look is harmless
  EXPECT_EQ(tickets_[2].Poll().check_at, base::kNever);
  EXPECT_EQ(limiter_->in_use(), 2u);
  EXPECT_EQ(limiter_->waiting(), 2u);
  tickets_[0].Drop();
  EXPECT_EQ(Woken(), Numbers{2});
  EXPECT_TRUE(tickets_[2].waiting());
  EXPECT_EQ(tickets_[2].Poll().kind, Kind::kGo);
  EXPECT_TRUE(tickets_[2].holding());
  EXPECT_EQ(limiter_->in_use(), 2u);
  tickets_[1].Drop();
  tickets_[1].Drop();  // idempotent
  EXPECT_EQ(tickets_[3].Poll().kind, Kind::kGo);
  EXPECT_EQ(limiter_->in_use(), 2u);
}

TEST_F(ConcurrencyLimiterTest, TryAskNeverQueuesAndNeverBarges) {
  Make(1);
  EXPECT_EQ(tickets_[0].TryAsk(*limiter_).kind, Kind::kGo);
  Verdict verdict = tickets_[1].TryAsk(*limiter_);
  EXPECT_EQ(verdict.kind, Kind::kRefused);
  EXPECT_EQ(verdict.refusal, Refusal::kQueueFull);
  EXPECT_GE(verdict.retry_after, milliseconds(1));
  EXPECT_EQ(Ask(2), Kind::kWait);
  tickets_[0].Drop();  // its unit is 2's
  EXPECT_EQ(tickets_[1].TryAsk(*limiter_).kind, Kind::kRefused);
  EXPECT_EQ(limiter_->waiting(), 0u);
}

TEST_F(ConcurrencyLimiterTest, AWaiterThatLeftIsNotWokenAndBlocksNoOther) {
  Make(1);
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kWait);
  EXPECT_EQ(Ask(2), Kind::kWait);
  tickets_[1].Drop();
  EXPECT_EQ(limiter_->waiting(), 1u);
  tickets_[0].Drop();
  EXPECT_EQ(Woken(), Numbers{2});
}

TEST_F(ConcurrencyLimiterTest, AGrantThatWasNotNoticedGoesToTheNext) {
  Make(1);
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kWait);
  EXPECT_EQ(Ask(2), Kind::kWait);
  tickets_[0].Drop();
  tickets_[1].Drop();  // has been granted, never polled
  EXPECT_EQ(Woken(), (Numbers{1, 2}));
  EXPECT_EQ(tickets_[2].Poll().kind, Kind::kGo);
}

TEST_F(ConcurrencyLimiterTest, AFullQueueRefusesOrDisplaces) {
  Make(1, 3);
  EXPECT_EQ(Ask(0, 1), Kind::kGo);
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(Ask(i, 1), Kind::kWait);
  EXPECT_EQ(Ask(4, 1), Kind::kRefused);
  EXPECT_EQ(Ask(5, 2), Kind::kWait);
  EXPECT_EQ(Woken(), Numbers{3});
  Verdict verdict = tickets_[3].Poll();
  EXPECT_EQ(verdict.kind, Kind::kRefused);
  EXPECT_EQ(verdict.refusal, Refusal::kQueueFull);
  EXPECT_FALSE(tickets_[3].waiting());
  EXPECT_EQ(limiter_->waiting(), 3u);
  EXPECT_EQ(Ask(3, 1), Kind::kRefused);  // a ticket may ask again
}

TEST_F(ConcurrencyLimiterTest, ALargerMaxLetsWaitersGoAndASmallerOneWaitsForEnds) {
  Make(1);
  for (int i = 0; i < 5; ++i) Ask(i);
  limiter_->Configure({.max = 3, .queue_max = 100});
  EXPECT_EQ(Woken(), (Numbers{1, 2}));
  for (int i = 1; i <= 2; ++i) EXPECT_EQ(tickets_[i].Poll().kind, Kind::kGo);
  limiter_->Configure({.max = 1, .queue_max = 100});
  EXPECT_EQ(limiter_->in_use(), 3u);
  tickets_[0].Drop();
  tickets_[1].Drop();
  EXPECT_EQ(Woken(), Numbers{});
  tickets_[2].Drop();
  EXPECT_EQ(Woken(), Numbers{3});
  limiter_->Configure({.max = 1, .queue_max = 0});  // present waiters stay
  EXPECT_TRUE(tickets_[4].waiting());
  EXPECT_EQ(Ask(5), Kind::kRefused);
}

TEST_F(ConcurrencyLimiterTest, WithoutALimitNothingIsHeldAndSettingOneCountsFromThenOn) {
  Make(0);
  EXPECT_TRUE(limiter_->HasRoom());
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_FALSE(tickets_[0].holding());
  EXPECT_EQ(limiter_->in_use(), 0u);
  limiter_->Configure({.max = 1, .queue_max = 100});
  EXPECT_EQ(Ask(1), Kind::kGo);
  EXPECT_TRUE(tickets_[1].holding());
  EXPECT_EQ(Ask(2), Kind::kWait);
  limiter_->Configure({.max = 0});
  EXPECT_EQ(Woken(), Numbers{2});
  EXPECT_EQ(tickets_[2].Poll().kind, Kind::kGo);
  EXPECT_FALSE(tickets_[2].holding());
  limiter_->Configure({.max = 1, .queue_max = 100});
  EXPECT_EQ(limiter_->in_use(), 1u);  // 1 has not ended
  EXPECT_EQ(Ask(3), Kind::kWait);
  tickets_[1].Drop();
  EXPECT_EQ(tickets_[3].Poll().kind, Kind::kGo);
}

TEST_F(ConcurrencyLimiterTest, CloseLetsAllGoForGood) {
  Make(1);
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kWait);
  limiter_->Close();
  EXPECT_EQ(Woken(), Numbers{1});
  EXPECT_EQ(tickets_[1].Poll().kind, Kind::kGo);
  limiter_->Configure({.max = 1, .queue_max = 100});  // ignored
  EXPECT_EQ(Ask(2), Kind::kGo);
  EXPECT_FALSE(tickets_[2].holding());
  EXPECT_TRUE(limiter_->HasRoom());
}

TEST_F(ConcurrencyLimiterTest, AUnitTakenWithoutATicketIsOneOfMaxAndNeverBarges) {
  Make(2);
  EXPECT_TRUE(limiter_->TryTake());
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_FALSE(limiter_->TryTake());
  EXPECT_EQ(limiter_->in_use(), 2u);
  EXPECT_EQ(Ask(1), Kind::kWait);
  limiter_->Return();
  EXPECT_EQ(Woken(), Numbers{1});
  EXPECT_FALSE(limiter_->TryTake());
  tickets_[0].Drop();
  EXPECT_TRUE(limiter_->TryTake());
  limiter_->Return();
}

TEST_F(ConcurrencyLimiterTest, ATicketMayHandOverItsUnit) {
  Make(1);
  EXPECT_FALSE(tickets_[0].Detach());  // has none
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kWait);
  EXPECT_TRUE(tickets_[0].Detach());
  EXPECT_FALSE(tickets_[0].Detach());
  tickets_[0].Drop();  // gives back nothing
  EXPECT_EQ(limiter_->in_use(), 1u);
  EXPECT_EQ(Ask(0), Kind::kWait);  // and may ask again
  limiter_->Return();
  EXPECT_EQ(Woken(), Numbers{1});
}

TEST_F(ConcurrencyLimiterTest, RetryAfterIsTheTimeTheQueueNeeds) {
  base::ManualClock clock;
  Make(1, 4);
  Ask(0);
  for (int i = 1; i <= 4; ++i) Ask(i);
  EXPECT_EQ(tickets_[9].TryAsk(*limiter_).retry_after, ReturnRate::kUnknown);
  for (int i = 0; i < 4; ++i) {  // a unit comes back every 20 ms
    TestTraits::now = clock.Now();
    tickets_[i].Drop();
    tickets_[i + 1].Poll();
    clock.Advance(milliseconds(20));
  }
  for (int i = 0; i < 4; ++i) Ask(i);
  EXPECT_EQ(tickets_[9].TryAsk(*limiter_).retry_after, milliseconds(20 * 5 + 1));
}

// Two clients, one sends a hundred times as much; the modest one has a few calls waiting or one call at a time.
class Fairness : public ConcurrencyLimiterTest, public testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(Fairness, AModestClientGetsHalfOfTheSlotsWhenItAsksForThem) {
  const auto [max, modest] = GetParam();
  const int greedy = 100 * modest;
  auto limiter = std::make_shared<Limiter>(ConcurrencyOptions{.max = static_cast<uint32_t>(max), .queue_max = 64});
  std::vector<Limiter::Ticket> tickets(static_cast<size_t>(greedy + modest));
  std::mt19937 random(11);
  uint64_t done[2] = {};
  for (int step = 0; step < 200'000; ++step) {
    // Every client that may ask does, the greedy one first; then one call that runs ends.
    for (auto& ticket : tickets) {
      const bool is_modest = &ticket >= &tickets[static_cast<size_t>(greedy)];
      if (ticket.waiting()) ticket.Poll();
      // The modest client asks whenever it can; the greedy one tries often enough to keep the queue full.
      if (!ticket.waiting() && !ticket.holding() && (is_modest || limiter->waiting() < 64))
        ticket.Ask(*limiter, is_modest);
    }
    const size_t start = random() % tickets.size();
    for (size_t i = 0; i < tickets.size(); ++i) {
      Limiter::Ticket& ticket = tickets[(start + i) % tickets.size()];
      if (ticket.waiting()) ticket.Poll();
      if (!ticket.holding()) continue;
      ticket.Drop();
      ++done[&ticket >= &tickets[static_cast<size_t>(greedy)]];
      break;
    }
    if (step >= 20'000 && tickets.size() > 300) break;
  }
  const double share = static_cast<double>(done[1]) / static_cast<double>(done[0] + done[1]);
  EXPECT_GE(share, 0.45);
  EXPECT_LE(share, 0.55);
}
INSTANTIATE_TEST_SUITE_P(MaxAndModestCalls, Fairness,
                         testing::Values(std::pair(1, 1), std::pair(1, 3), std::pair(4, 8), std::pair(10, 12)));

// With real tasks: a call that waits is woken in its turn, by its worker.
TEST(ConcurrencyLimiterTasks, TasksWaitAndGoInTurn) {
  test::ManualWorker worker;
  runtime::Worker::ScopedCurrentForTest current(worker.worker);
  auto limiter = std::make_shared<ConcurrencyLimiter>(ConcurrencyOptions{.max = 2, .queue_max = 10});
  struct Call {
    sync::Event end;
    bool went = false, refused = false;
  };
  // A waiter is suspended at its event and woken by the limiter's waker: so it looks again.
  static auto run = [](std::shared_ptr<ConcurrencyLimiter> limiter, Call& call) -> runtime::Task<> {
    ConcurrencyLimiter::Ticket ticket;
    Verdict verdict = ticket.Ask(*limiter, 1);
    while (verdict.kind == Verdict::Kind::kWait) {
      co_await call.end.Wait();
      verdict = ticket.Poll();
    }
    call.refused = verdict.kind == Verdict::Kind::kRefused;
    call.went = !call.refused;
    if (call.refused) co_return;
    co_await call.end.Wait();
  };
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 14; ++i) {
    calls.push_back(std::make_unique<Call>());
    worker.runtime.SpawnOn(worker.worker, run(limiter, *calls.back()));
  }
  worker.Run();
  EXPECT_EQ(limiter->in_use(), 2u);
  EXPECT_EQ(limiter->waiting(), 10u);
  EXPECT_TRUE(calls[12]->refused && calls[13]->refused);
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(calls[i]->went) << i;
    if (i + 2 < 12) {
      EXPECT_FALSE(calls[i + 2]->went) << i;
    }
    worker.clock.Advance(milliseconds(5));
    calls[i]->end.Set();
    worker.Run();
  }
  EXPECT_EQ(limiter->in_use(), 0u);
  EXPECT_EQ(worker.runtime.LiveTasks(), 0u);
}

TEST_F(ConcurrencyLimiterTest, WhatIsLentIsNeitherFreeNorInUse) {
  Make(4);
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(limiter_->Lend(2), 2u);
  EXPECT_EQ(limiter_->own(), 2u);
  EXPECT_EQ(limiter_->in_use(), 1u);
  EXPECT_EQ(Ask(1), Kind::kGo);
  EXPECT_EQ(limiter_->Lend(10), 0u) << "none is free";
  EXPECT_EQ(Ask(2), Kind::kWait);
  tickets_[0].Drop();
  EXPECT_EQ(Woken(), Numbers{2});
  EXPECT_EQ(tickets_[2].Poll().kind, Kind::kGo);
  EXPECT_EQ(limiter_->Lend(10), 0u);
  limiter_->AddLent(-2);
  EXPECT_EQ(limiter_->own(), 4u);
  EXPECT_EQ(Ask(3), Kind::kGo);
  EXPECT_EQ(Ask(4), Kind::kGo);
  EXPECT_EQ(Ask(5), Kind::kWait);
  for (auto& ticket : tickets_) ticket.Drop();
  EXPECT_EQ(limiter_->in_use(), 0u);
}

TEST_F(ConcurrencyLimiterTest, NoneIsLentWhileACallWaits) {
  Make(1);
  EXPECT_EQ(Ask(0), Kind::kGo);
  EXPECT_EQ(Ask(1), Kind::kWait);
  EXPECT_EQ(limiter_->Lend(1), 0u);
  tickets_[0].Drop();
  EXPECT_EQ(Woken(), Numbers{1});
  EXPECT_EQ(limiter_->Lend(1), 0u) << "the unit is the waiter's";
  tickets_[1].Drop();
  EXPECT_EQ(limiter_->Lend(5), 1u);
  EXPECT_EQ(Ask(2), Kind::kWait);
  limiter_->AddLent(-1);
  EXPECT_EQ(Woken(), Numbers{2});
}

TEST_F(ConcurrencyLimiterTest, AProcessThatTakesOverBeginsWithNothingAndIsGivenItBitByBit) {
  Make(3);
  limiter_->AddLent(3);
  EXPECT_EQ(limiter_->own(), 0u);
  EXPECT_EQ(Ask(0), Kind::kWait);
  EXPECT_EQ(Ask(1), Kind::kWait);
  limiter_->AddLent(-1);
  EXPECT_EQ(Woken(), Numbers{0});
  limiter_->AddLent(-2);
  EXPECT_EQ(Woken(), Numbers{1});
  EXPECT_EQ(Ask(2), Kind::kGo);
  EXPECT_EQ(Ask(3), Kind::kWait);
  limiter_->AddLent(-7);  // more than was lent changes nothing
  EXPECT_EQ(Woken(), Numbers{});
}

TEST_F(ConcurrencyLimiterTest, AChangeOfTheLimitLeavesWhatIsLent) {
  Make(4);
  EXPECT_EQ(limiter_->Lend(3), 3u);
  limiter_->Configure({.max = 2, .queue_max = 100});
  EXPECT_EQ(limiter_->own(), 0u);
  EXPECT_EQ(Ask(0), Kind::kWait) << "the other process has three of two";
  limiter_->AddLent(-2);
  EXPECT_EQ(Woken(), Numbers{0});
  limiter_->Configure({.max = 0, .queue_max = 100});
  EXPECT_EQ(limiter_->Lend(1), 0u) << "there is no limit";
  limiter_->Configure({.max = 6, .queue_max = 100});
  EXPECT_EQ(limiter_->own(), 5u);
  limiter_->Close();
  EXPECT_EQ(limiter_->Lend(1), 0u);
}

}  // namespace
}  // namespace sluice::limits
