#include "http2/flood/charges.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

using std::chrono::milliseconds;

class FloodChargesTest : public ::testing::Test {
 public:
  FloodChargesTest() {
    options.pings_per_second = options.window_updates_per_second = options.useless_frames_per_second = 100;
    options.resets_per_second = options.settings_per_second = 100;
    charges = FloodCharges(options);
    charges.Tick(now, 0);
    charges.Begin();
  }
  // How many units are granted in a row for this work.
  uint32_t Grants(Budget budget, const FloodWork& work) {
    uint32_t granted = 0;
    while (granted < 10000 && (charges.Spend(budget, 1) || charges.Earn(budget, 1, work))) ++granted;
    return granted;
  }
  uint32_t PaidFor(Budget budget, const FloodWork& work) {
    EXPECT_EQ(Grants(budget, {}), 100u);
    return Grants(budget, work);
  }

  SessionOptions options;
  base::TimePoint now{std::chrono::hours(1)};
  FloodCharges charges{options};
};

TEST_F(FloodChargesTest, StreamsThatEndByThemselvesPayForResets) {
  EXPECT_EQ(PaidFor(Budget::kResets, {.frames_sent = 50, .streams_opened = 50, .streams_completed = 7}), 7u);
}

TEST_F(FloodChargesTest, NothingPaysForSettings) {
  const FloodWork work{.frames_sent = 50, .data_bytes_sent = 1 << 20, .data_frames_received = 50, .streams_opened = 50};
  EXPECT_EQ(PaidFor(Budget::kSettings, work), 0u);
}

TEST_F(FloodChargesTest, FramesButAnswersToPingAndMessagesPayForPings) {
  EXPECT_EQ(Grants(Budget::kPings, {}), 100u);
  for (int i = 0; i < 5; ++i) charges.NotePingAnswer();
  charges.NoteTinyData();
  EXPECT_EQ(Grants(Budget::kPings, {.frames_sent = 15, .data_frames_received = 4}), 13u);
}

TEST_F(FloodChargesTest, FramesPiecesAndBytesPayForWindowUpdates) {
  EXPECT_EQ(PaidFor(Budget::kWindowUpdates, {.frames_sent = 10, .data_bytes_sent = 640, .pieces_joined = 20}), 70u);
}

TEST_F(FloodChargesTest, StreamsMessagesAndBytesPayForUselessFrames) {
  EXPECT_EQ(Grants(Budget::kUselessFrames, {}), 100u);
  charges.NoteTinyData();
  const FloodWork work{.data_frames_received = 11, .data_bytes_received = 5 * 1024, .streams_opened = 3};
  EXPECT_EQ(Grants(Budget::kUselessFrames, work), 12u + 10 + 5);
}

TEST_F(FloodChargesTest, AWholeBudgetIsTheMostThatOneThingCosts) {
  EXPECT_FALSE(charges.Spend(Budget::kSettings, 1000));
  EXPECT_TRUE(charges.Earn(Budget::kSettings, 1000, {}));
  EXPECT_FALSE(charges.Earn(Budget::kSettings, 1000, {}));
  charges.Tick(now + std::chrono::seconds(1), 0);
  EXPECT_TRUE(charges.Earn(Budget::kSettings, 1000, {}));
}

// Ages are looked at once in 25 ms, so a stream is young for 25 to 50.
TEST_F(FloodChargesTest, AStreamIsYoungForUpToFiftyMilliseconds) {
  charges.Tick(now + milliseconds(24), 9);
  EXPECT_TRUE(charges.IsYoung(9));
  charges.Tick(now + milliseconds(25), 9);
  EXPECT_TRUE(charges.IsYoung(9));
  charges.Tick(now + milliseconds(49), 11);
  EXPECT_TRUE(charges.IsYoung(9));
  charges.Tick(now + milliseconds(50), 13);
  EXPECT_FALSE(charges.IsYoung(9));
  EXPECT_TRUE(charges.IsYoung(11));
}

TEST_F(FloodChargesTest, WhatWasOpenedBeforeALongSilenceIsNotYoung) {
  charges.Tick(now + milliseconds(25), 9);
  charges.Tick(now + milliseconds(100), 11);
  EXPECT_FALSE(charges.IsYoung(11));
  EXPECT_TRUE(charges.IsYoung(13));
}

}  // namespace
}  // namespace sluice::http2
