// Values: units are exact, numbers without a unit are no durations, and what is printed parses back.
#include "config/values.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/random.h"

namespace sluice::config {
namespace {

using std::chrono::milliseconds;
using namespace std::chrono_literals;

TEST(Values, DurationsNeedAUnit) {
  EXPECT_EQ(ParseDuration("250ms"), 250ms);
  EXPECT_EQ(ParseDuration("5s"), milliseconds(5s));
  EXPECT_EQ(ParseDuration("2m"), milliseconds(2min));
  EXPECT_EQ(ParseDuration("1h"), milliseconds(1h));
  EXPECT_EQ(ParseDuration("0"), 0ms);
  for (const char* text :
       {"", "5", "00", "-1s", "+1s", "1.5s", "5 s", " 5s", "5s ", "s", "5us", "5S", "1m30s", "1e3ms"}) {
    EXPECT_EQ(ParseDuration(text), std::nullopt) << text;
  }
}

TEST(Values, SizesAreBytesOrBinaryUnits) {
  EXPECT_EQ(ParseBytes("65536"), 65536u);
  EXPECT_EQ(ParseBytes("64KiB"), 65536u);
  EXPECT_EQ(ParseBytes("4MiB"), 4u << 20);
  EXPECT_EQ(ParseBytes("1GiB"), 1u << 30);
  for (const char* text : {"", "64KB", "64k", "64 KiB", "KiB", "-1", "1.5KiB", "64kib", "0x10"}) {
    EXPECT_EQ(ParseBytes(text), std::nullopt) << text;
  }
}

TEST(Values, NumbersThatOverflowAreRefused) {
  EXPECT_EQ(ParseUnsigned("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(ParseUnsigned("18446744073709551616"), std::nullopt);
  EXPECT_EQ(ParseBytes("17179869184GiB"), std::nullopt);  // 2^64
  EXPECT_EQ(ParseDuration("9223372036854775808ms"), std::nullopt);
  EXPECT_EQ(ParseDuration("9223372036854775807ms"), milliseconds::max());
}

TEST(Values, DecimalsAreFinite) {
  EXPECT_EQ(ParseDecimal("0.5"), 0.5);
  EXPECT_EQ(ParseDecimal("2"), 2.0);
  for (const char* text : {"", "nan", "inf", "1e999", "1,5", "1.5x", "+1"})
    EXPECT_EQ(ParseDecimal(text), std::nullopt) << text;
}

TEST(Values, ModesAreOctalWithALeadingZero) {
  EXPECT_EQ(ParseMode("0660"), 0660u);
  EXPECT_EQ(ParseMode("0000"), 0u);
  EXPECT_EQ(ParseMode("0777"), 0777u);
  for (const char* text : {"", "660", "0o660", "0680", "1777", "00660", "432"})
    EXPECT_EQ(ParseMode(text), std::nullopt) << text;
}

TEST(Values, RoundNumbersPrintInTheirLargestUnit) {
  EXPECT_EQ(FormatBytes(64 * 1024), "64KiB");
  EXPECT_EQ(FormatBytes(65535), "65535");
  EXPECT_EQ(FormatBytes(1u << 30), "1GiB");
  EXPECT_EQ(FormatDuration(90s), "90s");
  EXPECT_EQ(FormatDuration(2min), "2m");
  EXPECT_EQ(FormatDuration(24h), "24h");
  EXPECT_EQ(FormatDuration(1500ms), "1500ms");
  EXPECT_EQ(FormatDuration(0ms), "0");
  EXPECT_EQ(FormatDecimal(0.01), "0.01");
}

TEST(Values, WhatIsPrintedParsesToTheSameValue) {
  const uint64_t seed = 5;
  SCOPED_TRACE(seed);
  base::Random random(seed);
  for (int i = 0; i < 10000; ++i) {
    const uint64_t value = random.Next() >> (1 + random.Below(63));
    EXPECT_EQ(ParseBytes(FormatBytes(value)), value);
    const milliseconds time(static_cast<int64_t>(value));
    EXPECT_EQ(ParseDuration(FormatDuration(time)), time);
  }
}

TEST(Values, ShownTextIsBoundedAndHarmless) {
  EXPECT_EQ(Shown("a\x1b[0m\n"), "\"a?[0m?\"");
  EXPECT_EQ(Shown(std::string(1000, 'x')).size(), 64u + 5u);
}

}  // namespace
}  // namespace sluice::config
