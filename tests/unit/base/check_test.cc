// CHECK: silent when true, loud when false, evaluated once.
#include "base/check.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Check, EvaluatesItsConditionOnce) {
  int times = 0;
  SLUICE_CHECK(++times == 1);
  EXPECT_EQ(times, 1);
}

TEST(CheckDeathTest, NamesTheExpressionAndTheFile) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  int window = 5;
  EXPECT_DEATH(SLUICE_CHECK(window < 3), "check_test.cc:[0-9]+: CHECK failed: window < 3");
}

TEST(Check, DebugChecksDoNotRunInReleaseBuilds) {
  int times = 0;
  SLUICE_DCHECK(++times == 1);
#ifdef NDEBUG
  EXPECT_EQ(times, 0);
#else
  EXPECT_EQ(times, 1);
#endif
}

}  // namespace
}  // namespace sluice::base
