// LimitSet: which limiter a name means after reloads and changes by RPC, and what it allows.
#include "server/limit_set.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "server/log_setup.h"
#include "support/manual_worker.h"
#include "sync/event.h"

namespace sluice::server {
namespace {

using admin::LimitChange;
using admin::LimitView;
using base::ErrorKind;
using limits::ConcurrencyLimiter;
using limits::RateLimiter;
using limits::Verdict;
using Strings = std::vector<std::string>;

class LimitSetTest : public ::testing::Test {
 protected:
  LimitSetTest() {
    config.clusters.resize(2);
    config.clusters[0].name = "c";
    config.clusters[1].name = "d";
    config.routes.resize(1);
    config.routes[0].name = "r";
  }
  LimitView View(const std::string& name) {
    for (const LimitView& view : set.List()) {
      if (view.name == name) return view;
    }
    ADD_FAILURE() << "no limit " << name;
    return {};
  }
  LimitView Set(LimitChange change) {
    auto view = set.Change(change);
    EXPECT_TRUE(view.ok()) << (view.ok() ? "" : view.error().detail);
    return view.ok() ? *view : LimitView{};
  }
  LimitView SetMax(const std::string& name, uint32_t max) { return Set({.name = name, .max = max}); }
  LimitView SetRate(const std::string& name, double rate) { return Set({.name = name, .rate = rate}); }
  std::string Refused(const LimitChange& change, ErrorKind kind = ErrorKind::kInvalidArgument) {
    auto view = set.Change(change);
    if (view.ok()) return "(accepted)";
    EXPECT_EQ(view.error().kind, kind);
    return view.error().detail;
  }
  // How many calls start at once; they end at once. With a queue of 0 no call waits.
  int Calls(const std::shared_ptr<RateLimiter>& limiter, int most = 1000) {
    for (int went = 0; went < most; ++went) {
      RateLimiter::Ticket ticket;
      if (ticket.Ask(*limiter, clock.Now(), base::kNever).kind != Verdict::Kind::kGo) return went;
    }
    return most;
  }
  static bool Goes(ConcurrencyLimiter::Ticket& ticket, const std::shared_ptr<ConcurrencyLimiter>& limiter) {
    return ticket.TryAsk(*limiter).kind == Verdict::Kind::kGo;
  }

  base::ManualClock clock;
  config::Config config;
  LimitSet set{clock};
};

TEST_F(LimitSetTest, EveryLimitHasALimiterAndStandsInOrder) {
  set.Apply(config);
  Strings names;
  for (const LimitView& view : set.List()) names.push_back(view.name);
  EXPECT_EQ(names, (Strings{"process/concurrency", "cluster/c/rate", "cluster/c/concurrency",
                            "cluster/c/endpoint_concurrency", "cluster/d/rate", "cluster/d/concurrency",
                            "cluster/d/endpoint_concurrency", "route/r/rate", "route/r/client_rate"}));
  EXPECT_NE(set.Table().Process(), nullptr);
  EXPECT_NE(set.Table().ClusterRate("c"), nullptr);
  EXPECT_NE(set.Table().ClusterConcurrency("c"), nullptr);
  EXPECT_NE(set.Table().RouteRate("r"), nullptr);
  EXPECT_NE(set.Table().RouteClientRate("r"), nullptr);
  EXPECT_NE(set.Table().ClusterRate("c"), set.Table().ClusterRate("d"));
  EXPECT_EQ(set.Table().ClusterRate("none"), nullptr);
  EXPECT_EQ(set.Table().RouteRate("c"), nullptr);
  EXPECT_EQ(set.EndpointConcurrency("none"), limits::ConcurrencyOptions());
}

TEST_F(LimitSetTest, BeforeAnyConfigurationThereIsTheProcessAlone) {
  EXPECT_EQ(set.List().size(), 1u);
  EXPECT_NE(set.Table().Process(), nullptr);
  EXPECT_EQ(Refused({.name = "cluster/c/rate", .rate = 1}, ErrorKind::kNotFound), "no limit cluster/c/rate");
}

TEST_F(LimitSetTest, ALimitThatWasOffIsPutInForceByRpc) {
  set.Apply(config);
  const auto process = set.Table().Process();
  ConcurrencyLimiter::Ticket a, b;
  EXPECT_TRUE(Goes(a, process));
  EXPECT_FALSE(a.holding());  // there is no limit yet
  EXPECT_TRUE(SetMax("process/concurrency", 1).overridden);
  a.Drop();
  EXPECT_TRUE(Goes(a, process));
  EXPECT_FALSE(Goes(b, process));
  EXPECT_EQ(View("process/concurrency").in_use, 1u);

  const auto rate = set.Table().ClusterRate("c");
  EXPECT_EQ(Calls(rate), 1000);
  Set({.name = "cluster/c/rate", .rate = 1, .burst = 3, .queue_max = 0});
  EXPECT_EQ(Calls(rate), 3);
  const auto clients = set.Table().RouteClientRate("r");
  Set({.name = "route/r/client_rate", .rate = 1, .burst = 2, .queue_max = 0});
  EXPECT_EQ(Calls(clients->Get(7, clock.Now())), 2);
  EXPECT_EQ(View("route/r/client_rate").keys, 1u);
}

TEST_F(LimitSetTest, AChangeLeavesWhatItDoesNotName) {
  config.clusters[0].rate_limit = {.rate = 10, .burst = 20, .capped = true, .queue_max = 30};
  set.Apply(config);
  const LimitView view = SetRate("cluster/c/rate", 11);
  EXPECT_EQ(view.rate, 11);
  EXPECT_EQ(view.burst, 20u);
  EXPECT_TRUE(view.capped);
  EXPECT_EQ(view.queue_max, 30u);
  EXPECT_EQ(view.queue_time, std::chrono::milliseconds(200));
  EXPECT_TRUE(view.overridden);
  EXPECT_FALSE(SetRate("cluster/c/rate", 10).overridden);  // what is configured again
  Set({.name = "cluster/c/rate", .queue_time = std::chrono::seconds(1)});
  EXPECT_EQ(View("cluster/c/rate").queue_max, 30u);
  EXPECT_EQ(set.Table().ClusterRate("c")->queue_time(), std::chrono::seconds(1));
}

TEST_F(LimitSetTest, AChangeHoldsOverAReloadOfOtherThings) {
  config.concurrency.max = 5;
  config.routes[0].client_rate_limit.rate.rate = 5;
  set.Apply(config);
  const auto process = set.Table().Process();
  const auto clients = set.Table().RouteClientRate("r");
  SetMax("process/concurrency", 1);
  SetRate("route/r/client_rate", 3);
  config.clusters[0].concurrency.max = 7;
  config.routes.emplace_back().name = "new";
  set.Apply(config);
  EXPECT_EQ(View("process/concurrency").max, 1u);
  EXPECT_TRUE(View("process/concurrency").overridden);
  EXPECT_EQ(View("route/r/client_rate").rate, 3);
  EXPECT_EQ(View("cluster/c/concurrency").max, 7u);
  EXPECT_FALSE(View("cluster/c/concurrency").overridden);
  EXPECT_EQ(set.Table().Process(), process);
  EXPECT_EQ(set.Table().RouteClientRate("r"), clients);
  EXPECT_NE(set.Table().RouteRate("new"), nullptr);
}

TEST_F(LimitSetTest, AReloadWithAnotherConfigurationOfTheLimitDropsTheChange) {
  config.concurrency.max = 5;
  set.Apply(config);
  const auto process = set.Table().Process();
  ConcurrencyLimiter::Ticket tickets[3];
  SetMax("process/concurrency", 1);
  EXPECT_TRUE(Goes(tickets[0], process));
  EXPECT_FALSE(Goes(tickets[1], process));
  config.concurrency.max = 2;
  set.Apply(config);
  EXPECT_EQ(set.Table().Process(), process);  // and admitted calls stay counted
  EXPECT_EQ(View("process/concurrency").max, 2u);
  EXPECT_FALSE(View("process/concurrency").overridden);
  EXPECT_TRUE(Goes(tickets[1], process));
  EXPECT_FALSE(Goes(tickets[2], process));
}

TEST_F(LimitSetTest, AReloadDoesNotFillABucket) {
  config.clusters[0].rate_limit = {.rate = 1, .burst = 3, .queue_max = 0};
  set.Apply(config);
  EXPECT_EQ(Calls(set.Table().ClusterRate("c")), 3);
  config.clusters[1].rate_limit.rate = 4;
  set.Apply(config);
  EXPECT_EQ(Calls(set.Table().ClusterRate("c")), 0);
  SetRate("cluster/c/rate", 2);
  config.clusters[0].rate_limit.rate = 2;  // the file follows the RPC
  set.Apply(config);
  EXPECT_EQ(Calls(set.Table().ClusterRate("c")), 0);
  EXPECT_FALSE(View("cluster/c/rate").overridden);
  clock.Advance(std::chrono::seconds(1));
  EXPECT_EQ(Calls(set.Table().ClusterRate("c")), 2);
}

TEST_F(LimitSetTest, AResetBringsBackWhatIsConfiguredNow) {
  config.concurrency = {5, 10};
  config.routes[0].client_rate_limit.rate = {.rate = 5, .burst = 7};
  set.Apply(config);
  Set({.name = "process/concurrency", .max = 1, .queue_max = 2});
  Set({.name = "route/r/client_rate", .rate = 0, .burst = 1});
  LimitView view = Set({.name = "process/concurrency", .reset = true});
  EXPECT_EQ(view.max, 5u);
  EXPECT_EQ(view.queue_max, 10u);
  EXPECT_FALSE(view.overridden);
  view = Set({.name = "route/r/client_rate", .reset = true});
  EXPECT_EQ(view.rate, 5);
  EXPECT_EQ(view.burst, 7u);
  EXPECT_FALSE(view.overridden);
  EXPECT_FALSE(Set({.name = "process/concurrency", .reset = true}).overridden);  // twice is as good
}

TEST_F(LimitSetTest, ALimitThatGoesLetsAllPassAndIsForgotten) {
  config.clusters[0].concurrency.max = 1;
  config.clusters[0].rate_limit = {.rate = 1, .burst = 1, .queue_max = 0};
  config.routes[0].client_rate_limit.rate = {.rate = 1, .burst = 1, .queue_max = 0};
  set.Apply(config);
  const auto concurrency = set.Table().ClusterConcurrency("c");
  const auto rate = set.Table().ClusterRate("c");
  const auto client = set.Table().RouteClientRate("r")->Get(7, clock.Now());
  SetMax("cluster/c/concurrency", 1);
  ConcurrencyLimiter::Ticket a, b;
  EXPECT_TRUE(Goes(a, concurrency));
  EXPECT_FALSE(Goes(b, concurrency));
  EXPECT_EQ(Calls(rate), 1);
  EXPECT_EQ(Calls(client), 1);

  const auto cluster = config.clusters[0];
  config.clusters.erase(config.clusters.begin());
  config.routes.clear();
  set.Apply(config);
  EXPECT_TRUE(Goes(b, concurrency));
  EXPECT_EQ(Calls(rate), 1000);
  EXPECT_EQ(Calls(client), 1000);
  EXPECT_EQ(set.Table().ClusterRate("c"), nullptr);
  EXPECT_EQ(set.List().size(), 4u);
  a.Drop();

  config.clusters.push_back(cluster);  // another limit of the same name
  set.Apply(config);
  EXPECT_NE(set.Table().ClusterConcurrency("c"), concurrency);
  EXPECT_NE(set.Table().ClusterRate("c"), rate);
  EXPECT_EQ(Calls(set.Table().ClusterRate("c")), 1);
}

TEST_F(LimitSetTest, ARateThatBecomesCappedIsAnotherLimiter) {
  config.clusters[0].rate_limit = {.rate = 1, .burst = 2, .queue_max = 0};
  set.Apply(config);
  const auto old = set.Table().ClusterRate("c");
  EXPECT_EQ(Calls(old), 2);
  SetRate("cluster/c/rate", 3);
  config.clusters[0].rate_limit.capped = true;
  set.Apply(config);
  const auto capped = set.Table().ClusterRate("c");
  EXPECT_NE(capped, old);
  EXPECT_EQ(Calls(old), 1000);  // closed
  EXPECT_TRUE(View("cluster/c/rate").capped);
  EXPECT_EQ(View("cluster/c/rate").rate, 1);
  RateLimiter::Ticket ticket;
  EXPECT_EQ(ticket.Ask(*capped, clock.Now(), base::kNever).kind, Verdict::Kind::kGo);
  EXPECT_EQ(View("cluster/c/rate").in_use, 1u);
  // Off while it is capped, and back by RPC: still the same.
  config.clusters[0].rate_limit.rate = 0;
  set.Apply(config);
  SetRate("cluster/c/rate", 5);
  EXPECT_EQ(set.Table().ClusterRate("c"), capped);
}

TEST_F(LimitSetTest, OtherKeysOfClientsAreAnotherLimiter) {
  config.routes[0].client_rate_limit.rate.rate = 5;
  set.Apply(config);
  const auto first = set.Table().RouteClientRate("r");
  config.routes[0].client_rate_limit.rate.rate = 6;
  set.Apply(config);
  EXPECT_EQ(set.Table().RouteClientRate("r"), first);
  config.routes[0].client_rate_limit.metadata = "x-user";
  set.Apply(config);
  const auto second = set.Table().RouteClientRate("r");
  EXPECT_NE(second, first);
  config.routes[0].client_rate_limit.clients_max = 16;
  set.Apply(config);
  EXPECT_NE(set.Table().RouteClientRate("r"), second);
}

TEST_F(LimitSetTest, APlanThatIsDroppedChangesNothing) {
  config.clusters[0].rate_limit = {.rate = 1, .burst = 2, .queue_max = 0};
  config.clusters[0].concurrency.max = 1;
  set.Apply(config);
  const auto rate = set.Table().ClusterRate("c");
  const auto concurrency = set.Table().ClusterConcurrency("c");
  config.clusters[0].rate_limit = {.rate = 9, .burst = 9, .capped = true, .queue_max = 0};
  config.clusters[0].concurrency.max = 0;
  config.clusters.pop_back();
  {
    const LimitTable plan = set.MakePlan(config);
    EXPECT_NE(plan.ClusterRate("c"), rate);
    EXPECT_EQ(plan.ClusterConcurrency("c"), concurrency);
    EXPECT_EQ(plan.ClusterRate("d"), nullptr);
  }
  EXPECT_EQ(set.Table().ClusterRate("c"), rate);
  EXPECT_EQ(View("cluster/c/rate").rate, 1);
  EXPECT_EQ(Calls(rate), 2);
  ConcurrencyLimiter::Ticket a, b;
  EXPECT_TRUE(Goes(a, concurrency));
  EXPECT_FALSE(Goes(b, concurrency));
  EXPECT_NE(set.Table().ClusterRate("d"), nullptr);
}

TEST_F(LimitSetTest, AChangeBetweenPlanAndCommitCounts) {
  config.clusters[0].endpoint_concurrency.max = 5;
  set.Apply(config);
  config.clusters[1].concurrency.max = 4;
  LimitTable plan = set.MakePlan(config);
  EXPECT_EQ(plan.EndpointConcurrency("c").max, 5u);
  SetMax("process/concurrency", 1);
  SetMax("cluster/c/endpoint_concurrency", 2);
  SetMax("cluster/d/concurrency", 3);  // but the configuration of this one changes
  set.Commit(std::move(plan));
  EXPECT_EQ(View("process/concurrency").max, 1u);
  EXPECT_EQ(set.EndpointConcurrency("c").max, 2u);
  EXPECT_EQ(View("cluster/d/concurrency").max, 4u);
  ConcurrencyLimiter::Ticket a, b;
  EXPECT_TRUE(Goes(a, set.Table().Process()));
  EXPECT_FALSE(Goes(b, set.Table().Process()));
}

TEST_F(LimitSetTest, EndpointsAreToldAndAsked) {
  Strings told;
  set.SetHooks({.endpoint_use = [](const std::string& cluster) -> LimitSet::EndpointUse {
                  return cluster == "c" ? LimitSet::EndpointUse{3, 4} : LimitSet::EndpointUse{};
                },
                // Not under the set's lock: it is asked again.
                .endpoint_concurrency_changed =
                    [&](const std::string& cluster) {
                      told.push_back(cluster + " " + std::to_string(set.EndpointConcurrency(cluster).max));
                    }});
  config.clusters[0].endpoint_concurrency.max = 5;
  set.Apply(config);
  const LimitView view = SetMax("cluster/c/endpoint_concurrency", 9);
  EXPECT_EQ(view.max, 9u);
  EXPECT_EQ(view.waiting, 3u);
  EXPECT_EQ(view.in_use, 4u);
  SetMax("cluster/c/concurrency", 9);  // none of theirs
  set.Change({.name = "cluster/d/endpoint_concurrency", .rate = 1}).ok();
  EXPECT_EQ(told, (Strings{"c 9"}));
  Set({.name = "cluster/c/endpoint_concurrency", .reset = true});
  EXPECT_EQ(told, (Strings{"c 9", "c 5"}));
}

TEST_F(LimitSetTest, SaysWhatIsAllowed) {
  config.clusters[0].rate_limit = {.rate = 10, .burst = 20, .capped = true};
  set.Apply(config);
  const std::string rate = "cluster/d/rate", process = "process/concurrency";
  EXPECT_EQ(Refused({.name = rate}), "nothing to change");
  EXPECT_EQ(Refused({.name = rate, .rate = 1, .reset = true}), "reset goes with nothing else");
  EXPECT_EQ(Refused({.name = rate, .max = 1}),
            "cluster/d/rate is a rate: it has rate, burst, queue and queue_time, not max");
  EXPECT_EQ(Refused({.name = process, .rate = 1}),
            "process/concurrency has max, queue and queue_time, neither rate nor burst");
  for (double bad : {-1.0, 0.0009, 10'000'001.0, double(NAN), double(INFINITY)}) {
    EXPECT_TRUE(Refused({.name = rate, .rate = bad}).ends_with(" is neither 0 (no limit) nor in [0.001, 10000000]"));
  }
  EXPECT_EQ(Refused({.name = rate, .burst = 0}), "burst: 0 is not in [1, 10000000]");
  EXPECT_EQ(Refused({.name = rate, .burst = 10'000'001}), "burst: 10000001 is not in [1, 10000000]");
  EXPECT_EQ(Refused({.name = "cluster/c/rate", .burst = 1}),
            "cluster/c/rate is capped: burst must be in [2, 10000000]");
  EXPECT_EQ(Refused({.name = rate, .queue_max = 1'000'001}), "queue: 1000001 is not in [0, 1000000]");
  EXPECT_EQ(Refused({.name = rate, .queue_time = std::chrono::hours(2)}), "queue_time: 7200000 is not in [0, 3600000]");
  EXPECT_EQ(Refused({.name = process, .max = 10'000'001}), "max: 10000001 is not in [0, 10000000]");
  EXPECT_EQ(Refused({.name = process, .queue_max = 1'000'001}), "queue: 1000001 is not in [0, 1000000]");
  EXPECT_EQ(Refused({.name = "process/rate", .rate = 1}, ErrorKind::kNotFound), "no limit process/rate");
  // Good in part is refused whole.
  EXPECT_EQ(Refused({.name = rate, .rate = 7, .burst = 0}), "burst: 0 is not in [1, 10000000]");
  for (const LimitView& view : set.List()) EXPECT_FALSE(view.overridden) << view.name;
  // The ends of the ranges are allowed.
  for (double good : {0.0, 0.001, 1e7}) EXPECT_EQ(SetRate(rate, good).rate, good);
  Set({.name = rate, .burst = 10'000'000, .queue_max = 1'000'000});
  Set({.name = process, .max = 10'000'000, .queue_max = 0});
}

struct Call {
  sync::Event end;
  bool went = false;
};

// A waiter is suspended at its event and woken by the limiter; then it asks again.
runtime::Task<> RunCall(std::shared_ptr<ConcurrencyLimiter> limiter, Call& call) {
  ConcurrencyLimiter::Ticket ticket;
  Verdict verdict = ticket.Ask(*limiter, 1);
  while (verdict.kind == Verdict::Kind::kWait) {
    co_await call.end.Wait();
    verdict = ticket.Poll();
  }
  call.went = verdict.kind == Verdict::Kind::kGo;
  co_await call.end.Wait();
}

// A call in, another that waits: it goes when the limit is lifted, by RPC or by a reload, or its cluster is taken away.
TEST_F(LimitSetTest, AWaiterGoesWhenTheLimitGoes) {
  for (int how = 0; how < 3; ++how) {
    config.clusters.resize(1);
    config.clusters[0].concurrency.max = 1;
    set.Apply(config);
    test::ManualWorker worker;
    runtime::Worker::ScopedCurrentForTest current(worker.worker);
    Call first, second;
    worker.runtime.SpawnOn(worker.worker, RunCall(set.Table().ClusterConcurrency("c"), first));
    worker.runtime.SpawnOn(worker.worker, RunCall(set.Table().ClusterConcurrency("c"), second));
    worker.Run();
    EXPECT_TRUE(first.went);
    EXPECT_FALSE(second.went);
    EXPECT_EQ(View("cluster/c/concurrency").waiting, 1u);
    if (how == 0) SetMax("cluster/c/concurrency", 0);
    if (how == 1) config.clusters[0].concurrency.max = 0;
    if (how == 2) config.clusters.clear();
    if (how != 0) set.Apply(config);
    worker.Run();
    EXPECT_TRUE(second.went) << how;
    first.end.Set();
    second.end.Set();
    worker.Run();
    EXPECT_EQ(worker.runtime.LiveTasks(), 0u);
    config.clusters.resize(1);
    config.clusters[0].name = "c";
    Set({.name = how == 2 ? "process/concurrency" : "cluster/c/concurrency", .reset = true});
  }
}

// Reloads, changes and readers at once: nothing torn, and the last reload counts.
TEST_F(LimitSetTest, ThreadsMayDoEverythingAtOnce) {
  SetLogLevel(config::LogLevel::kWarn);  // a line for each change
  set.Apply(config);
  std::vector<std::jthread> threads;
  threads.emplace_back([this] {
    config::Config other = config;
    for (uint32_t i = 0; i < 200; ++i) {
      other.clusters[0].rate_limit.capped = i % 2 == 0;
      other.clusters[0].concurrency.max = i;
      other.routes[0].client_rate_limit.clients_max = 16 + i % 3;
      set.Apply(i % 3 == 0 ? config : other);
    }
    set.Apply(config);
  });
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([this] {
      for (uint32_t i = 0; i < 200; ++i) {
        EXPECT_TRUE(set.Change({.name = "cluster/c/rate", .rate = 1 + i % 5}).ok());
        EXPECT_TRUE(set.Change({.name = "cluster/c/endpoint_concurrency", .max = i}).ok());
        EXPECT_TRUE(set.Change({.name = "cluster/c/concurrency", .reset = true}).ok());
      }
    });
  }
  threads.emplace_back([this] {
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(set.List().size(), 9u);
      EXPECT_NE(set.Table().ClusterRate("c"), nullptr);
    }
  });
  threads.clear();
  set.Apply(config);
  EXPECT_EQ(View("cluster/c/concurrency").max, 0u);
  EXPECT_FALSE(View("cluster/c/rate").capped);
  SetLogLevel(config::LogLevel::kInfo);
}

}  // namespace
}  // namespace sluice::server
