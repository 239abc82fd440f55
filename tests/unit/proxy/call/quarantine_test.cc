#include "proxy/call/quarantine.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

constexpr base::TimePoint kStart{std::chrono::hours(1)};

TEST(QuarantineTest, TwoConnectionsLostBesideOthersOrOneAlone) {
  Quarantine quarantine;
  EXPECT_FALSE(quarantine.any(kStart));
  quarantine.Lost(7, /*alone=*/false, kStart);
  EXPECT_TRUE(quarantine.any(kStart));
  EXPECT_FALSE(quarantine.Holds(7, kStart));
  quarantine.Lost(7, /*alone=*/false, kStart);
  EXPECT_TRUE(quarantine.Holds(7, kStart));
  EXPECT_FALSE(quarantine.Holds(8, kStart));
  quarantine.Lost(8, /*alone=*/true, kStart);
  EXPECT_TRUE(quarantine.Holds(8, kStart));
}

TEST(QuarantineTest, EndsTenSecondsAfterTheLastLossOrWithAnAnswer) {
  Quarantine quarantine;
  quarantine.Lost(7, true, kStart);
  quarantine.Lost(7, true, kStart + std::chrono::seconds(5));
  quarantine.Lost(8, true, kStart);
  EXPECT_TRUE(quarantine.Holds(7, kStart + std::chrono::milliseconds(14'999)));
  EXPECT_FALSE(quarantine.Holds(8, kStart + std::chrono::seconds(10)));
  EXPECT_FALSE(quarantine.any(kStart + std::chrono::seconds(15)));
  quarantine.Answered(7);
  EXPECT_FALSE(quarantine.Holds(7, kStart + std::chrono::seconds(5)));
  quarantine.Lost(8, false, kStart + std::chrono::seconds(10));
  EXPECT_FALSE(quarantine.Holds(8, kStart + std::chrono::seconds(10))) << "what is old is forgotten";
}

TEST(QuarantineTest, TheTableIsBounded) {
  Quarantine quarantine;
  for (uint64_t what = 1; what <= 2 * Quarantine::kMax; ++what)
    quarantine.Lost(what, true, kStart + std::chrono::milliseconds(what));
  const base::TimePoint now = kStart + std::chrono::seconds(1);
  size_t held = 0;
  for (uint64_t what = 1; what <= 2 * Quarantine::kMax; ++what) held += quarantine.Holds(what, now) ? 1 : 0;
  EXPECT_EQ(held, Quarantine::kMax);
  EXPECT_TRUE(quarantine.Holds(2 * Quarantine::kMax, now));
}

}  // namespace
}  // namespace sluice::proxy
