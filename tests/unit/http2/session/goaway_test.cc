#include "http2/session/goaway.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

TEST(GoawayState, AnAnnouncementTakesEveryStreamUntilItBinds) {
  Goaway goaway;
  EXPECT_FALSE(goaway.sent());
  goaway.Announce();
  EXPECT_TRUE(goaway.sent() && goaway.announced());
  EXPECT_FALSE(goaway.binding());
  EXPECT_EQ(goaway.last_id(), kStreamIdMax);
  EXPECT_EQ(goaway.Bind(7), 7u);
  EXPECT_TRUE(goaway.sent() && goaway.binding());
  EXPECT_FALSE(goaway.announced());
}

// RFC 9113 6.8.
TEST(GoawayState, TheLastIdNeverGrows) {
  Goaway goaway;
  EXPECT_EQ(goaway.Bind(7), 7u);
  EXPECT_EQ(goaway.Bind(9), 7u);
  EXPECT_EQ(goaway.Lower(11), 7u);
  EXPECT_EQ(goaway.Lower(5), 5u);
  EXPECT_EQ(goaway.last_id(), 5u);
}

TEST(GoawayState, WhatThePeerSaysChangesNothingOfOurs) {
  Goaway goaway;
  goaway.Receive(ErrorCode::kNoError);
  EXPECT_TRUE(goaway.received());
  EXPECT_FALSE(goaway.sent());
  EXPECT_EQ(goaway.last_id(), kStreamIdMax);
}

TEST(GoawayState, IsInOrderUntilThePeerNamesAnError) {
  Goaway goaway;
  EXPECT_FALSE(goaway.received_in_order());
  goaway.Receive(ErrorCode::kNoError);
  EXPECT_TRUE(goaway.received_in_order());
  goaway.Receive(ErrorCode::kInternalError);
  EXPECT_TRUE(goaway.received());
  EXPECT_FALSE(goaway.received_in_order());
}

}  // namespace
}  // namespace sluice::http2
