#include "upstream/retry_budget.h"

#include <gtest/gtest.h>

#include <thread>

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Account = RetryBudget::Account;

class RetryBudgetTest : public ::testing::Test {
 public:
  bool Withdraw(uint32_t cost = 1, Account account = Account::kRepeated) {
    return budget.Withdraw(options, account, cost, now);
  }
  // As many as it gives.
  int All(Account account = Account::kRepeated) {
    int n = 0;
    while (Withdraw(1, account)) ++n;
    return n;
  }
  void Succeed(int calls, uint32_t worker = 0) {
    for (int i = 0; i < calls; ++i) budget.CountOk(worker, now);
  }

  RetryBudgetOptions options;
  RetryBudget budget{2};
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(RetryBudgetTest, WithoutASuccessOnlyTheReserveIsThere) {
  EXPECT_EQ(All(), 30);  // 3 a second for 10 seconds
  options.min_per_second = 0;
  now += seconds(60);
  EXPECT_FALSE(Withdraw());
}

TEST_F(RetryBudgetTest, EachSuccessEarnsTheRatioOnWhicheverWorker) {
  Succeed(100, 0);
  Succeed(50, 1);
  EXPECT_EQ(All(), 30 + 30);
  Succeed(4);
  EXPECT_FALSE(Withdraw());  // 0.8 of a credit
  Succeed(1);
  EXPECT_TRUE(Withdraw());
  EXPECT_FALSE(Withdraw());
}

TEST_F(RetryBudgetTest, CreditsOfBothSidesAreForgottenAfterTenSeconds) {
  options.min_per_second = 0;
  Succeed(50);
  now += milliseconds(9000);
  EXPECT_EQ(All(), 10);
  now += milliseconds(1000);
  EXPECT_FALSE(Withdraw());  // the successes are too old
  Succeed(50);
  EXPECT_FALSE(Withdraw());  // what was spent is not
  now += milliseconds(9000);
  EXPECT_EQ(All(), 10);
}

TEST_F(RetryBudgetTest, AnAgeLaterTheSlotsOfOldSecondsAreEmpty) {
  Succeed(1000);
  EXPECT_EQ(All(), 230);
  for (int i = 0; i < 100; ++i) {
    now += seconds(16);  // the same slot each time
    EXPECT_EQ(All(), 30);
  }
  now += std::chrono::hours(24 * 365);
  EXPECT_EQ(All(), 30);
}

TEST_F(RetryBudgetTest, TheHigherCostIsTakenWholeOrNotAtAll) {
  EXPECT_TRUE(Withdraw(29));
  EXPECT_FALSE(Withdraw(2));
  EXPECT_TRUE(Withdraw(1));
}

TEST_F(RetryBudgetTest, RefusedCallsHaveAnAccountOfTheirOwnWithACreditForEachSuccess) {
  options = {0, 0};
  Succeed(100);
  EXPECT_EQ(All(Account::kUnprocessed), 130);
  EXPECT_EQ(All(Account::kRepeated), 0);
}

// Any load, any faults: in each ten seconds no more is spent than the options say.
TEST_F(RetryBudgetTest, InEachWindowRetriesAreBoundedByWhatSucceededInIt) {
  constexpr int kCallsPerSecond = 1000;
  uint64_t spent = 0;
  for (int second = 0; second < 60; ++second) {
    const bool all_fail = second >= 20;
    for (int i = 0; i < kCallsPerSecond; ++i) {
      now += milliseconds(1);
      if (!all_fail) Succeed(1);
      if (second >= 20 && Withdraw()) ++spent;
    }
  }
  // Of 40 seconds: the credits of the ten before, and 3 a second.
  EXPECT_LE(spent, 2000u + 30 * 5);
  EXPECT_GE(spent, 1500u);  // as they are spent, the oldest are forgotten
  EXPECT_LE(static_cast<double>(spent), 40 * (0.2 * kCallsPerSecond + 3));
}

TEST_F(RetryBudgetTest, WhatIsLeftIsAShare) {
  EXPECT_EQ(budget.Left(options, Account::kRepeated, now), 1.0);
  EXPECT_TRUE(Withdraw(15));
  EXPECT_EQ(budget.Left(options, Account::kRepeated, now), 0.5);
  All();
  EXPECT_EQ(budget.Left(options, Account::kRepeated, now), 0.0);
  options = {0, 0};
  EXPECT_EQ(budget.Left(options, Account::kRepeated, now), 0.0);
}

TEST_F(RetryBudgetTest, WorkersCountWhileOthersWithdrawAndNoneIsSpentTwice) {
  constexpr int kCalls = 50'000;
  std::atomic<int> spent{0};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < 2; ++worker) {
    threads.emplace_back([&, worker] {
      for (int i = 0; i < kCalls; ++i) {
        budget.CountOk(worker, now);
        if (budget.Withdraw(options, Account::kRepeated, 1, now)) spent.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  spent += All();
  EXPECT_EQ(spent.load(), 2 * kCalls / 5 + 30);
}

}  // namespace
}  // namespace sluice::upstream
