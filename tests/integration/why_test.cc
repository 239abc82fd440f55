// `sluicectl why` and `top` beside real clients: each failure is explained by what it came from, without an access log.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "support/limit_checks.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using testing::HasSubstr;
using testing::Not;

class Why : public testing::Test {
 protected:
  void Start(ProxyConfig config) {
    proxy_ = std::make_unique<Proxy>(std::move(config));
    calls_ = std::make_unique<AsyncCalls>(proxy_->target());
  }
  static CallSpec Named(const std::string& request_id, std::chrono::milliseconds timeout) {
    CallSpec spec = Spec("x");
    spec.metadata.emplace_back("x-request-id", request_id);
    spec.metadata.emplace_back("x-key", "ann");
    spec.timeout = timeout;
    return spec;
  }
  // The client may hear of its deadline before the daemon has ended the call.
  std::string Explanation(const std::string& id) {
    Finished told{-1, ""};
    EXPECT_TRUE(WaitUntil([&] {
      told = Operator(*proxy_).Ctl({"why", id});
      return told.code == 0;
    })) << told.output;
    return told.output;
  }

  GateBackend backend_{"echo-1"};
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<AsyncCalls> calls_;
};

TEST_F(Why, ADeadlineAtALimit) {
  ProxyConfig config = To({&backend_});
  config.cluster.push_back("concurrency: {max: 1, queue_time: 0}");
  Start(std::move(config));
  backend_.Close();
  const AsyncCallPtr first = calls_->Start(Named("first", kForever));
  ASSERT_TRUE(WaitUntil([&] { return backend_.held() == 1; }));
  const AsyncCallPtr late = calls_->Run(Named("late", std::chrono::milliseconds(200)));
  EXPECT_EQ(late->status().error_code(), StatusCode::DEADLINE_EXCEEDED);
  const std::string told = Explanation("late");
  EXPECT_THAT(told, HasSubstr("failed with DEADLINE_EXCEEDED"));
  EXPECT_THAT(told, HasSubstr("ran out in the queue of the limit cluster/echo/concurrency"));
  EXPECT_THAT(told, HasSubstr("ms for the limit cluster/echo/concurrency"));
  EXPECT_THAT(told, HasSubstr("it was sent to no endpoint"));
  EXPECT_THAT(told, HasSubstr("it may be made again"));
  backend_.Open();
  Await({first});
  EXPECT_TRUE(first->status().ok()) << Describe(first->status());
  EXPECT_EQ(Operator(*proxy_).Ctl({"why", "first"}).code, 1);  // it has not failed
}

TEST_F(Why, DeadEndpointsWithTheirTries) {
  GateBackend dead_one("dead-1"), dead_two("dead-2");
  ProxyConfig config = To({&dead_one, &dead_two});
  dead_one.Kill();
  dead_two.Kill();
  Start(std::move(config));
  const AsyncCallPtr call = calls_->Run(Named("dead", kForever));
  EXPECT_EQ(call->status().error_code(), StatusCode::UNAVAILABLE);
  const std::string id = call->reply().Trailer("sluice-call-id");
  ASSERT_NE(id, "");
  const std::string told = Explanation(id);
  EXPECT_THAT(told, HasSubstr("failed with UNAVAILABLE"));
  EXPECT_THAT(told, HasSubstr("The endpoint could not be connected to"));
  EXPECT_THAT(told, HasSubstr("at dead-1: connect_failed after "));
  EXPECT_THAT(told, HasSubstr("at dead-2: connect_failed after "));
  EXPECT_THAT(told, HasSubstr("request id  dead\n"));
  EXPECT_THAT(told, HasSubstr("reason      connect_failed"));
}

TEST_F(Why, AHungBackend) {
  Start(To({&backend_}));
  backend_.Close();
  const AsyncCallPtr call = calls_->Run(Named("hung", std::chrono::milliseconds(200)));
  EXPECT_EQ(call->status().error_code(), StatusCode::DEADLINE_EXCEEDED);
  const std::string told = Explanation("hung");
  EXPECT_THAT(told, HasSubstr("Endpoint echo-1 had the request for "));
  EXPECT_THAT(told, HasSubstr("did not answer"));
  EXPECT_THAT(told, HasSubstr("no response began"));
  EXPECT_THAT(told, HasSubstr("processed   maybe"));
  EXPECT_THAT(told, Not(HasSubstr("waited")));
  backend_.Open();
}

// What is told of a call is what then becomes of one.
TEST_F(Why, ExplainSaysWhereCallsGo) {
  GateBackend two("echo-2"), three("echo-3");
  ProxyConfig config = To({&backend_, &two, &three});
  config.route.push_back("access: [{action: deny, metadata: [{name: x-tenant, exact: red}]}, {action: allow}]");
  Start(std::move(config));
  Operator ops(*proxy_);
  std::set<std::string> seen;
  for (int i = 0; i < 8; ++i) {
    CallSpec spec = Spec("x");
    spec.metadata = {{"x-key", "user-" + std::to_string(i)}};
    const AsyncCallPtr call = calls_->Run(spec);
    ASSERT_TRUE(call->status().ok()) << Describe(call->status());
    const std::string backend = call->reply().messages.at(0).backend();
    const Finished told = ops.Ctl({"explain", "sluice.echo.v1.Echo/Unary", "-H", "x-key=user-" + std::to_string(i)});
    EXPECT_THAT(told.output, HasSubstr("Route main takes it to cluster echo, endpoint " + backend + "\n"));
    seen.insert(backend);
  }
  EXPECT_GT(seen.size(), 1u);

  CallSpec denied = Spec("x");
  denied.metadata = {{"x-tenant", "red"}};
  const AsyncCallPtr call = calls_->Run(denied);
  const Finished told = ops.Ctl({"explain", "sluice.echo.v1.Echo/Unary", "-H", "x-tenant=red"});
  EXPECT_EQ(call->status().error_code(), StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(
      told.output,
      HasSubstr("It is refused with PERMISSION_DENIED, access_denied: " + call->status().error_message() + "\n"));
  EXPECT_THAT(ops.Ctl({"routes"}).output, HasSubstr("main"));
}

TEST_F(Why, TopShowsTheTrafficAndTheHotKey) {
  ProxyConfig config = To({&backend_});
  config.top.push_back("insight: {hot_keys: shown}");
  config.cluster.push_back("concurrency: {max: 50, queue_time: 0}");
  Start(std::move(config));
  // Samples are random: calls go on until one was taken.
  std::string table;
  EXPECT_TRUE(WaitUntil([&] {
    for (int i = 0; i < 200; ++i) calls_->Run(Named("r", kForever));
    table = Operator(*proxy_).Ctl({"top", "--once", "--interval", "100ms"}).output;
    return table.find("HOT KEY") != std::string::npos;
  })) << table;
  EXPECT_THAT(table, HasSubstr("echo-1"));
  EXPECT_THAT(table, HasSubstr("cluster/echo/concurrency"));
  EXPECT_THAT(table, testing::ContainsRegex("ann +echo +100% +9[0-9].[0-9]% +echo-1"));
}

}  // namespace
}  // namespace sluice::integration
