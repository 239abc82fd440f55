// Levels of held memory: the way up, the way down, and that blocks are counted.
#include "base/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/slice.h"

namespace sluice::base {
namespace {

constexpr int64_t kMiB = 1024 * 1024;

class MemoryBudgetTest : public ::testing::Test {
 public:
  // As if the process held this much in all.
  void Hold(int64_t bytes) { MemoryBudget::Add(bytes - MemoryBudget::held()); }
  void SetUp() override { before_ = MemoryBudget::held(); }
  void TearDown() override {
    Hold(before_);
    MemoryBudget::SetLimit(0);
  }

 private:
  int64_t before_ = 0;
};

TEST_F(MemoryBudgetTest, WithoutALimitItIsAlwaysFree) {
  Hold(int64_t{1} << 50);
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kFree);
}

TEST_F(MemoryBudgetTest, TheWayDownIsLowerThanTheWayUp) {
  MemoryBudget::SetLimit(80 * kMiB);
  struct Step {
    int64_t held;
    MemoryLevel level;
  };
  for (const Step& step : std::initializer_list<Step>{{60 * kMiB - 1, MemoryLevel::kFree},
                                                      {60 * kMiB, MemoryLevel::kTight},
                                                      {50 * kMiB, MemoryLevel::kTight},
                                                      {70 * kMiB - 1, MemoryLevel::kTight},
                                                      {70 * kMiB, MemoryLevel::kFull},
                                                      {60 * kMiB, MemoryLevel::kFull},
                                                      {60 * kMiB - 1, MemoryLevel::kTight},
                                                      {80 * kMiB - 1, MemoryLevel::kFull},
                                                      {80 * kMiB, MemoryLevel::kOver},
                                                      {70 * kMiB, MemoryLevel::kOver},
                                                      {70 * kMiB - 1, MemoryLevel::kFull},
                                                      {50 * kMiB, MemoryLevel::kTight},
                                                      {50 * kMiB - 1, MemoryLevel::kFree},
                                                      {90 * kMiB, MemoryLevel::kOver},
                                                      {0, MemoryLevel::kFree}}) {
    Hold(step.held);
    EXPECT_EQ(MemoryBudget::level(), step.level) << step.held;
  }
}

TEST_F(MemoryBudgetTest, ANewLimitIsSeenAtOnce) {
  Hold(100 * kMiB);
  MemoryBudget::SetLimit(64 * kMiB);
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kOver);
  MemoryBudget::SetLimit(1024 * kMiB);
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kFree);
}

TEST_F(MemoryBudgetTest, SpareBlocksAreHeldUntilTheyAreTrimmed) {
  Block::TrimSpares();
  const int64_t before = MemoryBudget::held();
  std::vector<Block*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(Block::New(kMiB / 4));
  EXPECT_GE(MemoryBudget::held() - before, kMiB - MemoryBudget::kStepBytes);
  for (Block* block : blocks) block->Unref();
  EXPECT_GE(MemoryBudget::held() - before, kMiB - MemoryBudget::kStepBytes);
  Block::TrimSpares();
  EXPECT_LE(MemoryBudget::held() - before, MemoryBudget::kStepBytes);
  EXPECT_GE(MemoryBudget::held() - before, -MemoryBudget::kStepBytes);
}

TEST_F(MemoryBudgetTest, BlocksOfThreadsThatEndLeaveNothing) {
  const int64_t before = MemoryBudget::held();
  std::vector<Block*> blocks;
  std::thread([&blocks] {
    for (int i = 0; i < 64; ++i) blocks.push_back(Block::New(kMiB));
  }).join();
  EXPECT_GE(MemoryBudget::held() - before, 64 * kMiB);
  std::thread([&blocks] {
    for (Block* block : blocks) block->Unref();
  }).join();
  EXPECT_LE(MemoryBudget::held() - before, MemoryBudget::kStepBytes);
  EXPECT_GE(MemoryBudget::held() - before, -MemoryBudget::kStepBytes);
}

}  // namespace
}  // namespace sluice::base
