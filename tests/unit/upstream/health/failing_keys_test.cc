// Which failures of a key count against an endpoint.
#include "upstream/health/failing_keys.h"

#include <gtest/gtest.h>

namespace sluice::upstream {
namespace {

using std::chrono::seconds;

class FailingKeysTest : public ::testing::Test {
 public:
  // So many of `n` failures of the key at the endpoint count.
  uint32_t Fail(uint64_t key, size_t endpoint, uint32_t n = 1) {
    uint32_t counted = 0;
    for (uint32_t i = 0; i < n; ++i) counted += keys.Counts(key, &endpoints[endpoint], evidence[endpoint], now) ? 1 : 0;
    return counted;
  }
  bool PassesOver(uint64_t key, size_t endpoint) { return keys.PassesOver(key, &endpoints[endpoint], now); }

  FailingKeys keys;
  int endpoints[3] = {};
  FailingKeys::Evidence evidence[3];
  base::TimePoint now{std::chrono::hours(1)};
};

TEST_F(FailingKeysTest, ManyKeysCountEach) {
  for (uint64_t key = 0; key < 1000; ++key) EXPECT_EQ(Fail(key, 0), 1u);
  for (uint64_t key = 0; key < 20; ++key) EXPECT_EQ(Fail(key, 0, 10), 10u) << "none makes a fifth of them";
}

TEST_F(FailingKeysTest, OneKeyCountsOnce) {
  EXPECT_EQ(Fail(7, 0, 1000), 1u);
  now += seconds(5);
  EXPECT_EQ(Fail(7, 0, 1000), 0u);
}

TEST_F(FailingKeysTest, NoKeyMakesMoreThanAFifth) {
  for (uint64_t key = 1; key <= 20; ++key) Fail(key, 0);
  EXPECT_LE(Fail(7, 0, 1000), 5u);
}

// Eight tenants of one endpoint that fails all of them.
TEST_F(FailingKeysTest, AFewKeysThatAllFailCount) {
  uint32_t counted = 0;
  for (int i = 0; i < 10; ++i) {
    for (uint64_t key = 1; key <= 8; ++key) counted += Fail(key, 0);
  }
  EXPECT_GT(counted, 40u);
}

TEST_F(FailingKeysTest, WhatFollowsAKeyIsTheKeys) {
  EXPECT_EQ(Fail(7, 0), 1u);
  EXPECT_EQ(Fail(7, 1, 100), 0u);
  EXPECT_EQ(Fail(7, 2, 100), 0u);
  EXPECT_EQ(Fail(8, 1), 1u) << "another key";
  EXPECT_EQ(Fail(7, 0, 100), 0u);
}

TEST_F(FailingKeysTest, AKeyLeavesTheEndpointThatFailsItAlone) {
  Fail(7, 0, FailingKeys::kRow - 1);
  EXPECT_FALSE(PassesOver(7, 0));
  Fail(7, 0);
  EXPECT_TRUE(PassesOver(7, 0));
  EXPECT_FALSE(PassesOver(8, 0));
  EXPECT_FALSE(PassesOver(7, 1));
  now += FailingKeys::kMoved;
  EXPECT_FALSE(PassesOver(7, 0)) << "it is tried again";
  Fail(7, 0);
  EXPECT_TRUE(PassesOver(7, 0)) << "and one call is enough to leave it";
}

TEST_F(FailingKeysTest, AKeyThatFailsElsewhereTooComesBack) {
  Fail(7, 0, FailingKeys::kRow);
  Fail(7, 1);
  EXPECT_TRUE(PassesOver(7, 0)) << "one failure elsewhere may be chance";
  Fail(7, 1);
  EXPECT_FALSE(PassesOver(7, 0));
  Fail(7, 0, 100);
  EXPECT_FALSE(PassesOver(7, 0));
}

TEST_F(FailingKeysTest, WhatIsOldIsForgotten) {
  Fail(7, 0);
  now += FailingKeys::kMemory;
  EXPECT_EQ(Fail(7, 1), 1u);
}

}  // namespace
}  // namespace sluice::upstream
