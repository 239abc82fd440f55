#include "proxy/grpc_timeout.h"

#include <gtest/gtest.h>

#include <string>

#include "base/random.h"

namespace sluice::proxy {
namespace {

using base::Nanos;

std::string Format(int64_t nanos) { return std::string(FormatGrpcTimeout(Nanos(nanos)).view()); }

TEST(GrpcTimeout, EveryUnitIsRead) {
  EXPECT_EQ(ParseGrpcTimeout("1n"), Nanos(1));
  EXPECT_EQ(ParseGrpcTimeout("2u"), Nanos(2'000));
  EXPECT_EQ(ParseGrpcTimeout("3m"), Nanos(3'000'000));
  EXPECT_EQ(ParseGrpcTimeout("4S"), std::chrono::seconds(4));
  EXPECT_EQ(ParseGrpcTimeout("5M"), std::chrono::minutes(5));
  EXPECT_EQ(ParseGrpcTimeout("6H"), std::chrono::hours(6));
  EXPECT_EQ(ParseGrpcTimeout("000000007H"), std::nullopt);  // nine digits
  EXPECT_EQ(ParseGrpcTimeout("00000007H"), std::chrono::hours(7));
  EXPECT_EQ(ParseGrpcTimeout("0S"), Nanos(0));
}

TEST(GrpcTimeout, WhatDoesNotFitIsTheLongestThereIs) {
  EXPECT_EQ(ParseGrpcTimeout("99999999H"), Nanos::max());
  EXPECT_EQ(ParseGrpcTimeout("99999999M"), std::chrono::minutes(99'999'999));
}

TEST(GrpcTimeout, MalformedValuesAreNothing) {
  for (const char* text :
       {"", "S", "1", "1s", "1h", "-1S", "+1S", " 1S", "1S ", "1.0S", "123456789S", "1SS", "\xff\x31S", "1\n"}) {
    EXPECT_EQ(ParseGrpcTimeout(text), std::nullopt) << text;
  }
}

TEST(GrpcTimeout, IsWrittenInTheFinestUnitThatFits) {
  EXPECT_EQ(Format(1), "1n");
  EXPECT_EQ(Format(99'999'999), "99999999n");
  EXPECT_EQ(Format(100'000'000), "100000u");
  EXPECT_EQ(Format(1'000'000'000), "1000000u");
  EXPECT_EQ(Format(99'999'999'999), "99999999u");
  EXPECT_EQ(Format(100'000'000'000), "100000m");
  EXPECT_EQ(Format(0), "1n");
  EXPECT_EQ(Format(-5), "1n");
}

TEST(GrpcTimeout, IsNeverLongerThanGivenNorMuchShorterAndHasAtMostEightDigits) {
  const uint64_t seed = 20261121;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int i = 0; i < 200'000; ++i) {
    const auto nanos = static_cast<int64_t>(random.Next() >> (1 + random.Below(63)));
    if (nanos == 0) continue;
    const std::string text = Format(nanos);
    ASSERT_LE(text.size(), 9u);
    auto parsed = ParseGrpcTimeout(text);
    ASSERT_TRUE(parsed) << text;
    ASSERT_LE(parsed->count(), nanos) << text;
    ASSERT_EQ(AsFormatted(Nanos(nanos)), *parsed) << text;
    // Less than one of its unit is cut off; the unit is at most 10^-5 of the value.
    ASSERT_GE(static_cast<double>(parsed->count()), static_cast<double>(nanos) * 0.9999) << text;
  }
}

TEST(GrpcTimeout, AServerRunsOutAtTheTimeoutAsWrittenLessAMillisecond) {
  const Nanos second = std::chrono::seconds(1), ms = std::chrono::milliseconds(1);
  EXPECT_TRUE(RanOutAtServer(second, second));
  EXPECT_TRUE(RanOutAtServer(second - ms, second));
  EXPECT_FALSE(RanOutAtServer(second - ms - Nanos(1), second));
  const Nanos cut = 200 * second + Nanos(999'999);  // in milliseconds
  EXPECT_TRUE(RanOutAtServer(200 * second - ms, cut));
  EXPECT_FALSE(RanOutAtServer(200 * second - ms - Nanos(1), cut));
  EXPECT_TRUE(RanOutAtServer(Nanos(0), ms));
  EXPECT_FALSE(RanOutAtServer(std::chrono::hours(1), Nanos::max()));
}

TEST(GrpcTimeout, AClientRunsOutUpToATenthOrAHundredMillisecondsEarly) {
  const Nanos ms = std::chrono::milliseconds(1);
  for (auto [timeout, early] : {std::pair(20'000 * ms, 200 * ms),
                                {5000 * ms, 100 * ms},
                                {1000 * ms, 100 * ms},
                                {50 * ms, 5 * ms},
                                {20 * ms, 2 * ms}}) {
    EXPECT_TRUE(RanOutAtClient(timeout, timeout));
    EXPECT_TRUE(RanOutAtClient(timeout - early, timeout));
    EXPECT_FALSE(RanOutAtClient(timeout - early - Nanos(1), timeout));
  }
  EXPECT_FALSE(RanOutAtClient(std::chrono::hours(1), Nanos::max()));
}

TEST(GrpcTimeout, AServerCancelsInTheLastTenthOrTheLastHundredMilliseconds) {
  const Nanos ms = std::chrono::milliseconds(1);
  for (auto [timeout, early] : {std::pair(20'000 * ms, 100 * ms), {1000 * ms, 100 * ms}, {50 * ms, 5 * ms}}) {
    EXPECT_TRUE(CancelledByServersTimer(timeout - early, timeout));
    EXPECT_FALSE(CancelledByServersTimer(timeout - early - Nanos(1), timeout));
  }
  EXPECT_TRUE(CancelledByServersTimer(Nanos(0), ms)) << "the grain of its clock";
  EXPECT_FALSE(CancelledByServersTimer(std::chrono::hours(1), Nanos::max()));
}

}  // namespace
}  // namespace sluice::proxy
