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
    // Less than one of its unit is cut off; the unit is at most 10^-5 of the value.
    ASSERT_GE(static_cast<double>(parsed->count()), static_cast<double>(nanos) * 0.9999) << text;
  }
}

}  // namespace
}  // namespace sluice::proxy
