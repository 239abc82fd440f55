// RouteCover: only certain cover counts; routes that merely overlap are legal.
#include "config/route_cover.h"

#include <gtest/gtest.h>

namespace sluice::config {
namespace {

using proxy::MetadataMatch;
using proxy::RouteOptions;

RouteOptions Service(std::string service, std::string method = "") {
  RouteOptions route;
  route.service = std::move(service);
  route.method = std::move(method);
  return route;
}
RouteOptions Prefix(std::string prefix) {
  RouteOptions route;
  route.prefix = std::move(prefix);
  return route;
}
RouteOptions Authority(std::string authority) {
  RouteOptions route;
  route.authority = std::move(authority);
  return route;
}
RouteOptions Metadata(MetadataMatch::Kind kind, std::string value = "", std::string name = "k") {
  RouteOptions route;
  route.metadata.push_back({std::move(name), kind, std::move(value)});
  return route;
}
constexpr auto kPresent = MetadataMatch::Kind::kPresent;
constexpr auto kExact = MetadataMatch::Kind::kExact;
constexpr auto kPrefix = MetadataMatch::Kind::kPrefix;

TEST(RouteCover, ARouteWithoutConditionsTakesAll) {
  const RouteOptions all;
  EXPECT_TRUE(Covers(all, Service("a", "b")));
  EXPECT_TRUE(Covers(all, Prefix("/a")));
  EXPECT_TRUE(Covers(all, Authority("h")));
  EXPECT_TRUE(Covers(all, Metadata(kExact, "v")));
  EXPECT_TRUE(Covers(all, all));
  EXPECT_FALSE(Covers(Service("a"), all));
  EXPECT_FALSE(Covers(Prefix("/a"), all));
  EXPECT_FALSE(Covers(Authority("h"), all));
  EXPECT_FALSE(Covers(Metadata(kPresent), all));
}

TEST(RouteCover, AServiceTakesItsMethodsAndNoOther) {
  EXPECT_TRUE(Covers(Service("a"), Service("a", "b")));
  EXPECT_FALSE(Covers(Service("a", "b"), Service("a")));
  EXPECT_FALSE(Covers(Service("a"), Service("ab")));
  EXPECT_FALSE(Covers(Service("a"), Prefix("/a/")));
}

TEST(RouteCover, APrefixTakesTheServicesBelowIt) {
  EXPECT_TRUE(Covers(Prefix("/a"), Service("ab", "c")));
  EXPECT_TRUE(Covers(Prefix("/a/"), Service("a")));
  EXPECT_TRUE(Covers(Prefix("/a"), Prefix("/ab")));
  EXPECT_FALSE(Covers(Prefix("/ab"), Prefix("/a")));
  EXPECT_FALSE(Covers(Prefix("/a/b"), Service("a")));
}

TEST(RouteCover, AuthoritiesDoNotDifferByCase) {
  EXPECT_TRUE(Covers(Authority("A.example"), Authority("a.EXAMPLE")));
  EXPECT_FALSE(Covers(Authority("a.example"), Authority("b.example")));
}

TEST(RouteCover, AWeakerMetadataConditionTakesTheStronger) {
  EXPECT_TRUE(Covers(Metadata(kPresent), Metadata(kExact, "v")));
  EXPECT_TRUE(Covers(Metadata(kPrefix, "v"), Metadata(kExact, "v1")));
  EXPECT_TRUE(Covers(Metadata(kPrefix, "v"), Metadata(kPrefix, "v1")));
  EXPECT_FALSE(Covers(Metadata(kPrefix, "v1"), Metadata(kPrefix, "v")));
  EXPECT_FALSE(Covers(Metadata(kExact, "v"), Metadata(kExact, "w")));
  EXPECT_FALSE(Covers(Metadata(kExact, "v"), Metadata(kPrefix, "v")));
  EXPECT_FALSE(Covers(Metadata(kPresent), Metadata(kPresent, "", "other")));
}

TEST(RouteCover, EveryConditionOfTheFirstMustFollow) {
  RouteOptions first = Service("a");
  first.authority = "h";
  EXPECT_FALSE(Covers(first, Service("a", "b")));
  RouteOptions second = Service("a", "b");
  second.authority = "h";
  EXPECT_TRUE(Covers(first, second));
}

}  // namespace
}  // namespace sluice::config
