// The end of a wait by time: what limiters tell a call that has waited long enough or has no time for a wait, what they
// know of the wait to come and of the service's time, and that no unit is lost when a grant comes at the same moment.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "base/hash.h"
#include "limits/concurrency_limiter.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/service_times.h"
#include "unit/limits/rate_limiter_support.h"

namespace sluice::limits {
namespace {

using rate_test::Call;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = Verdict::Kind;

const base::TimePoint kStart{std::chrono::hours(1)};
base::TimePoint At(int64_t ms) { return kStart + milliseconds(ms); }

struct NoWakeup {
  static NoWakeup ForRunningTask() { return {}; }
  void Wake() const {}
};
struct ClockTraits : ConcurrencyLimiterTraits {
  using Wakeup = NoWakeup;
  static inline base::TimePoint now = kStart;
  static base::TimePoint Now() { return now; }
};
using Limiter = BasicConcurrencyLimiter<ClockTraits>;

class QueueTimeTest : public testing::Test {
 protected:
  void SetUp() override { ClockTraits::now = kStart; }
  // Lets `n` waiters of `flow` queue and go, one each `gap`: so that the limiter knows how fast units come back.
  void TeachGap(Limiter& limiter, int n, base::Nanos gap) {
    std::vector<std::unique_ptr<Limiter::Ticket>> tickets;
    for (int i = 0; i <= n; ++i) {
      tickets.push_back(std::make_unique<Limiter::Ticket>());
      tickets.back()->Ask(limiter, 99);
    }
    for (const auto& ticket : tickets) {
      ClockTraits::now += gap;
      ASSERT_EQ(ticket->Poll().kind, Kind::kGo);
      ticket->Drop();
    }
  }
};

TEST_F(QueueTimeTest, AWaiterThatExpiresLeavesTheQueueAndTheNextGoesOn) {
  Limiter limiter({.max = 1, .queue_max = 10});
  Limiter::Ticket a, b, c;
  EXPECT_EQ(a.Ask(limiter, 1).kind, Kind::kGo);
  EXPECT_EQ(b.Ask(limiter, 1).kind, Kind::kWait);
  EXPECT_EQ(c.Ask(limiter, 2).kind, Kind::kWait);
  const Verdict refused = b.Expire(Refusal::kQueueTime);
  EXPECT_EQ(refused.kind, Kind::kRefused);
  EXPECT_EQ(refused.refusal, Refusal::kQueueTime);
  EXPECT_GE(refused.retry_after, milliseconds(1));
  EXPECT_EQ(limiter.waiting(), 1u);
  a.Drop();
  EXPECT_EQ(c.Poll().kind, Kind::kGo);
  c.Drop();
  EXPECT_EQ(limiter.in_use(), 0u);
  EXPECT_EQ(b.Ask(limiter, 1).kind, Kind::kGo);  // the ticket is idle again
}

TEST_F(QueueTimeTest, AUnitGrantedBeforeTheWaitEndsByTimeIsTheWaiters) {
  Limiter limiter({.max = 1, .queue_max = 10});
  Limiter::Ticket a, b;
  a.Ask(limiter, 1);
  b.Ask(limiter, 1);
  a.Drop();
  EXPECT_EQ(b.Expire(Refusal::kQueueTime).kind, Kind::kGo);
  EXPECT_TRUE(b.holding());
  EXPECT_EQ(limiter.in_use(), 1u);
}

TEST_F(QueueTimeTest, ALimitLiftedMeanwhileLetsTheExpiringWaiterGo) {
  Limiter limiter({.max = 1, .queue_max = 10});
  Limiter::Ticket a, b;
  a.Ask(limiter, 1);
  b.Ask(limiter, 1);
  limiter.Configure({.max = 0});
  EXPECT_EQ(b.Expire(Refusal::kQueueTime).kind, Kind::kGo);
  EXPECT_FALSE(b.holding());
}

TEST_F(QueueTimeTest, QueueTimeFollowsTheConfiguration) {
  Limiter limiter({.max = 1});
  EXPECT_EQ(limiter.queue_time(), milliseconds(200));
  limiter.Configure({.max = 1, .queue_time = milliseconds(0)});
  EXPECT_EQ(limiter.queue_time(), milliseconds(0));
  RateLimiter rate({.rate = 1, .queue_time = seconds(2)}, kStart);
  EXPECT_EQ(rate.queue_time(), seconds(2));
  rate.Configure({.rate = 1}, kStart);
  EXPECT_EQ(rate.queue_time(), milliseconds(200));
}

TEST_F(QueueTimeTest, AWaitKnownToPassTheLatestStartIsRefusedAtOnce) {
  Limiter limiter({.max = 1, .queue_max = 100});
  TeachGap(limiter, 20, milliseconds(10));
  Limiter::Ticket holder, waiters[8], late, in_time;
  holder.Ask(limiter, 1);
  for (auto& waiter : waiters) EXPECT_EQ(waiter.Ask(limiter, 1).kind, Kind::kWait);
  const base::TimePoint now = ClockTraits::now;
  const Verdict refused = late.Ask(limiter, 1, now + milliseconds(80));  // the ninth of the queue
  EXPECT_EQ(refused.refusal, Refusal::kTooLate);
  EXPECT_FALSE(late.waiting());
  EXPECT_EQ(limiter.waiting(), 8u);
  EXPECT_EQ(in_time.Ask(limiter, 1, now + milliseconds(100)).kind, Kind::kWait);
}

// A client with one call is not refused because of another's long queue: its turn comes in the next round.
TEST_F(QueueTimeTest, ThePredictedWaitIsThatOfTheClientsOwnTurn) {
  Limiter limiter({.max = 1, .queue_max = 1000});
  TeachGap(limiter, 20, milliseconds(10));
  Limiter::Ticket holder, modest;
  holder.Ask(limiter, 1);
  std::vector<std::unique_ptr<Limiter::Ticket>> greedy;
  for (int i = 0; i < 100; ++i) {
    greedy.push_back(std::make_unique<Limiter::Ticket>());
    greedy.back()->Ask(limiter, 1);
  }
  EXPECT_EQ(modest.Ask(limiter, 2, ClockTraits::now + milliseconds(50)).kind, Kind::kWait);
  for (int i = 0; i < 2 && modest.waiting(); ++i) {
    holder.Drop();
    if (modest.Poll().kind == Kind::kGo) break;
    ASSERT_EQ(greedy[static_cast<size_t>(i)]->Poll().kind, Kind::kGo);
    greedy[static_cast<size_t>(i)]->Drop();
  }
  EXPECT_EQ(modest.Poll().kind, Kind::kGo);
}

TEST_F(QueueTimeTest, WithoutFreshNewsOfReturnsNoCallIsRefusedByPrediction) {
  Limiter limiter({.max = 1, .queue_max = 100});
  Limiter::Ticket holder, first, second;
  holder.Ask(limiter, 1);
  EXPECT_EQ(first.Ask(limiter, 1, ClockTraits::now).kind, Kind::kWait);  // nothing is known
  first.Drop();
  holder.Drop();
  TeachGap(limiter, 20, seconds(1));
  holder.Ask(limiter, 1);
  EXPECT_EQ(first.Ask(limiter, 1, ClockTraits::now + milliseconds(50)).refusal, Refusal::kTooLate);
  ClockTraits::now += seconds(2);
  EXPECT_EQ(second.Ask(limiter, 1, ClockTraits::now + milliseconds(50)).kind, Kind::kWait);
}

TEST(ReturnRate, OnePauseDoesNotStandForTheSpeed) {
  ReturnRate rate;
  base::TimePoint now = kStart;
  for (int i = 0; i < 50; ++i) rate.Note(now += milliseconds(1));
  rate.Note(now += seconds(5));
  ASSERT_TRUE(rate.WaitFor(10, now).has_value());
  EXPECT_LE(*rate.WaitFor(10, now), milliseconds(40));
  // A service that has become slower is seen after some returns.
  for (int i = 0; i < 40; ++i) rate.Note(now += milliseconds(20));
  EXPECT_GE(*rate.WaitFor(10, now), milliseconds(150));
}

TEST(ReturnRate, ReturnsOfOneTurnCountAsTheTimeBetweenTurns) {
  ReturnRate rate;
  base::TimePoint now = kStart;
  for (int turn = 0; turn < 100; ++turn) {
    now += milliseconds(1);
    for (int i = 0; i < 10; ++i) rate.Note(now);
  }
  EXPECT_GE(*rate.WaitFor(100, now), milliseconds(5));
  EXPECT_LE(*rate.WaitFor(100, now), milliseconds(20));
}

TEST(FairQueueAhead, IsAtMostWhatARoundLetsBefore) {
  FairQueue queue;
  std::vector<FairQueue::Node> nodes(6);
  const uint64_t flows[] = {1, 1, 1, 1, 2, 3};
  for (size_t i = 0; i < 6; ++i) {
    nodes[i].set_flow(flows[i]);
    queue.Admit(nodes[i], 100);
  }
  EXPECT_EQ(queue.Ahead(nodes[5]), 2u);
  EXPECT_EQ(queue.Ahead(nodes[3]), 5u);
  for (auto& node : nodes) queue.Remove(node);
}

TEST(RateLimiterExpiry, AWaiterThatExpiresIsToldWhenANewcomerWouldGo) {
  auto limiter = std::make_shared<rate_test::Limiter>(RateOptions{10, 1, false, 10}, kStart);
  Call a, b, c;
  EXPECT_TRUE(a.Ask(limiter, kStart));
  EXPECT_FALSE(b.Ask(limiter, kStart));
  EXPECT_FALSE(c.Ask(limiter, kStart));
  const Verdict refused = b.ticket.Expire(At(50), Refusal::kQueueTime);
  EXPECT_EQ(refused.refusal, Refusal::kQueueTime);
  EXPECT_EQ(refused.retry_after, milliseconds(150));
  EXPECT_TRUE(c.Woken());
  EXPECT_EQ(limiter->waiting(), 1u);
  EXPECT_TRUE(c.Poll(At(100)));
}

TEST(RateLimiterExpiry, ALimitLiftedMeanwhileLetsTheExpiringWaiterGo) {
  auto limiter = std::make_shared<rate_test::Limiter>(RateOptions{10, 1, false, 10}, kStart);
  Call a, b;
  a.Ask(limiter, kStart);
  b.Ask(limiter, kStart);
  limiter->Configure(RateOptions{}, kStart);
  EXPECT_EQ(b.ticket.Expire(At(50), Refusal::kQueueTime).kind, Kind::kGo);
}

// One key after the other in a table of one place: each begins with what those before it took.
TEST(KeyedRateLimiterDebt, ARefusalThatIsDueToEvictedKeysSaysSo) {
  KeyedRateLimiter table({10, 3, false, 0}, 1);
  const auto refusal = [&](uint64_t key, base::TimePoint now) {
    auto limiter = table.Get(base::Hash64(key, 17), now);
    RateLimiter::Ticket ticket;
    return ticket.Ask(*limiter, now, base::kNever).refusal;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(1, kStart), Refusal::kNone);
  EXPECT_EQ(refusal(1, kStart), Refusal::kQueueFull);  // its own doing
  EXPECT_EQ(refusal(2, kStart), Refusal::kDebt);
  // When the debt has been paid a refusal is its own doing again.
  for (int i = 0; i < 3; ++i) EXPECT_EQ(refusal(2, At(300)), Refusal::kNone);
  EXPECT_EQ(refusal(2, At(300)), Refusal::kQueueFull);
}

// --- ServiceTimes ---

TEST(ServiceTimes, TheEstimateIsTheGeometricMeanOfTheLastAnswers) {
  ServiceTimes times;
  base::TimePoint now = kStart;
  for (uint32_t i = 0; i + 1 < ServiceTimes::kSure; ++i) times.Note(7, milliseconds(10), now);
  EXPECT_EQ(times.Of(7, now).count(), 0);  // too few
  for (int i = 0; i < 200; ++i) times.Note(7, i % 2 == 0 ? milliseconds(5) : milliseconds(20), now += milliseconds(1));
  EXPECT_NEAR(static_cast<double>(times.Of(7, now).count()) / 1e6, 10, 1.5);
  times.Note(7, seconds(10), now);  // one long call does not stand for the others
  EXPECT_LE(times.Of(7, now), milliseconds(18));
  EXPECT_EQ(times.Of(8, now).count(), 0);
}

TEST(ServiceTimes, AnEstimateOfAnotherDayRefusesNobody) {
  ServiceTimes times;
  for (int i = 0; i < 20; ++i) times.Note(7, seconds(1), kStart);
  EXPECT_GT(times.Of(7, kStart + ServiceTimes::kFresh).count(), 0);
  const base::TimePoint later = kStart + ServiceTimes::kFresh + seconds(1);
  EXPECT_EQ(times.Of(7, later).count(), 0);
  for (int i = 0; i < 8; ++i) times.Note(7, milliseconds(1), later);
  EXPECT_LE(times.Of(7, later), milliseconds(2));  // the old answers are forgotten
}

TEST(ServiceTimes, AMethodInUseKeepsItsPlace) {
  ServiceTimes times;
  base::TimePoint now = kStart;
  for (int i = 0; i < 100; ++i) {
    now += milliseconds(10);
    times.Note(7, milliseconds(10), now);
    times.Note(7 + ServiceTimes::kPlaces, milliseconds(500), now);
  }
  EXPECT_NEAR(static_cast<double>(times.Of(7, now).count()) / 1e6, 10, 0.5);
  now += ServiceTimes::kFresh;
  for (int i = 0; i < 20; ++i) times.Note(7 + ServiceTimes::kPlaces, milliseconds(500), now);
  EXPECT_NEAR(static_cast<double>(times.Of(7 + ServiceTimes::kPlaces, now).count()) / 1e6, 500, 5);
}

}  // namespace
}  // namespace sluice::limits
