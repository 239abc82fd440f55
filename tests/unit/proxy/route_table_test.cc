#include "proxy/route_table.h"

#include <gtest/gtest.h>

#include "proxy/client.h"

namespace sluice::proxy {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

RouteTable Table(std::vector<RouteOptions> options) {
  std::vector<Route> routes;
  for (RouteOptions& o : options) routes.push_back({std::move(o), 0, {}});
  return RouteTable(std::move(routes));
}
RouteOptions Any(std::string name = "any") {
  RouteOptions options;
  options.name = std::move(name);
  return options;
}
std::string Match(const RouteTable& table, const std::string& path, const std::string& authority = "host",
                  const Fields& more = {}, uint64_t listener = 0) {
  http2::HeaderList request;
  if (!path.empty()) request.Add(":path", path);
  if (!authority.empty()) request.Add(":authority", authority);
  for (const auto& [name, value] : more) request.Add(name, value);
  const Route* route = table.Match(Canonicalize(std::move(request), PathRule::kAny), listener);
  return route == nullptr ? "none" : route->options.name;
}

TEST(RouteTable, ARouteWithoutConditionsTakesEverything) {
  RouteTable table = Table({Any()});
  EXPECT_EQ(Match(table, "/a.B/C"), "any");
  EXPECT_EQ(Match(table, ""), "any");
  EXPECT_EQ(Match(Table({}), "/a.B/C"), "none");
}

TEST(RouteTable, TheFirstRouteThatMatchesWins) {
  RouteOptions get = Any("get"), service = Any("service");
  service.service = get.service = "pkg.Users";
  get.method = "Get";
  EXPECT_EQ(Match(Table({get, service, Any()}), "/pkg.Users/Get"), "get");
  EXPECT_EQ(Match(Table({service, get, Any()}), "/pkg.Users/Get"), "service");
  EXPECT_EQ(Match(Table({Any(), get}), "/pkg.Users/Get"), "any");
  EXPECT_EQ(Match(Table({get, service}), "/pkg.Users/Put"), "service");
  EXPECT_EQ(Match(Table({get, service}), "/pkg.Other/Get"), "none");
}

TEST(RouteTable, ServiceAndMethodAreWholeNamesAndCaseCounts) {
  RouteOptions service = Any("service"), method = Any("method");
  service.service = method.service = "pkg.Users";
  method.method = "Get";
  for (const char* path : {"/pkg.UsersX/Get", "/pkg.users/Get", "/pkg.Users", "/x/pkg.Users/Get", "pkg.Users/Get"}) {
    EXPECT_EQ(Match(Table({service}), path), "none") << path;
  }
  for (const char* path :
       {"/pkg.Users/GetAll", "/pkg.Users/get", "/pkg.Users/Get/", "/pkg.Users/Get%3Fx", "/pkg.Users/"}) {
    EXPECT_EQ(Match(Table({method}), path), "none") << path;
  }
}

// A query is for the server (RFC 3986 3.4). A listener takes one with a gRPC call only where it takes any path.
TEST(RouteTable, AQueryIsNoPartOfThePath) {
  RouteOptions method = Any("method");
  method.service = "pkg.Users";
  method.method = "Get";
  EXPECT_EQ(Match(Table({method}), "/pkg.Users/Get?x"), "method");
  EXPECT_EQ(Match(Table({method}), "/pkg.Users/Get/?x"), "none");
}

TEST(RouteTable, APrefixIsOfTheWholePath) {
  RouteOptions route = Any("prefix");
  route.prefix = "/pkg.";
  EXPECT_EQ(Match(Table({route}), "/pkg.Users/Get"), "prefix");
  EXPECT_EQ(Match(Table({route}), "/pkg"), "none");
  EXPECT_EQ(Match(Table({route}), "/x/pkg."), "none");
}

TEST(RouteTable, AnAuthorityMatchesWithAndWithoutItsPortInAnyCase) {
  RouteOptions route = Any("a");
  route.authority = "Users.Example.com";
  for (const char* authority : {"users.example.com", "USERS.example.com:50051"})
    EXPECT_EQ(Match(Table({route}), "/", authority), "a");
  for (const char* authority : {"users.example.co", "x.users.example.com", "users.example.com..", ""}) {
    EXPECT_EQ(Match(Table({route}), "/", authority), "none") << authority;
  }
  route.authority = "users.example.com:1";
  EXPECT_EQ(Match(Table({route}), "/", "users.example.com:1"), "a");
  EXPECT_EQ(Match(Table({route}), "/", "users.example.com:2"), "none");
  route.authority = "[::1]";
  EXPECT_EQ(Match(Table({route}), "/", "[::1]:80"), "a");
  EXPECT_EQ(Match(Table({route}), "/", "[::1]"), "a");
  EXPECT_EQ(Match(Table({route}), "/", "[::2]"), "none");
}

// RFC 1034 3.1: a closing dot says that the name is whole, not that it is another one.
TEST(RouteTable, AClosingDotIsNoOtherAuthority) {
  RouteOptions route = Any("a");
  for (const char* configured : {"users.example.com", "users.example.com.", "*.example.com", "*.example.com."}) {
    route.authority = configured;
    for (const char* authority : {"users.example.com", "users.example.com.", "users.example.com.:50051"})
      EXPECT_EQ(Match(Table({route}), "/", authority), "a") << configured << ' ' << authority;
  }
  route.authority = "users.example.com:1";
  EXPECT_EQ(Match(Table({route}), "/", "users.example.com.:1"), "a");
  EXPECT_EQ(Match(Table({route}), "/", "users.example.com.:2"), "none");
  EXPECT_EQ(Match(Table({route}), "/", "users.example.com."), "none");
}

TEST(RouteTable, AStarStandsForOneOrMoreLabels) {
  RouteOptions route = Any("a");
  route.authority = "*.example.com";
  for (const char* authority : {"a.example.com", "a.b.Example.com:80"})
    EXPECT_EQ(Match(Table({route}), "/", authority), "a");
  for (const char* authority : {"example.com", ".example.com", "aexample.com"}) {
    EXPECT_EQ(Match(Table({route}), "/", authority), "none") << authority;
  }
}

TEST(RouteTable, HostStandsInForAMissingAuthority) {
  RouteOptions route = Any("a");
  route.authority = "users";
  EXPECT_EQ(Match(Table({route}), "/", "", {{"host", "users:1"}}), "a");
  EXPECT_EQ(Match(Table({route}), "/", "other", {{"host", "users"}}), "none");
}

TEST(RouteTable, MetadataMustBePresentEqualOrBeginWithTheValueAndAllConditionsHold) {
  using Kind = MetadataMatch::Kind;
  RouteOptions route = Any("m");
  route.metadata = {{"tenant", Kind::kExact, "a"}, {"version", Kind::kPrefix, "2."}, {"canary", Kind::kPresent, ""}};
  RouteTable table = Table({route});
  EXPECT_EQ(Match(table, "/", "h", {{"tenant", "a"}, {"version", "2.1"}, {"canary", ""}}), "m");
  EXPECT_EQ(Match(table, "/", "h", {{"tenant", "b"}, {"tenant", "a"}, {"version", "2."}, {"canary", "x"}}), "m");
  EXPECT_EQ(Match(table, "/", "h", {{"tenant", "A"}, {"version", "2.1"}, {"canary", ""}}), "none");
  EXPECT_EQ(Match(table, "/", "h", {{"tenant", "a"}, {"version", "12."}, {"canary", ""}}), "none");
  EXPECT_EQ(Match(table, "/", "h", {{"tenant", "a"}, {"version", "2.1"}}), "none");
  EXPECT_EQ(Match(table, "/", "h", {}), "none");
}

TEST(RouteTable, ConditionsOfDifferentKindsAreAllNeeded) {
  RouteOptions route = Any("r");
  route.service = "s";
  route.authority = "h";
  route.metadata = {{"k", MetadataMatch::Kind::kPresent, ""}};
  RouteTable table = Table({route});
  EXPECT_EQ(Match(table, "/s/M", "h", {{"k", ""}}), "r");
  EXPECT_EQ(Match(table, "/t/M", "h", {{"k", ""}}), "none");
  EXPECT_EQ(Match(table, "/s/M", "i", {{"k", ""}}), "none");
  EXPECT_EQ(Match(table, "/s/M", "h", {}), "none");
}

// The first route of which WhyNot says nothing is the one that Match takes.
TEST(RouteTable, WhyNotAgreesWithMatch) {
  using What = RouteMiss::What;
  RouteOptions get = Any("get"), host = Any("host"), tenant = Any("tenant"), side = Any("side");
  get.service = "pkg.Users";
  get.method = "Get";
  host.authority = "h.example.com";
  side.listeners = {"side"};
  tenant.metadata = {{"x-a", MetadataMatch::Kind::kPresent, ""}, {"x-tenant", MetadataMatch::Kind::kExact, "blue"}};
  const RouteTable table = Table({get, side, host, tenant, Any()});
  const std::vector<What> misses = {What::kPath, What::kListener, What::kAuthority, What::kMetadata};
  const auto ask = [&](const std::string& path, const std::string& authority, const Fields& more, uint64_t listener) {
    http2::HeaderList fields;
    fields.Add(":path", path);
    fields.Add(":authority", authority);
    for (const auto& [name, value] : more) fields.Add(name, value);
    const CanonicalRequest request = Canonicalize(std::move(fields), PathRule::kAny);
    size_t first = 0;
    while (table.WhyNot(first, request, listener).what != What::kNone) {
      EXPECT_EQ(table.WhyNot(first, request, listener).what, misses[first]) << path << " " << first;
      ++first;
    }
    EXPECT_EQ(table.Match(request, listener), &table.routes()[first]) << path;
    return first;
  };
  EXPECT_EQ(ask("/pkg.Users/Get", "x", {}, 0), 0u);
  EXPECT_EQ(ask("/pkg.Users/Put", "x", {}, ListenerId("side")), 1u);
  EXPECT_EQ(ask("/pkg.Users/Get?q", "h.example.com", {}, 0), 0u);
  EXPECT_EQ(ask("/pkg.Users/Put", "h.example.com:80", {}, 0), 2u);
  EXPECT_EQ(ask("/pkg.Users/Put", "x", {{"x-a", ""}, {"x-tenant", "blue"}}, 0), 3u);
  EXPECT_EQ(ask("/pkg.Users/Put", "x", {{"x-a", ""}, {"x-tenant", "red"}}, 0), 4u);

  http2::HeaderList fields;
  fields.Add(":path", "/PKG.users/Get");
  const CanonicalRequest other = Canonicalize(std::move(fields), PathRule::kAny);
  EXPECT_EQ(table.WhyNot(0, other, 0).what, What::kSpelling);
  EXPECT_EQ(table.WhyNot(3, other, 0).metadata, 0u);
}

}  // namespace
}  // namespace sluice::proxy
