// Priorities and localities of endpoints, and where the process is.
#include <gtest/gtest.h>

#include <string>

#include "config/config.h"

namespace sluice::config {
namespace {

ParseResult Of(const std::string& top, const std::string& cluster, const std::string& endpoint) {
  return Parse("listeners: [{address: 127.0.0.1:1}]\n" + top + "\nclusters: [{name: c, " + cluster +
                   "endpoints: [{address: a:1, " + endpoint + "}]}]\n",
               "f");
}

std::string ErrorOf(const ParseResult& result) {
  return result.errors.size() == 1 ? result.errors[0].path + " " + result.errors[0].message
                                   : std::to_string(result.errors.size()) + " errors";
}

TEST(Locality, AClusterWithoutOneHasTheProcesss) {
  EXPECT_EQ(Of("locality: eu", "", "weight: 1").config.clusters[0].locality, "eu");
  EXPECT_EQ(Of("locality: eu", "locality: us, ", "weight: 1").config.clusters[0].locality, "us");
  EXPECT_EQ(Of("", "", "weight: 1").config.clusters[0].locality, "");
}

TEST(Locality, AnEndpointHasAPriorityAndALocality) {
  const auto plain = Of("", "", "weight: 1").config.clusters[0].endpoints[0];
  EXPECT_EQ(plain.priority, 0u);
  EXPECT_EQ(plain.locality, "");
  const auto both = Of("", "spill: {headroom: 0.1}, ", "priority: 7, locality: us").config.clusters[0];
  EXPECT_EQ(both.endpoints[0].priority, 7u);
  EXPECT_EQ(both.endpoints[0].locality, "us");
  EXPECT_EQ(both.spill.headroom, 0.1);
}

TEST(Locality, WhatIsOutOfBoundsIsAnError) {
  EXPECT_EQ(ErrorOf(Of("", "", "priority: 8")),
            "clusters[0].endpoints[0].priority \"8\" is not a whole number in [0, 7]");
  EXPECT_EQ(ErrorOf(Of("", "", "locality: " + std::string(65, 'x'))).find("clusters[0].endpoints[0].locality"), 0u);
  EXPECT_EQ(ErrorOf(Of("locality: \"a\\tb\"", "", "weight: 1")).find("locality "), 0u);
}

}  // namespace
}  // namespace sluice::config
