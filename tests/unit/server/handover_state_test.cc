// What goes from one process to the next, by way of the memory files: both sides in one process here.
#include "server/handover_state.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <random>

#include "handover/message_socket.h"
#include "server/leaving.h"
#include "server/processes.h"
#include "support/manual_worker.h"
#include "upstream/cluster_health.h"

namespace sluice::server {
namespace {

using limits::RateLimiter;
using std::chrono::milliseconds;
using std::chrono::seconds;
using upstream::HealthState;

// One side: a configuration with each kind of limit, and what serves by it.
struct Side {
  explicit Side(const config::Config& c) : config(c) {
    limits.Apply(config);
    clusters.emplace(registry, 1, ClusterWaits(), &limits);
  }
  void Init(const InheritedLists* inherited = nullptr) {
    const LimitTable table = limits.MakePlan(config);
    auto status = clusters->Init(config, {.limits = &table}, inherited);
    ASSERT_TRUE(status.ok()) << status.error().detail;
  }
  LimitTable Table() { return limits.Table(); }
  const RateLimit& Rate(const std::string& name) {
    table = limits.Table();
    return std::get<RateLimit>(table.Get(name)->limit);
  }
  const ClientRateLimit& Clients(const std::string& name) {
    table = limits.Table();
    return std::get<ClientRateLimit>(table.Get(name)->limit);
  }
  limits::ConcurrencyLimiter& Permits(const std::string& name) {
    return *FindSharedLimits(limits.Table(), *clusters)[name].permits;
  }
  upstream::ClusterHealth& Health() { return *clusters->States()[0]->health; }
  upstream::Endpoint& Endpoint(const std::string& name) {
    const auto state = clusters->States()[0];
    return *state->endpoints[state->Find(name)].endpoint;
  }

  config::Config config;
  metrics::Registry registry{1};
  LimitSet limits;
  LimitTable table;
  std::optional<Clusters> clusters;
};

config::Config MakeConfig() {
  config::Config config;
  config.concurrency.max = 50;
  config.clusters.resize(1);
  config.clusters[0].name = "c";
  config.clusters[0].rate_limit = {.rate = 10, .burst = 80};
  config.clusters[0].concurrency.max = 8;
  config.clusters[0].endpoint_concurrency.max = 4;
  for (const auto& [name, address] : {std::pair("a", "10.0.0.1:1"), {"b", "10.0.0.2:1"}})
    config.clusters[0].endpoints.push_back({name, *net::Address::Parse(address), 1});
  config.routes.resize(1);
  config.routes[0].name = "r";
  config.routes[0].cluster = "c";
  config.routes[0].rate_limit = {.rate = 10, .burst = 20, .capped = true};
  config.routes[0].client_rate_limit.metadata = "x-client";
  config.routes[0].client_rate_limit.rate = {.rate = 1, .burst = 8};
  return config;
}

class HandoverStateTest : public ::testing::Test {
 protected:
  const config::Config config = MakeConfig();
  const base::TimePoint now = base::Clock::Steady().Now();
};

TEST_F(HandoverStateTest, ListsKeepTheirVersionsWhereTheyAreTheSame) {
  Side former(config);
  former.Init();
  upstream::EndpointChange change;
  change.cluster = "c";
  change.kind = upstream::EndpointChange::Kind::kAdd;
  change.endpoints = {{"x", "10.0.0.9:1", 2, 1, "here"}};
  ASSERT_TRUE(former.clusters->Change(change).ok());
  auto file = WriteLists(former.clusters->ListsInForce(), former.Table());
  ASSERT_TRUE(file.ok());
  const auto handed = ReadLists(*file);
  ASSERT_TRUE(handed.ok()) << handed.error().detail;

  Side same(config);
  same.Init(&handed->lists);
  const auto before = former.clusters->List("c"), after = same.clusters->List("c");
  ASSERT_TRUE(before.ok() && after.ok());
  EXPECT_EQ((*after)[0].version, (*before)[0].version);
  EXPECT_EQ((*after)[0].digest, (*before)[0].digest);
  EXPECT_EQ((*after)[0].source, upstream::ListSource::kRpc);

  // Another list in the file: that one is in force, under a version that no list has had.
  Side other(config);
  other.config.clusters[0].endpoints.pop_back();
  other.Init(&handed->lists);
  const auto changed = other.clusters->List("c");
  ASSERT_TRUE(changed.ok());
  EXPECT_GT((*changed)[0].version, (*before)[0].version);
  EXPECT_EQ((*changed)[0].endpoints.size(), 1u);
}

TEST_F(HandoverStateTest, WhatWasPutInForceByRpcIsSoWhereTheSameIsConfigured) {
  Side former(config);
  former.Init();
  ASSERT_TRUE(former.limits.Change({.name = "cluster/c/rate", .rate = 33}).ok());
  ASSERT_TRUE(former.limits.Change({.name = "cluster/c/endpoint_concurrency", .max = 3}).ok());
  ASSERT_TRUE(former.limits.Change({.name = "route/r/client_rate", .rate = 5}).ok());
  ASSERT_TRUE(former.limits.Change({.name = "process/concurrency", .max = 44}).ok());
  auto file = WriteLists(former.clusters->ListsInForce(), former.Table());
  ASSERT_TRUE(file.ok());
  const auto handed = ReadLists(*file);
  ASSERT_TRUE(handed.ok());

  Side next(config);
  next.config.concurrency.max = 51;
  next.limits.Apply(next.config);
  for (const auto& limit : handed->limits) next.limits.TakeInForce(limit);
  next.Init();
  EXPECT_EQ(next.Rate("cluster/c/rate").in_force.rate, 33);
  EXPECT_EQ(next.Clients("route/r/client_rate").in_force.rate, 5);
  EXPECT_EQ(next.limits.EndpointConcurrency("c").max, 3u);
  EXPECT_EQ(std::get<ConcurrencyLimit>(next.Table().Get("process/concurrency")->limit).in_force.max, 51u);
}

TEST_F(HandoverStateTest, HealthStays) {
  Side former(config), next(config);
  former.Init();
  next.Init();
  const auto list = former.clusters->States()[0];
  ASSERT_TRUE(
      former.Health().Command(list->endpoints, former.Endpoint("a"), upstream::ClusterHealth::Order::kEject, now).ok());
  auto file = WriteState({*former.clusters, former.Table(), former.registry, nullptr}, {}, {}, now);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(ReadState(*file, {*next.clusters, next.Table(), next.registry, nullptr}, now).ok());
  const upstream::HealthView view = next.Health().Describe(next.Endpoint("a"), now);
  EXPECT_EQ(view.state, HealthState::kEjected);
  EXPECT_EQ(view.why, former.Health().Describe(former.Endpoint("a"), now).why);
  EXPECT_TRUE(next.Endpoint("a").out());
  EXPECT_EQ(next.Health().Describe(next.Endpoint("b"), now).state, HealthState::kUp);
}

// The two processes with the socket between them.
class TwoProcesses : public HandoverStateTest {
 protected:
  void SetUp() override {
    former.Init();
    next.Init();
  }
  // Up to Serving.
  void HandOver() {
    auto pair = handover::MessageSocket::MakePair();
    ASSERT_TRUE(pair.ok());
    auto other = handover::MessageSocket::Adopt(pair->second.Release());
    ASSERT_TRUE(other.ok());
    handover::v1::Take take;
    take.add_processes();
    handover::v1::Part part;
    const HandedLevels levels = leaving.Split({}, now, &part);
    const auto counts = former.registry.Counts();
    auto file = WriteState({*former.clusters, former.Table(), former.registry, nullptr}, levels, counts, now);
    ASSERT_TRUE(file.ok());
    auto parts = WriteParts({part});
    ASSERT_TRUE(parts.ok());
    processes.Take(take, *ReadParts(*parts), {});
    ASSERT_TRUE(ReadState(*file, {*next.clusters, next.Table(), next.registry, nullptr}, now).ok());
    processes.SetLastChannel(handover::Channel(std::move(*other)));
    leaving.Begin(handover::Channel(std::move(pair->first)), counts, kClients, now);
  }
  static constexpr uint64_t kClients = 4;
  void Step(bool closed = false) { StepAt(now, closed ? 0 : kClients); }
  void StepAt(base::TimePoint at, uint64_t clients) {
    leaving.Step({.may_begin = clients}, at);
    processes.Read();
  }

  Side former{config}, next{config};
  Leaving leaving{former.limits, *former.clusters, former.registry};
  Processes processes{next.limits, *next.clusters, next.registry};
};

constexpr const char* kPermits = "cluster/c/concurrency";

TEST_F(TwoProcesses, PermitsGoWithTheClients) {
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(a.TryTake());
  HandOver();
  Step();
  EXPECT_EQ(a.own(), 8u);
  for (int i = 0; i < 8; ++i) a.Return();
  for (const auto& [clients, own] : {std::pair(4u, 8u), {3, 6}, {2, 4}, {1, 2}, {0, 0}}) {
    StepAt(now, clients);
    EXPECT_EQ(a.own(), own) << clients;
    EXPECT_EQ(b.own(), 8 - own) << clients;
  }
}

TEST_F(TwoProcesses, PermitsThatCallsHereDoNotUseGoToTheOtherProcess) {
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  HandOver();
  EXPECT_EQ(b.own(), 1u) << "for its first calls";
  ASSERT_TRUE(a.TryTake());
  ASSERT_TRUE(a.TryTake());
  base::TimePoint at = now;
  a.Return();
  for (const uint32_t own : {7, 7, 2, 2}) {
    StepAt(at, kClients);
    EXPECT_EQ(a.own(), own) << "what they used lately, and one to spare; at first that is not known";
    at += Leaving::kLookPeriod;
  }
  EXPECT_EQ(b.own(), 6u);
  a.Return();
}

// A limit of one cannot be split.
TEST_F(TwoProcesses, TheOnlyPermitStaysWhereItIsUsed) {
  config::Config one = config;
  one.clusters[0].concurrency.max = 1;
  for (Side* side : {&former, &next}) side->limits.Apply(one);
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  ASSERT_TRUE(a.TryTake());
  HandOver();
  base::TimePoint at = now;
  StepAt(at, kClients);
  a.Return();
  StepAt(at, kClients);
  EXPECT_EQ(a.own(), 1u);
  for (int i = 0; i < 4; ++i) StepAt(at += Leaving::kLookPeriod, kClients);
  EXPECT_EQ(a.own(), 0u);
  EXPECT_EQ(b.own(), 1u);
}

TEST_F(TwoProcesses, ACallThatAsksLateGetsAPermitFromTheOtherProcess) {
  HandOver();
  Step(/*closed=*/true);
  limits::ConcurrencyLimiter &a = former.Permits("cluster/c/concurrency"), &b = next.Permits("cluster/c/concurrency");
  ASSERT_EQ(a.own(), 0u);
  limits::ConcurrencyLimiter::Ticket late;
  limits::Verdict::Kind told = limits::Verdict::Kind::kGo;
  test::ManualWorker time;
  const auto ask = [](limits::ConcurrencyLimiter& limiter, limits::ConcurrencyLimiter::Ticket& ticket,
                      limits::Verdict::Kind* kind) -> runtime::Task<void> {
    *kind = ticket.Ask(limiter, 1).kind;
    co_return;
  };
  time.runtime.SpawnOn(time.worker, ask(a, late, &told));
  time.Run();
  ASSERT_EQ(told, limits::Verdict::Kind::kWait);
  leaving.Step({.may_begin = 0}, now + Leaving::kLookPeriod);
  processes.Read();
  Step(/*closed=*/true);
  EXPECT_EQ(late.Poll().kind, limits::Verdict::Kind::kGo);
  EXPECT_EQ(a.own() + b.own(), 8u);
  late.Drop();
  Step(/*closed=*/true);
  EXPECT_EQ(b.own(), 8u);
  time.Run();
  time.runtime.Shutdown();
}

// A call that has to wait.
runtime::Task<void> Wait(limits::ConcurrencyLimiter& limiter, limits::ConcurrencyLimiter::Ticket& ticket) {
  EXPECT_EQ(ticket.Ask(limiter, 1).kind, limits::Verdict::Kind::kWait);
  co_return;
}

// In the new process all units are in use and a call waits: the old process's call gets the next unit before it.
TEST_F(TwoProcesses, ALateCallIsNotBehindAllThatWaitInTheOtherProcess) {
  HandOver();
  Step(/*closed=*/true);
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(b.TryTake());
  limits::ConcurrencyLimiter::Ticket late, other;
  test::ManualWorker time;
  time.runtime.SpawnOn(time.worker, Wait(b, other));
  time.runtime.SpawnOn(time.worker, Wait(a, late));
  time.Run();
  base::TimePoint at = now;
  const auto steps = [&] {
    for (int i = 0; i < 2; ++i) {
      leaving.Step({.may_begin = 0}, at += Leaving::kLookPeriod);
      processes.Read();
    }
    leaving.Step({.may_begin = 0}, at);  // hears what was lent
    EXPECT_LE(a.own() + b.own(), 8u);
  };
  steps();
  EXPECT_EQ(late.Poll().kind, limits::Verdict::Kind::kWait);
  EXPECT_EQ(b.own(), 7u) << "one is promised";
  steps();
  EXPECT_EQ(b.own(), 7u) << "and no second one";
  b.Return();
  EXPECT_EQ(other.Poll().kind, limits::Verdict::Kind::kWait);
  steps();
  EXPECT_EQ(late.Poll().kind, limits::Verdict::Kind::kGo);
  b.Return();
  EXPECT_EQ(other.Poll().kind, limits::Verdict::Kind::kGo);
  late.Drop();
  steps();
  EXPECT_EQ(b.own(), 8u);
  other.Drop();
  for (int i = 0; i < 6; ++i) b.Return();
  time.Run();
  time.runtime.Shutdown();
}

// All units are in use in the new process, where one call waits; three wait in the old one: three of four that come
// back go there.
TEST_F(TwoProcesses, CallsThatWaitInBothProcessesShareThePermits) {
  HandOver();
  Step(/*closed=*/true);
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(b.TryTake());
  std::array<limits::ConcurrencyLimiter::Ticket, 3> late;
  limits::ConcurrencyLimiter::Ticket other;
  test::ManualWorker time;
  time.runtime.SpawnOn(time.worker, Wait(b, other));
  for (auto& ticket : late) time.runtime.SpawnOn(time.worker, Wait(a, ticket));
  time.Run();
  base::TimePoint at = now;
  const auto steps = [&] {
    StepAt(at += Leaving::kLookPeriod, 0);
    StepAt(at, 0);
    EXPECT_LE(a.own() + b.own(), 8u);
  };
  steps();
  EXPECT_EQ(b.own(), 5u) << "three are promised, no more than wait";
  const auto went = [&] {
    return std::count_if(late.begin(), late.end(), [](auto& t) { return t.Poll().kind == limits::Verdict::Kind::kGo; });
  };
  for (int i = 1; i <= 3; ++i) {
    b.Return();
    steps();
    steps();
    EXPECT_EQ(went(), i);
    EXPECT_EQ(other.Poll().kind, limits::Verdict::Kind::kWait);
  }
  b.Return();
  EXPECT_EQ(other.Poll().kind, limits::Verdict::Kind::kGo);
  for (auto& ticket : late) ticket.Drop();
  other.Drop();
  for (int i = 0; i < 4; ++i) b.Return();
  steps();
  EXPECT_EQ(b.own(), 8u);
  time.Run();
  time.runtime.Shutdown();
}

// An endpoint that only the old process lists: its units are of no use to the other one.
TEST_F(TwoProcesses, APermitThatTheOtherProcessDoesNotKnowIsTheOldOnes) {
  HandOver();
  upstream::EndpointChange change;
  change.cluster = "c";
  change.kind = upstream::EndpointChange::Kind::kRemove;
  change.endpoints = {{"a"}};
  ASSERT_TRUE(next.clusters->Change(change).ok());
  Step(/*closed=*/true);
  limits::ConcurrencyLimiter& a = former.Permits("cluster/c/endpoint/a");
  EXPECT_EQ(a.own(), 0u);
  limits::ConcurrencyLimiter::Ticket late;
  test::ManualWorker time;
  time.runtime.SpawnOn(time.worker, Wait(a, late));
  time.Run();
  StepAt(now + Leaving::kLookPeriod, 0);
  StepAt(now + Leaving::kLookPeriod, 0);
  EXPECT_EQ(late.Poll().kind, limits::Verdict::Kind::kGo);
  late.Drop();
  time.Run();
  time.runtime.Shutdown();
}

// Promised, and not kept: the process that was to have it has ended.
TEST_F(TwoProcesses, APromisedUnitStaysWhereTheOtherProcessEnds) {
  HandOver();
  Step(/*closed=*/true);
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(b.TryTake());
  limits::ConcurrencyLimiter::Ticket late;
  test::ManualWorker time;
  time.runtime.SpawnOn(time.worker, Wait(a, late));
  time.Run();
  leaving.Step({.may_begin = 0}, now + Leaving::kLookPeriod);
  processes.Read();
  EXPECT_EQ(b.own(), 7u);
  leaving.Finish();
  EXPECT_TRUE(processes.Read().something);
  EXPECT_EQ(b.own(), 8u);
  late.Drop();
  for (int i = 0; i < 8; ++i) b.Return();
  time.Run();
  time.runtime.Shutdown();
}

TEST_F(TwoProcesses, PermitsAreNeverMoreThanTheLimitAndInTheEndTheNewOnes) {
  std::mt19937 random(4711);
  limits::ConcurrencyLimiter &a = former.Permits(kPermits), &b = next.Permits(kPermits);
  int held_a = 0, held_b = 0;
  const auto act = [&](limits::ConcurrencyLimiter& limiter, int& held) {
    if (random() % 2 == 0) {
      held += limiter.TryTake() ? 1 : 0;
    } else if (held > 0) {
      limiter.Return();
      --held;
    }
    ASSERT_LE(held_a + held_b, 8);
    ASSERT_LE(a.own() + b.own(), 8u);
  };
  for (int i = 0; i < 5; ++i) held_a += a.TryTake() ? 1 : 0;
  HandOver();
  for (int i = 0; i < 2000; ++i) {
    act(a, held_a);
    act(b, held_b);
    if (random() % 3 == 0) Step();
  }
  for (; held_a > 0; --held_a) a.Return();
  Step(/*closed=*/true);
  EXPECT_EQ(b.own(), 8u);
  EXPECT_EQ(a.own(), 0u);
  for (; held_b > 0; --held_b) b.Return();
}

TEST_F(TwoProcesses, WhatAProcessHadThatEndsComesBack) {
  limits::ConcurrencyLimiter& a = former.Permits("cluster/c/endpoint/a");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a.TryTake());
  HandOver();
  Step(/*closed=*/true);
  EXPECT_EQ(next.Permits("cluster/c/endpoint/a").own(), 1u);
  EXPECT_EQ(processes.size(), 1u);
  leaving.Finish();
  EXPECT_TRUE(processes.Read().something);
  EXPECT_EQ(processes.size(), 0u);
  EXPECT_EQ(next.Permits("cluster/c/endpoint/a").own(), 4u);
  EXPECT_EQ(next.Rate("cluster/c/rate").permille, kWhole);
  for (int i = 0; i < 3; ++i) a.Return();
}

TEST_F(TwoProcesses, AHandoverThatFailsLeavesAllAsItWas) {
  ASSERT_TRUE(former.Permits(kPermits).TryTake());
  handover::v1::Part part;
  (void)leaving.Split({}, now, &part);
  EXPECT_LT(former.Permits(kPermits).own(), 8u);
  EXPECT_EQ(leaving.state(), Leaving::State::kSplit);
  leaving.Join();
  EXPECT_EQ(former.Permits(kPermits).own(), 8u);
  EXPECT_EQ(former.Permits("cluster/c/endpoint/b").own(), 4u);
  EXPECT_EQ(former.Rate("cluster/c/rate").permille, kWhole);
  EXPECT_EQ(leaving.state(), Leaving::State::kWhole);
  former.Permits(kPermits).Return();
}

// How many calls start at once.
int Burst(RateLimiter& limiter, base::TimePoint now) {
  int count = 0;
  while (count < 1000 && limiter.TryStart(now) == RateLimiter::Start::kFree) ++count;
  return count;
}

TEST_F(TwoProcesses, ABurstIsOneOfBoth) {
  RateLimiter& a = *former.Rate("cluster/c/rate").limiter;
  for (int i = 0; i < 30; ++i) ASSERT_EQ(a.TryStart(now), RateLimiter::Start::kFree);
  HandOver();
  RateLimiter& b = *next.Rate("cluster/c/rate").limiter;
  const int both = Burst(a, now) + Burst(b, now);
  EXPECT_LE(both, 50);
  EXPECT_GE(both, 40) << "a part is lost to whole numbers, no more";
  EXPECT_NEAR(a.rate() + b.rate(), 10, 1e-6);
  Step(/*closed=*/true);
  EXPECT_NEAR(b.rate(), 10, 1e-6);
}

TEST_F(TwoProcesses, AClientsDebtStays) {
  const auto a = former.Clients("route/r/client_rate").limiter->Get(42, now);
  EXPECT_EQ(Burst(*a, now), 8);
  HandOver();
  const auto b = next.Clients("route/r/client_rate").limiter->Get(42, now);
  EXPECT_EQ(Burst(*b, now), 0);
  const auto fresh = next.Clients("route/r/client_rate").limiter->Get(43, now);
  EXPECT_EQ(Burst(*fresh, now), 7) << "an eighth may start in the other process for a moment";
}

TEST_F(TwoProcesses, CallsOfACappedRateHoldTheirTokensUntilTheyEnd) {
  RateLimiter& a = *former.Rate("route/r/rate").limiter;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(a.TryStart(now), RateLimiter::Start::kHeld);
  HandOver();
  RateLimiter& b = *next.Rate("route/r/rate").limiter;
  EXPECT_EQ(b.outstanding(), 10u);
  for (int i = 0; i < 10; ++i) a.Release();
  Step();
  EXPECT_EQ(b.outstanding(), 0u);
}

TEST_F(TwoProcesses, CountsGoOnToBeTold) {
  metrics::Counter* a = former.registry.AddCounter("x_total", "h");
  metrics::Counter* b = next.registry.AddCounter("x_total", "h");
  a->Add(0, 3);
  HandOver();
  EXPECT_EQ(b->Value(), 3u);
  a->Add(0, 2);
  Step();
  EXPECT_EQ(b->Value(), 5u) << "at once, so that no scrape sees less than one before";
  leaving.Step({}, now + Leaving::kCountPeriod);
  processes.Read();
  EXPECT_EQ(b->Value(), 5u);
  a->Add(0, 1);
  leaving.Finish();
  processes.Read();
  EXPECT_EQ(b->Value(), 6u);
}

TEST_F(TwoProcesses, OrdersReachTheProcessThatLeaves) {
  HandOver();
  processes.TellToEnd(milliseconds(1500));
  processes.TellToReopenLogs();
  const auto heard = leaving.Step({}, now);
  ASSERT_EQ(heard.orders.size(), 2u);
  EXPECT_EQ(heard.orders[0].end_within_ms(), 1500u);
  EXPECT_TRUE(heard.orders[1].reopen_logs());
}

TEST_F(HandoverStateTest, ResponsesStay) {
  proxy::CacheOptions options;
  options.capacity_bytes = 1 << 20;
  Side former(config), next(config);
  former.Init();
  next.Init();
  proxy::ResponseCache from(options, former.registry), to(options, next.registry);
  http2::HeaderList headers, trailers;
  headers.Add(":status", "200");
  headers.Add("content-type", "application/grpc");
  trailers.Add("grpc-status", "0");
  auto response = std::make_shared<proxy::CachedResponse>();
  response->headers = proxy::FlatHeaders(headers);
  response->message = base::Slice::Copy(std::string("\0\0\0\0\2ab", 7));
  response->trailers = proxy::FlatHeaders(trailers);
  response->status = proxy::GrpcCode::kOk;
  response->stored = now;
  proxy::cache_policy::Lifetime life;
  life.fresh_until = life.revalidate_until = life.unavailable_until = now + seconds(60);
  std::string key("\4\0\0\0\5\0\0\0/s/M", 12);
  key += std::string("\0\0\0\0\0", 5);
  ASSERT_TRUE(from.Restore(key, response, life, now));
  ASSERT_FALSE(from.Restore("no key", response, life, now));
  auto file = WriteState({*former.clusters, former.Table(), former.registry, &from}, {}, {}, now);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(ReadState(*file, {*next.clusters, next.Table(), next.registry, &to}, now).ok());
  int found = 0;
  to.ForEachStored([&](const proxy::ResponseCache::Stored& stored) {
    ++found;
    EXPECT_EQ(stored.key, key);
    EXPECT_EQ(stored.response.message.view(), response->message.view());
    EXPECT_TRUE(stored.response.headers == response->headers);
    EXPECT_TRUE(stored.response.trailers == response->trailers);
    EXPECT_EQ(stored.life.fresh_until, life.fresh_until);
  });
  EXPECT_EQ(found, 1);
  // One that is over is not taken.
  proxy::ResponseCache late(options, next.registry);
  ASSERT_TRUE(ReadState(*file, {*next.clusters, next.Table(), next.registry, &late}, now + seconds(61)).ok());
  EXPECT_EQ(late.stats().entries, 0u);
}

}  // namespace
}  // namespace sluice::server
