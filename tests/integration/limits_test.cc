// Limits of rate and concurrency with real gRPC clients and servers: which bounds hold while a backend stalls, what
// waiting and refused calls are told, and that no permit or token is lost whatever happens meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>

#include "support/async_calls.h"
#include "support/backends.h"
#include "support/gate_backend.h"
#include "support/limit_checks.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;

struct BoundCase {
  const char* name;
  // One of them, by where it stands.
  const char *top, *cluster, *route;
  const char *limit, *reason;
};
void PrintTo(const BoundCase& bound, std::ostream* out) { *out << bound.name; }

constexpr size_t kMax = 16, kQueue = 64;
const BoundCase kBounds[] = {
    {"Process", "concurrency: {max: 16, queue: 64, queue_time: 0}", "", "", "process/concurrency",
     "concurrency_limited"},
    {"Cluster", "", "concurrency: {max: 16, queue: 64, queue_time: 0}", "", "cluster/echo/concurrency",
     "concurrency_limited"},
    {"Endpoint", "", "endpoint_concurrency: {max: 16, queue: 64, queue_time: 0}", "",
     "cluster/echo/endpoint_concurrency", "concurrency_limited"},
    {"CappedClusterRate", "", "rate_limit: {rate: 5000, burst: 16, capped: true, queue: 64, queue_time: 0}", "",
     "cluster/echo/rate", "rate_limited"},
    {"CappedRouteRate", "", "", "rate_limit: {rate: 5000, burst: 16, capped: true, queue: 64, queue_time: 0}",
     "route/main/rate", "rate_limited"},
};

class ABound : public testing::TestWithParam<BoundCase> {
 protected:
  ABound() {
    ProxyConfig config = To({&backend_});
    if (*GetParam().top) config.top.push_back(GetParam().top);
    if (*GetParam().cluster) config.cluster.push_back(GetParam().cluster);
    if (*GetParam().route) config.route.push_back(GetParam().route);
    proxy_ = std::make_unique<Proxy>(config);
  }
  // `at` calls wait at the backend's gate and `waiting` in the queue.
  bool Stands(size_t at, size_t waiting) {
    return WaitUntil([&] { return backend_.held() == at && operator_().Waiting(GetParam().limit) == waiting; });
  }
  std::string State() { return std::to_string(backend_.held()) + " at the backend; " + operator_().Limits(); }
  Operator operator_() { return Operator(*proxy_); }

  GateBackend backend_{"echo-1"};
  std::unique_ptr<Proxy> proxy_;
};

// The backend stalls under load for as long as calls with a deadline of 2 s wait.
TEST_P(ABound, StopsWithAStalledBackendAndRecoversWithIt) {
  constexpr size_t kLoad = 24;
  AsyncCalls calls(proxy_->target());
  ClosedLoop loop(calls, Spec("load"), kLoad);
  ASSERT_TRUE(WaitUntil([&] { return loop.ok() >= 200; }));

  backend_.Close();
  ASSERT_TRUE(Stands(kMax, kLoad - kMax)) << State();
  const uint64_t arrived = backend_.arrived();

  // As many more as may wait, with a deadline of 2 s; then calls for which the queue has no room.
  CallSpec timed = Spec("timed");
  timed.timeout = seconds(2);
  const auto doomed = calls.Start(timed, kQueue - (kLoad - kMax));
  ASSERT_TRUE(Stands(kMax, kQueue)) << State();
  const auto refused = calls.Start(Spec("refused"), 10);
  Await(refused);
  for (const AsyncCallPtr& call : refused) ExpectRefused(*call, GetParam().reason, GetParam().limit);

  Await(doomed);
  milliseconds shortest = milliseconds::max(), longest{0};
  for (const AsyncCallPtr& call : doomed) {
    // A call is also refused when less of its deadline is left than the service lately took, which may be 1 ms here.
    if (call->status().error_code() != StatusCode::DEADLINE_EXCEEDED) {
      ExpectRefused(*call, "deadline_too_near", GetParam().limit);
      EXPECT_THAT(call->status().error_message(), HasSubstr("of its deadline"));
    }
    shortest = std::min(shortest, call->took());
    longest = std::max(longest, call->took());
  }
  // The client's clock and the proxy's are read a moment apart.
  EXPECT_GE(shortest, milliseconds(1950));
  // They have left the proxy's queue too, not only their client.
  ASSERT_TRUE(Stands(kMax, kLoad - kMax)) << State();
  EXPECT_EQ(backend_.arrived(), arrived) << "no call was let in while the backend stood still";
  EXPECT_EQ(operator_().InUse(GetParam().limit), kMax);

  const SteadyClock::time_point opened = SteadyClock::now();
  backend_.Open();
  constexpr size_t kRecovered = 100;
  ASSERT_TRUE(WaitUntil([&] { return backend_.arrived() >= arrived + kRecovered; })) << State();
  const auto arrivals = backend_.arrivals();
  const double first = Millis(arrivals[arrived].at - opened);
  const double hundredth = Millis(arrivals[arrived + kRecovered - 1].at - opened);
  std::cout << "[  figures ] " << GetParam().name << ": first call let in " << first
            << " ms after the stall, the 100th after " << hundredth << " ms; deadline of 2000 ms ended after "
            << shortest.count() << ".." << longest.count() << " ms\n";
  EXPECT_LT(first, 2000) << "100 ms are promised; the machine may be busy";
  loop.Stop();
  EXPECT_THAT(loop.failures(), IsEmpty());
  EXPECT_EQ(loop.refused(), 0u);
  EXPECT_LE(backend_.peak(), kMax);
  EXPECT_TRUE(WaitUntil([&] { return operator_().AllGivenBack(); })) << State();

  // No permit and no token was lost, and none was made: exactly as many go again.
  backend_.Close();
  const auto again = calls.Start(Spec("again"), kMax + 3);
  EXPECT_TRUE(Stands(kMax, 3)) << State();
  backend_.Open();
  Await(again);
  EXPECT_EQ(Ended(again, StatusCode::OK), again.size());
  EXPECT_LE(backend_.peak(), kMax);
}

// Clients cancel their calls in the queue, in the backend, and while the proxy's response is on its way.
TEST_P(ABound, LosesNothingToClientsThatGoAway) {
  AsyncCalls calls(proxy_->target());
  backend_.Close();
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    auto going = calls.Start(Spec("going"), kMax + 20);
    ASSERT_TRUE(Stands(kMax, 20)) << State();
    for (size_t i = round % 3; i < going.size(); i += 3) going[i]->Cancel();
    if (round % 2 == 0) backend_.Release(kMax / 2);
    for (size_t i = (round + 1) % 3; i < going.size(); i += 3) going[i]->Cancel();
    backend_.Open();
    Await(going);
    backend_.Close();
    for (const AsyncCallPtr& call : going) {
      EXPECT_THAT(call->status().error_code(), testing::AnyOf(StatusCode::OK, StatusCode::CANCELLED))
          << Describe(call->status());
    }
    ASSERT_TRUE(WaitUntil([&] { return operator_().AllGivenBack(); })) << State();
  }
  const auto again = calls.Start(Spec("again"), kMax + 3);
  EXPECT_TRUE(Stands(kMax, 3)) << State();
  backend_.Open();
  Await(again);
}

// A connection ends whose calls are in the queue and in the backend.
TEST_P(ABound, LosesNothingToAConnectionThatEnds) {
  AsyncCalls stays(proxy_->target());
  backend_.Close();
  {
    AsyncCalls leaves(proxy_->target());
    leaves.Start(Spec("leaves"), kMax + 20);
    ASSERT_TRUE(Stands(kMax, 20)) << State();
  }
  ASSERT_TRUE(WaitUntil([&] { return operator_().AllGivenBack(); })) << State();
  const auto again = stays.Start(Spec("again"), kMax + 3);
  EXPECT_TRUE(Stands(kMax, 3)) << State();
  backend_.Open();
  Await(again);
  EXPECT_EQ(Ended(again, StatusCode::OK), again.size());
}

// The endpoint dies with all its calls. The waiting ones find a cluster without an endpoint.
TEST_P(ABound, LosesNothingToABackendThatDies) {
  AsyncCalls calls(proxy_->target());
  backend_.Close();
  const auto made = calls.Start(Spec("x"), kMax + 20);
  ASSERT_TRUE(Stands(kMax, 20)) << State();
  backend_.Kill();
  Await(made);
  for (const AsyncCallPtr& call : made) {
    EXPECT_EQ(call->status().error_code(), StatusCode::UNAVAILABLE) << Describe(call->status());
  }
  EXPECT_TRUE(WaitUntil([&] { return operator_().AllGivenBack(); })) << State();
}

TEST_P(ABound, EndsItsQueueWhenTheProxyStops) {
  AsyncCalls calls(proxy_->target());
  backend_.Close();
  const auto made = calls.Start(Spec("x"), kMax + 20);
  ASSERT_TRUE(Stands(kMax, 20)) << State();
  proxy_->server().Stop();
  ASSERT_TRUE(proxy_->server().WaitStopped(kLongWait));
  Await(made);
  for (const AsyncCallPtr& call : made) {
    EXPECT_EQ(call->status().error_code(), StatusCode::UNAVAILABLE) << Describe(call->status());
    EXPECT_EQ(call->reply().Trailer("sluice-reason"), "draining");
  }
}

INSTANTIATE_TEST_SUITE_P(Bounds, ABound, testing::ValuesIn(kBounds),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(ARateLimit, RefusesAtOnceWhatCouldNotGoInTime) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {"rate_limit: {rate: 0.01, burst: 1, queue_time: 0}"};
  Proxy proxy(config);
  AsyncCalls calls(proxy.target());
  EXPECT_TRUE(calls.Run(Spec("first"))->status().ok());
  // The next token is 100 s away.
  const AsyncCallPtr late = calls.Run(Spec("late"));
  ExpectRefused(*late, "deadline_too_near", "cluster/echo/rate");
  EXPECT_GT(std::atoi(late->reply().Trailer("grpc-retry-pushback-ms").c_str()), 10000);
  EXPECT_EQ(backend.arrived(), 1u);
}

TEST(ARateLimit, TakesBackTheTokenOfACallThatNeverWent) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {"concurrency: {max: 1, queue_time: 0}"};
  config.route.push_back("rate_limit: {rate: 0.001, burst: 2, queue_time: 0}");
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  backend.Close();
  CallSpec spec = Spec("x");
  spec.timeout = kForever;
  const AsyncCallPtr goes = calls.Start(spec);
  ASSERT_TRUE(WaitUntil([&] { return backend.held() == 1; }));
  for (int i = 0; i < 3; ++i) {
    const AsyncCallPtr leaves = calls.Start(spec);
    ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/concurrency") == 1; })) << person.Limits();
    leaves->Cancel();
    ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/concurrency") == 0; })) << person.Limits();
  }
  backend.Open();
  Await({goes});
}

TEST(ARateLimit, ChangedByTheOperatorLetsWaitingCallsGoAtOnce) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {"rate_limit: {rate: 0.001, burst: 1, queue_time: 0}"};
  config.route.push_back("rate_limit: {rate: 0.001, burst: 2, queue_time: 0}");
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  CallSpec spec = Spec("waits");
  spec.timeout = kForever;
  const auto waiting = calls.Start(spec, 20);
  // The route's bucket lets two go, the cluster's one of them.
  ASSERT_TRUE(WaitUntil([&] {
    return person.Waiting("route/main/rate") == 18 && person.Waiting("cluster/echo/rate") == 1 && Done(waiting) == 1;
  })) << person.Limits();

  person.SetRate("route/main/rate", 1e6, 100);
  ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/rate") == 19; })) << person.Limits();
  EXPECT_TRUE(person.Limit("route/main/rate").overridden());
  person.SetRate("cluster/echo/rate", 0, 1);  // no limit
  Await(waiting);
  EXPECT_EQ(Ended(waiting, StatusCode::OK), waiting.size());
  person.Reset("cluster/echo/rate");
  EXPECT_FALSE(person.Limit("cluster/echo/rate").overridden());
  EXPECT_DOUBLE_EQ(person.Limit("cluster/echo/rate").rate().rate(), 0.001);
}

TEST(AConcurrencyLimit, ChangedByTheOperatorAppliesToWaitingCalls) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {"concurrency: {max: 2, queue: 100, queue_time: 0}",
                    "endpoint_concurrency: {max: 20, queue: 100, queue_time: 0}"};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  backend.Close();
  const auto waiting = calls.Start(Spec("waits"), 30);
  ASSERT_TRUE(WaitUntil([&] { return backend.held() == 2 && person.Waiting("cluster/echo/concurrency") == 28; }));
  person.SetMax("cluster/echo/concurrency", 5);
  ASSERT_TRUE(WaitUntil([&] { return backend.held() == 5; })) << person.Limits();
  person.SetMax("cluster/echo/concurrency", 0);
  ASSERT_TRUE(WaitUntil([&] {
    return backend.held() == 20 && person.Waiting("cluster/echo/endpoint_concurrency") == 10;
  })) << person.Limits();
  person.SetMax("cluster/echo/endpoint_concurrency", 25);
  ASSERT_TRUE(WaitUntil([&] { return backend.held() == 25; })) << person.Limits();
  // A smaller one takes effect as calls end.
  person.SetMax("cluster/echo/endpoint_concurrency", 3);
  backend.Release(22);
  ASSERT_TRUE(WaitUntil([&] { return Done(waiting) == 22; }));
  EXPECT_TRUE(WaitUntil([&] { return person.InUse("cluster/echo/endpoint_concurrency") == 3; })) << person.Limits();
  EXPECT_EQ(backend.arrived(), 25u);
  EXPECT_EQ(backend.held(), 3u);
  backend.Open();
  Await(waiting);
  EXPECT_EQ(Ended(waiting, StatusCode::OK), waiting.size());
  EXPECT_TRUE(WaitUntil([&] { return person.AllGivenBack(); })) << person.Limits();
}

TEST(AConcurrencyLimit, IsHeldByAStreamForAllItsLife) {
  Backends backends(1);
  ProxyConfig config;
  config.endpoints = backends.endpoints();
  config.cluster = {"concurrency: {max: 1, queue_time: 0}"};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  grpc::ClientContext context;
  auto stream = calls.stub()->BidiStream(&context);
  echo::v1::EchoReply reply;
  ASSERT_TRUE(stream->Write({}) && stream->Read(&reply));
  const AsyncCallPtr waits = calls.Start(Spec("x"));
  ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/concurrency") == 1; }));
  ASSERT_TRUE(stream->Write({}) && stream->Read(&reply));
  EXPECT_EQ(backends.calls(), 1u);
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  Await({waits});
  EXPECT_TRUE(waits->status().ok());
  EXPECT_TRUE(WaitUntil([&] { return person.AllGivenBack(); })) << person.Limits();
}

TEST(AClientRateLimit, HoldsForEachClientByItself) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.route.push_back("client_rate_limit: {by: {metadata: x-client}, rate: 0.01, burst: 5, queue: 0}");
  Proxy proxy(config);
  AsyncCalls calls(proxy.target());
  // Without the metadata: one client of its own.
  for (const std::string client : {"a", "b", ""}) {
    SCOPED_TRACE(client);
    const auto made = calls.Start(Spec("x", client), 20);
    Await(made);
    EXPECT_EQ(Ended(made, StatusCode::OK), 5u);
    for (const AsyncCallPtr& call : made) {
      if (!call->status().ok()) ExpectRefused(*call, "rate_limited", "route/main/client_rate");
    }
  }
  EXPECT_EQ(Operator(proxy).Limit("route/main/client_rate").clients(), 3u);
  EXPECT_EQ(backend.arrived(), 15u);
}

TEST(AClientRateLimit, ByPeerCountsAllConnectionsOfAHostAsOne) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.route.push_back("client_rate_limit: {by: peer, rate: 0.01, burst: 5, queue: 0}");
  Proxy proxy(config);
  AsyncCalls one(proxy.target()), another(proxy.target());
  auto made = one.Start(Spec("x"), 4);
  Await(made);
  EXPECT_EQ(Ended(made, StatusCode::OK), 4u);
  made = another.Start(Spec("x"), 4);
  Await(made);
  EXPECT_EQ(Ended(made, StatusCode::OK), 1u);
}

TEST(AFullEndpoint, IsPassedOverForTheNextOnTheRing) {
  GateBackend first("echo-1"), second("echo-2"), third("echo-3");
  ProxyConfig config = To({&first, &second, &third});
  config.cluster = {"endpoint_concurrency: {max: 2, queue: 4, queue_time: 0}"};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  std::vector<GateBackend*> backends{&first, &second, &third};
  for (GateBackend* backend : backends) backend->Close();
  CallSpec spec = Spec("x");
  spec.metadata.emplace_back("x-key", "one key");
  std::vector<AsyncCallPtr> made;
  std::vector<GateBackend*> order;
  for (size_t i = 0; i < 6; ++i) {
    made.push_back(calls.Start(spec));
    ASSERT_TRUE(WaitUntil([&] { return first.held() + second.held() + third.held() == i + 1; })) << person.Limits();
    for (GateBackend* backend : backends) {
      if (backend->held() == 1 && std::find(order.begin(), order.end(), backend) == order.end())
        order.push_back(backend);
    }
    // The endpoints are filled one after the other.
    ASSERT_EQ(order.size(), i / 2 + 1);
    EXPECT_EQ(order.back()->held(), i % 2 + 1);
  }
  // All endpoints are full: the call waits for the key's own one.
  const auto waiting = calls.Start(spec, 4);
  ASSERT_TRUE(WaitUntil([&] { return person.Waiting("cluster/echo/endpoint_concurrency") == 4; })) << person.Limits();
  ExpectRefused(*calls.Run(spec), "concurrency_limited", "cluster/echo/endpoint_concurrency");
  for (size_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(WaitUntil([&] { return order[0]->held() == 2; }));
    order[0]->Release(1);
  }
  ASSERT_TRUE(WaitUntil([&] { return order[0]->arrived() == 6; })) << person.Limits();
  EXPECT_EQ(order[1]->arrived(), 2u);
  EXPECT_EQ(order[2]->arrived(), 2u);
  for (GateBackend* backend : backends) backend->Open();
  Await(made);
  Await(waiting);
  EXPECT_EQ(Ended(made, StatusCode::OK) + Ended(waiting, StatusCode::OK), 10u);
  EXPECT_TRUE(WaitUntil([&] { return person.AllGivenBack(); })) << person.Limits();
}

TEST(AFullEndpoint, ThatIsRemovedSendsItsQueueElsewhere) {
  GateBackend first("echo-1"), second("echo-2");
  ProxyConfig config = To({&first, &second});
  config.cluster = {"endpoint_concurrency: {max: 2, queue: 10, queue_time: 0}"};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  first.Close();
  second.Close();
  CallSpec spec = Spec("x");
  spec.metadata.emplace_back("x-key", "one key");
  std::vector<AsyncCallPtr> made{calls.Start(spec)};
  ASSERT_TRUE(WaitUntil([&] { return first.held() + second.held() == 1; }));
  GateBackend &own = first.held() == 1 ? first : second, &next = first.held() == 1 ? second : first;
  for (AsyncCallPtr& call : calls.Start(spec, 8)) made.push_back(std::move(call));
  ASSERT_TRUE(WaitUntil([&] {
    return own.held() == 2 && next.held() == 2 && person.Waiting("cluster/echo/endpoint_concurrency") == 5;
  })) << person.Limits();
  grpc::ClientContext context;
  admin::v1::ChangeEndpointsRequest change;
  change.set_cluster("echo");
  change.set_kind(admin::v1::ChangeEndpointsRequest::KIND_REMOVE);
  change.add_endpoints()->set_name(own.name());
  admin::v1::ChangeEndpointsResponse response;
  const grpc::Status status = proxy.admin().ChangeEndpoints(&context, change, &response);
  ASSERT_TRUE(status.ok()) << Describe(status);
  next.Open();
  EXPECT_TRUE(WaitUntil([&] { return Done(made) == 7; })) << Done(made) << "\n" << person.Limits();
  EXPECT_EQ(own.held(), 2u);
  own.Open();
  Await(made);
  EXPECT_EQ(Ended(made, StatusCode::OK), made.size());
  EXPECT_EQ(own.arrived(), 2u);
  EXPECT_TRUE(WaitUntil([&] { return person.AllGivenBack(); })) << person.Limits();
}

// Calls wait while a reload takes their cluster away and sends its calls elsewhere. None of them fails.
class ARemovedCluster : public testing::TestWithParam<const char*> {};

TEST_P(ARemovedCluster, LetsTheCallsThatWaitForItGo) {
  GateBackend backend("echo-1");
  ProxyConfig config = To({&backend});
  config.cluster = {GetParam()};
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls calls(proxy.target());
  backend.Close();
  CallSpec spec = Spec("x");
  spec.timeout = kForever;
  const auto waiting = calls.Start(spec, 12);
  ASSERT_TRUE(WaitUntil([&] {
    return backend.held() == 2 && person.Waiting("cluster/echo/rate") + person.Waiting("cluster/echo/concurrency") +
                                          person.Waiting("cluster/echo/endpoint_concurrency") ==
                                      10;
  })) << person.Limits();

  // The same file with the cluster under another name and without limits.
  GateBackend other("other-1");
  ProxyConfig without = To({&other});
  proxy.Rewrite(without);
  std::string yaml = proxy.dir().Read("sluice.yaml");
  for (const std::string key : {"- name: echo\n", "- cluster: echo\n"}) {
    const size_t at = yaml.find(key);
    ASSERT_NE(at, std::string::npos);
    yaml.replace(at + key.size() - 5, 4, "other");
  }
  proxy.dir().Write("sluice.yaml", yaml);
  EXPECT_THAT(person.Reload(), IsEmpty());
  const AsyncCallPtr elsewhere = calls.Run(Spec("x"));
  ASSERT_TRUE(elsewhere->status().ok()) << Describe(elsewhere->status());
  EXPECT_EQ(elsewhere->reply().messages[0].backend(), "other-1");

  // Though calls of the removed cluster are still under way at its endpoint.
  EXPECT_TRUE(WaitUntil([&] { return Done(waiting) == 10; })) << Done(waiting);
  backend.Open();
  Await(waiting);
  for (const AsyncCallPtr& call : waiting) EXPECT_TRUE(call->status().ok()) << Describe(call->status());
  EXPECT_EQ(backend.arrived(), 2u);
  EXPECT_EQ(other.arrived(), 11u);
}

INSTANTIATE_TEST_SUITE_P(Waiting, ARemovedCluster,
                         testing::Values("rate_limit: {rate: 0.001, burst: 2, queue_time: 0}",
                                         "concurrency: {max: 2, queue: 100, queue_time: 0}",
                                         "endpoint_concurrency: {max: 2, queue: 100, queue_time: 0}",
                                         "rate_limit: {rate: 1000, burst: 2, capped: true, queue_time: 0}"));

// Every reload has other limits, some have none, and a rate is capped or not.
TEST(AReload, ThatChangesLimitsUnderLoadLosesNothing) {
  GateBackend first("echo-1"), second("echo-2");
  ProxyConfig config = To({&first, &second});
  Proxy proxy(config);
  Operator person(proxy);
  AsyncCalls a(proxy.target()), b(proxy.target());
  ClosedLoop some(a, Spec("x", "a"), 16), more(b, Spec("x", "b"), 16);
  for (int i = 0; i < 60; ++i) {
    const auto max = [&](int salt) { return std::to_string((i * 7 + salt) % 5 == 0 ? 0 : 1 + (i * 5 + salt) % 9); };
    const std::string burst = std::to_string(2 + i % 7);
    config.top = {"workers: 2", "concurrency: {max: " + max(1) + ", queue: 1000, queue_time: 0}"};
    config.cluster = {
        "concurrency: {max: " + max(2) + ", queue: 1000, queue_time: 0}",
        "endpoint_concurrency: {max: " + max(3) + ", queue: 1000, queue_time: 0}",
        "rate_limit: {rate: 20000, burst: " + burst + ", capped: " + (i % 2 ? "true" : "false") + ", queue_time: 0}"};
    config.route = {"name: main", "rate_limit: {rate: " + std::string(i % 3 ? "30000" : "0") + ", burst: " + burst +
                                      ", capped: " + (i % 4 < 2 ? "true" : "false") + ", queue_time: 0}"};
    if (i % 5 < 2)
      config.route.push_back("client_rate_limit: {by: peer, rate: 20000, burst: " + burst + ", queue_time: 0}");
    const uint64_t before = some.ok() + more.ok();
    person.ReloadWith(config);
    ASSERT_TRUE(WaitUntil([&] { return some.ok() + more.ok() >= before + 40; })) << "reload " << i << "\n"
                                                                                 << person.Limits();
  }
  some.Stop();
  more.Stop();
  EXPECT_THAT(some.failures(), IsEmpty());
  EXPECT_THAT(more.failures(), IsEmpty());
  EXPECT_EQ(some.refused() + more.refused(), 0u);
  EXPECT_TRUE(WaitUntil([&] { return person.AllGivenBack(); })) << person.Limits();
}

}  // namespace
}  // namespace sluice::integration
