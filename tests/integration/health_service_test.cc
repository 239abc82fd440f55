// Endpoints with gRPC C++'s own health service: Sluice asks it by Watch and by Check, and calls follow what it says.
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "support/echo_call.h"
#include "support/gate_backend.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using Names = std::set<std::string>;

constexpr char kService[] = "sluice.echo.v1.Echo";

class HealthService : public testing::TestWithParam<std::string> {
 protected:
  HealthService() {
    grpc::EnableDefaultHealthCheckService(true);
    for (size_t i = 0; i < backends_.size(); ++i) {
      backends_[i] = std::make_unique<GateBackend>("e" + std::to_string(i));
      config_.endpoints.push_back(backends_[i]->endpoint());
    }
    config_.cluster = {"health: {mode: " + GetParam() + ", service: " + kService + ", interval: 1s, fall: 1, rise: 1}",
                       "slow_start: {window: 0s}"};
  }
  void Start() {
    proxy_ = std::make_unique<Proxy>(config_);
    stub_ = echo::v1::Echo::NewStub(Connect(proxy_->target()));
  }
  void Say(size_t i, bool serving) { backends_[i]->health()->SetServingStatus(kService, serving); }
  // As `sluicectl endpoints --why` shows it.
  std::vector<admin::v1::Health> Shown() {
    grpc::ClientContext context;
    admin::v1::ListClustersResponse response;
    EXPECT_TRUE(proxy_->admin().ListClusters(&context, {}, &response).ok());
    std::vector<admin::v1::Health> shown;
    for (const auto& endpoint : response.clusters(0).endpoints()) shown.push_back(endpoint.health());
    return shown;
  }
  bool AllAnswer() {
    return WaitUntil([&] {
      bool all = true;
      for (const admin::v1::Health& health : Shown()) all &= health.health_service() == GetParam() + ": SERVING";
      return all;
    });
  }
  bool Becomes(const std::vector<std::string>& states) {
    return WaitUntil([&] {
      std::vector<std::string> now;
      for (const admin::v1::Health& health : Shown()) now.push_back(health.state());
      return now == states;
    });
  }
  // The backends that answer calls with many keys, none of which fails.
  Names Answering() {
    Names names;
    for (int key = 0; key < 60; ++key) {
      grpc::ClientContext context;
      context.AddMetadata("x-key", "key-" + std::to_string(key));
      const Reply reply = Call(stub_.get(), Kind::kUnary, &context, {});
      EXPECT_TRUE(reply.status.ok()) << reply.status.error_message();
      if (!reply.messages.empty()) names.insert(reply.messages[0].backend());
    }
    return names;
  }

  std::array<std::unique_ptr<GateBackend>, 3> backends_;
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

TEST_P(HealthService, CallsFollowWhatItSays) {
  for (size_t i = 0; i < 3; ++i) Say(i, true);
  Start();
  ASSERT_TRUE(AllAnswer());
  EXPECT_EQ(Answering(), (Names{"e0", "e1", "e2"}));
  Say(0, false);
  ASSERT_TRUE(Becomes({"not_serving", "up", "up"}));
  EXPECT_NE(Shown()[0].why().find("NOT_SERVING"), std::string::npos) << Shown()[0].why();
  EXPECT_EQ(Answering(), (Names{"e1", "e2"}));
  Say(0, true);
  ASSERT_TRUE(Becomes({"up", "up", "up"}));
  EXPECT_EQ(Answering(), (Names{"e0", "e1", "e2"}));
}

// Its Watch answers SERVICE_UNKNOWN and goes on, its Check ends with NOT_FOUND.
TEST_P(HealthService, AServiceThatItDoesNotKnowDoesNotServe) {
  Say(0, true);
  Say(1, true);
  Start();
  ASSERT_TRUE(Becomes({"up", "up", "not_serving"}));
  EXPECT_EQ(Answering(), (Names{"e0", "e1"}));
  Say(2, true);
  ASSERT_TRUE(Becomes({"up", "up", "up"}));
}

// As a server does that is about to leave.
TEST_P(HealthService, ItsShutdownIsSeen) {
  for (size_t i = 0; i < 3; ++i) Say(i, true);
  Start();
  ASSERT_TRUE(AllAnswer());
  backends_[1]->health()->Shutdown();
  ASSERT_TRUE(Becomes({"up", "not_serving", "up"}));
  EXPECT_EQ(Answering(), (Names{"e0", "e2"}));
}

// The health service may be what is wrong.
TEST_P(HealthService, WhereNoneServesAllGetCalls) {
  for (size_t i = 0; i < 3; ++i) Say(i, false);
  Start();
  ASSERT_TRUE(Becomes({"not_serving", "not_serving", "not_serving"}));
  EXPECT_EQ(Answering(), (Names{"e0", "e1", "e2"}));
}

TEST_P(HealthService, AServerWithoutItServes) {
  for (size_t i = 0; i < 3; ++i) Say(i, true);
  grpc::EnableDefaultHealthCheckService(false);
  GateBackend without("without");
  grpc::EnableDefaultHealthCheckService(true);  // the proxy's own admin RPC has it
  EXPECT_EQ(without.health(), nullptr);
  config_.endpoints[2] = without.endpoint();
  Start();
  ASSERT_TRUE(WaitUntil([&] { return Shown()[2].health_service().find("UNIMPLEMENTED") != std::string::npos; }));
  ASSERT_TRUE(Becomes({"up", "up", "up"}));
  EXPECT_EQ(Answering(), (Names{"e0", "e1", "without"}));
}

INSTANTIATE_TEST_SUITE_P(Modes, HealthService, testing::Values("watch", "check"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice::integration
