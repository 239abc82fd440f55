#include "http2/session/ended_streams.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using How = EndedStreams::How;

TEST(EndedStreams, RemembersHowTheLastOnesEnded) {
  EndedStreams ended;
  EXPECT_EQ(ended.Find(1), How::kForgotten);
  ended.Remember(1, How::kByBothSides);
  ended.Remember(3, How::kByPeersReset);
  EXPECT_EQ(ended.Find(1), How::kByBothSides);
  EXPECT_EQ(ended.Find(3), How::kByPeersReset);
  EXPECT_EQ(ended.count(), 2u);
  for (uint32_t i = 0; i < EndedStreams::kKept - 1; ++i) ended.Remember(2 * i + 5, How::kByBothSides);
  EXPECT_EQ(ended.Find(1), How::kForgotten);
  EXPECT_EQ(ended.Find(3), How::kByPeersReset);
}

TEST(EndedStreams, LateResponsesAreCountedFromTheLastEndOn) {
  EndedStreams ended;
  for (uint32_t i = 0; i < EndedStreams::kLateResponsesMax; ++i) EXPECT_TRUE(ended.TakeLateResponse());
  EXPECT_FALSE(ended.TakeLateResponse());
  ended.Remember(1, How::kByBothSides);
  EXPECT_TRUE(ended.TakeLateResponse());
}

}  // namespace
}  // namespace sluice::http2
