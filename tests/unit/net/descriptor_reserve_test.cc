#include "net/descriptor_reserve.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <climits>
#include <functional>
#include <vector>

namespace sluice::net {
namespace {

constexpr int kLimit = 256, kMark = kLimit - kLimit / DescriptorReserve::kShare;

class DescriptorReserveTest : public testing::Test {
 protected:
  DescriptorReserveTest() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    Limit(kLimit);
  }
  ~DescriptorReserveTest() override {
    while (!taken_.empty()) GiveBack();
    Limit(before_.rlim_cur);
  }
  void Limit(rlim_t soft) {
    const rlimit limit{soft, before_.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  int Take() {
    taken_.push_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    return taken_.back();
  }
  void GiveBack() {
    ::close(taken_.back());
    taken_.pop_back();
  }

  rlimit before_{};
  std::vector<int> taken_;
};

// A client that takes descriptors as long as it may.
int TakeAll(DescriptorReserve& reserve, const std::function<int()>& take) {
  int last = -1;
  while (reserve.MayTake()) reserve.Took(last = take());
  return last;
}

TEST_F(DescriptorReserveTest, TheLastEighthIsNotForClients) {
  DescriptorReserve reserve;
  EXPECT_EQ(reserve.limit(), kLimit);
  EXPECT_EQ(TakeAll(reserve, [this] { return Take(); }), kMark);  // one above the mark, which is how it is found
  EXPECT_FALSE(reserve.MayTake());
  EXPECT_GT(Take(), kMark);  // others may
}

TEST_F(DescriptorReserveTest, OperatorsGetInWhenClientsDoNot) {
  DescriptorReserve clients, operators(DescriptorReserve::kOperatorsShare);
  TakeAll(clients, [this] { return Take(); });
  EXPECT_TRUE(operators.MayTake());
  EXPECT_EQ(TakeAll(operators, [this] { return Take(); }), (kMark + kLimit) / 2);
}

TEST_F(DescriptorReserveTest, WhatIsGivenBackMayBeTakenAgain) {
  DescriptorReserve reserve;
  TakeAll(reserve, [this] { return Take(); });
  GiveBack();
  EXPECT_FALSE(reserve.MayTake());  // it is the one above the mark
  GiveBack();
  EXPECT_TRUE(reserve.MayTake());
  reserve.Took(Take());
  EXPECT_TRUE(reserve.MayTake());
}

TEST_F(DescriptorReserveTest, AskingCostsNoDescriptor) {
  DescriptorReserve reserve;
  TakeAll(reserve, [this] { return Take(); });
  const int next = Take();
  GiveBack();
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(reserve.MayTake());
  EXPECT_EQ(Take(), next);
}

TEST_F(DescriptorReserveTest, WhereThereIsNoneAtAllNoneMayBeTaken) {
  DescriptorReserve reserve;
  while (Take() >= 0) {
  }
  taken_.pop_back();
  reserve.NoneLeft();
  EXPECT_FALSE(reserve.MayTake());
}

TEST_F(DescriptorReserveTest, ALimitChangedFromOutsideIsSeenWhenItMatters) {
  DescriptorReserve reserve;
  TakeAll(reserve, [this] { return Take(); });
  Limit(2 * kLimit);
  EXPECT_TRUE(reserve.MayTake());
  EXPECT_EQ(reserve.limit(), 2 * kLimit);
}

TEST(DescriptorReserve, OfAHugeLimitAThousandAreKept) {
  constexpr int kClients = DescriptorReserve::kShare, kOperators = DescriptorReserve::kOperatorsShare;
  for (int limit : {16'384, 1'048'576, INT_MAX}) {
    EXPECT_EQ(DescriptorReserve::MarkOf(limit, kClients), limit - 1024);
    EXPECT_EQ(DescriptorReserve::MarkOf(limit, kOperators), limit - 512);
  }
  EXPECT_EQ(DescriptorReserve::MarkOf(8'191, kClients), 8'191 - 1023);
  EXPECT_EQ(DescriptorReserve::MarkOf(8'191, kOperators), 8'191 - 511);
  EXPECT_EQ(DescriptorReserve::MarkOf(0, kClients), 0);
}

}  // namespace
}  // namespace sluice::net
