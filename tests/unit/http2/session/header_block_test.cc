#include "http2/session/header_block.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

TEST(HeaderBlock, IsJoinedFromItsParts) {
  HeaderBlock block;
  EXPECT_EQ(block.id(), 0u);
  block.Begin(5, true, false, "ab");
  ASSERT_TRUE(block.Admit(2, 1000));
  block.Add("cd");
  EXPECT_EQ(block.id(), 5u);
  EXPECT_TRUE(block.end_stream());
  EXPECT_FALSE(block.on_itself());
  EXPECT_EQ(block.Take(), "abcd");
  EXPECT_EQ(block.id(), 0u);
}

TEST(HeaderBlock, EachPartCostsAtLeastWhatAFrameDoes) {
  HeaderBlock block;
  block.Begin(1, false, false, "0123456789");
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(block.Admit(0, 10 + 4 * HeaderBlock::kPartCostMin)) << i;
  EXPECT_FALSE(block.Admit(0, 10 + 4 * HeaderBlock::kPartCostMin));
  block.Begin(3, false, true, "");  // the next one has its own bound
  EXPECT_TRUE(block.Admit(100, 100));
  EXPECT_FALSE(block.Admit(1, 100));
  EXPECT_TRUE(block.on_itself());
}

TEST(HeaderBlock, ItsBytesAreHeldForThePeer) {
  const int64_t before = base::MemoryBudget::held();
  HeaderBlock block;
  block.Begin(1, false, false, std::string(100'000, 'x'));
  EXPECT_GE(base::MemoryBudget::held(), before + 100'000);
  block.Take();
  EXPECT_EQ(base::MemoryBudget::held(), before);
}

}  // namespace
}  // namespace sluice::http2
