// Suggest: near words only.
#include "config/suggest.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::config {
namespace {

const std::vector<std::string_view> kKnown = {"name", "policy", "ring_points", "endpoints", "via"};

TEST(Suggest, FindsTheWordTwoEditsAway) {
  EXPECT_EQ(Suggest("ring_pionts", kKnown), "ring_points");  // swapped
  EXPECT_EQ(Suggest("endpoint", kKnown), "endpoints");
  EXPECT_EQ(Suggest("polcyy", kKnown), "policy");
  EXPECT_EQ(Suggest("nmae", kKnown), "name");
}

TEST(Suggest, SaysNothingWhenNothingIsNear) {
  EXPECT_EQ(Suggest("timeout", kKnown), "");
  EXPECT_EQ(Suggest("x", kKnown), "");
  EXPECT_EQ(Suggest("", kKnown), "");
  EXPECT_EQ(Suggest("abc", kKnown), "");  // short: two edits would turn it into almost anything
  EXPECT_EQ(Suggest(std::string(100000, 'n'), kKnown), "");
}

}  // namespace
}  // namespace sluice::config
