// What is remembered by a request's first fields is what the whole request says.
#include "proxy/downstream/plan_memo.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace sluice::proxy {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

RouteOptions Cached(std::string name, std::string cluster) {
  RouteOptions options;
  options.name = std::move(name);
  options.cluster = std::move(cluster);
  options.cache.methods = {{"/pkg.Service/Get", std::chrono::seconds(10)}};
  return options;
}

class CachePlanMemoTest : public testing::Test {
 public:
  CachePlanMemoTest() {
    RouteOptions versioned = Cached("versioned", "new");
    versioned.metadata = {{"x-version", MetadataMatch::Kind::kPrefix, "v2"}};
    RouteOptions rest = Cached("rest", "old");
    rest.cache.vary = {"user-agent", "x-tenant"};
    std::vector<Route> table;
    table.push_back({versioned, 0, {}, nullptr});
    table.push_back({rest, 1, {}, nullptr});
    config_.emplace(RouteConfig{RouteTable(std::move(table)), {}, nullptr, 0, nullptr, nullptr});
    http2::HeaderList fields = List(kClient);
    run_ = interns_.MakeRun(fields.begin(), fields.size());
  }
  ~CachePlanMemoTest() override { interns_.UnrefRun(run_); }

 protected:
  static inline const Pairs kClient = {{":method", "POST"},
                                       {":scheme", "http"},
                                       {":path", "/pkg.Service/Get"},
                                       {":authority", "a.example"},
                                       {"content-type", "application/grpc"},
                                       {"te", "trailers"}};

  http2::HeaderList List(const Pairs& pairs) {
    http2::HeaderList list(&interns_);
    for (const auto& [name, value] : pairs) list.Add(name, value);
    return list;
  }
  // A request that begins with the client's run; `more` stands behind it.
  CanonicalRequest Request(const Pairs& more) {
    http2::HeaderList list(&interns_);
    list.AddRun(*run_);
    for (const auto& [name, value] : more) list.Add(name, value);
    return Canonicalize(std::move(list), PathRule::kGrpc);
  }
  // The plan by a memo that has seen no other request.
  const FastPathPlan* Fresh(const Pairs& more) {
    Pairs all = kClient;
    all.insert(all.end(), more.begin(), more.end());
    whole_.emplace(Canonicalize(List(all), PathRule::kGrpc));
    EXPECT_EQ(whole_->run(), nullptr);
    return fresh_.For(*config_, ++fresh_version_, *whole_, 0);
  }
  void ExpectAsFresh(const Pairs& more) {
    CanonicalRequest request = Request(more);
    const FastPathPlan* plan = plans_.For(*config_, version_, request, 0);
    const FastPathPlan* fresh = Fresh(more);
    ASSERT_EQ(plan != nullptr, fresh != nullptr);
    if (plan == nullptr) return;
    EXPECT_EQ(plan->route, fresh->route);
    EXPECT_EQ(plan->key_head, fresh->key_head);
    EXPECT_EQ(plan->plan.age_max, fresh->plan.age_max);
    EXPECT_EQ(plan->plan.revalidate, fresh->plan.revalidate);
  }

  http2::InternTable interns_;
  std::optional<RouteConfig> config_;
  http2::FieldRun* run_ = nullptr;
  CachePlanMemo plans_, fresh_;
  uint64_t version_ = 1, fresh_version_ = 0;
  std::optional<CanonicalRequest> whole_;
};

TEST_F(CachePlanMemoTest, IsRememberedByTheRun) {
  CanonicalRequest one = Request({{"x-request-id", "1"}}), two = Request({{"x-request-id", "2"}});
  ASSERT_NE(one.run(), nullptr);
  const FastPathPlan* plan = plans_.For(*config_, version_, one, 0);
  ASSERT_NE(plan, nullptr);
  EXPECT_EQ(plan->route, &config_->routes.routes()[1]);
  EXPECT_EQ(plans_.For(*config_, version_, two, 0), plan);
  EXPECT_NE(plan->key_head.find("a.example"), std::string::npos);
}

TEST_F(CachePlanMemoTest, APlanIsKnownAgainUntilAnotherTakesItsPlace) {
  CanonicalRequest one = Request({}), other = Request({{"x-version", "v2"}});
  const FastPathPlan* plan = plans_.For(*config_, version_, one, 0);
  ASSERT_NE(plan, nullptr);
  const KnownPlan known = plans_.Remember(*plan);
  EXPECT_EQ(plans_.Again(known, version_), plan);
  EXPECT_EQ(plans_.Again({}, version_), nullptr);
  EXPECT_EQ(plans_.Again(known, version_ + 1), nullptr);

  // Of these fields none is remembered by the run: each makes a plan at the same place.
  const FastPathPlan* made = plans_.For(*config_, version_, other, 0);
  ASSERT_NE(made, nullptr);
  const KnownPlan first = plans_.Remember(*made);
  EXPECT_EQ(plans_.For(*config_, version_, other, 0), made);
  EXPECT_EQ(plans_.Again(first, version_), nullptr);
  EXPECT_EQ(plans_.Again(known, version_), plan) << "in a place of its own";
  // As after a reload: the plans of the former configuration are gone.
  plans_.For(*config_, version_ + 1, one, 0);
  EXPECT_EQ(plans_.Again(known, version_), nullptr);
}

// Each of these keeps callers apart, or answers away from a request, though the run is known.
TEST_F(CachePlanMemoTest, AFieldBehindTheRunThatDecidesIsSeen) {
  ExpectAsFresh({});
  for (const auto& [name, value] : Pairs{{"x-tenant", "gold"},
                                         {"user-agent", "grpc-c++"},
                                         {"x-version", "v2.1"},
                                         {"x-version", "v1"},
                                         {"authorization", "Bearer 1"},
                                         {"cookie", "session=1"},
                                         {"cache-control", "no-cache"},
                                         {"cache-control", "max-age=1"},
                                         {"cache-control", "no-store"},
                                         {"grpc-accept-encoding", "gzip"},
                                         {"grpc-encoding", "gzip"},
                                         {"x-request-id", "1"}}) {
    SCOPED_TRACE(name + ": " + value);
    ExpectAsFresh({{name, value}});
    ExpectAsFresh({{"x-request-id", "1"}, {name, value}});
    ExpectAsFresh({});
  }
}

TEST_F(CachePlanMemoTest, RandomFieldsBehindTheRun) {
  const uint64_t seed = std::random_device()();
  std::printf("[   seed   ] %llu\n", static_cast<unsigned long long>(seed));
  base::Random random(seed);
  const Pairs pool = {
      {"x-tenant", "gold"},   {"x-tenant", "silver"},    {"user-agent", "a"},    {"x-version", "v2"},
      {"x-request-id", "1"},  {"x-trace", "2"},          {"authorization", "b"}, {"cache-control", "max-age=3"},
      {"grpc-timeout", "1S"}, {"grpc-encoding", "gzip"}, {"via", "2 other"},     {"cookie", "c"}};
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    Pairs more;
    for (uint64_t i = random.Below(4); i > 0; --i) more.push_back(pool[random.Below(pool.size())]);
    ExpectAsFresh(more);
  }
}

TEST_F(CachePlanMemoTest, AnotherConfigurationIsReadAnew) {
  CanonicalRequest request = Request({});
  ASSERT_NE(plans_.For(*config_, version_, request, 0), nullptr);
  ++version_;
  RouteOptions plain;
  plain.name = "plain";
  std::vector<Route> table;
  table.push_back({plain, 0, {}, nullptr});
  config_.emplace(RouteConfig{RouteTable(std::move(table)), {}, nullptr, 0, nullptr, nullptr});
  EXPECT_EQ(plans_.For(*config_, version_, request, 0), nullptr);
}

}  // namespace
}  // namespace sluice::proxy
