// Endpoints that fail or hang, behind real gRPC servers and clients: they are ejected, every key is served by another
// one meanwhile, and is at home again when they are well.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/echo_call.h"
#include "support/gate_backend.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using std::chrono::milliseconds;

constexpr int kKeys = 60;

class Health : public testing::Test {
 protected:
  Health() {
    for (size_t i = 0; i < backends_.size(); ++i) {
      auto answer = [this, i](const GateBackend::Call& call) {
        if (sick_[i].load()) return grpc::Status(grpc::StatusCode::UNAVAILABLE, "sick");
        call.reply->set_backend("e" + std::to_string(i));
        return grpc::Status::OK;
      };
      backends_[i] = std::make_unique<GateBackend>("e" + std::to_string(i), answer);
      config_.endpoints.push_back(backends_[i]->endpoint());
    }
    config_.cluster = {"ejection: {base: 200ms, max: 400ms}", "slow_start: {window: 300ms}"};
    proxy_ = std::make_unique<Proxy>(config_);
    stub_ = echo::v1::Echo::NewStub(Connect(proxy_->target()));
    home_ = Served();
    EXPECT_EQ(home_.size(), size_t{kKeys}) << "all endpoints are well";
  }

  // The backend that answers the key; empty: the call failed.
  std::string Ask(int key, milliseconds timeout = milliseconds(5000)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    context.AddMetadata("x-key", "key-" + std::to_string(key));
    const Reply reply = Call(stub_.get(), Kind::kUnary, &context, {});
    return reply.status.ok() && !reply.messages.empty() ? reply.messages[0].backend() : "";
  }
  // The backend of each key, of those that are answered.
  std::map<int, std::string> Served() {
    std::map<int, std::string> served;
    for (int key = 0; key < kKeys; ++key) {
      if (const std::string backend = Ask(key); !backend.empty()) served[key] = backend;
    }
    return served;
  }
  // Calls with all keys over several threads until `done`.
  bool CallUntil(const std::function<bool()>& done) {
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([this, &stop, t] {
        for (int key = t; !stop.load(); key = (key + 7) % kKeys) Ask(key, milliseconds(300));
      });
    }
    const bool reached = WaitUntil(done);
    stop.store(true);
    for (std::thread& thread : threads) thread.join();
    return reached;
  }
  double Ejections() { return proxy_->Metric("sluice_ejections_total"); }
  // 0: all are up.
  double States() { return proxy_->Metric("sluice_endpoint_state"); }
  void ExpectServedByOthers(const std::string& out) {
    const std::map<int, std::string> served = Served();
    EXPECT_EQ(served.size(), size_t{kKeys}) << "no call fails";
    for (const auto& [key, backend] : served) {
      EXPECT_NE(backend, out);
      if (home_[key] != out) {
        EXPECT_EQ(backend, home_[key]) << "keys of the others stay where they are";
      }
    }
  }
  admin::v1::Health HealthOf(const std::string& endpoint) {
    grpc::ClientContext context;
    admin::v1::ListClustersResponse response;
    EXPECT_TRUE(proxy_->admin().ListClusters(&context, {}, &response).ok());
    for (const auto& each : response.clusters(0).endpoints()) {
      if (each.name() == endpoint) return each.health();
    }
    return {};
  }
  grpc::Status Order(const std::string& endpoint, admin::v1::SetEndpointHealthRequest::Action action) {
    grpc::ClientContext context;
    admin::v1::SetEndpointHealthRequest request;
    admin::v1::SetEndpointHealthResponse response;
    request.set_cluster("echo");
    request.set_endpoint(endpoint);
    request.set_action(action);
    return proxy_->admin().SetEndpointHealth(&context, request, &response);
  }

  std::array<std::atomic<bool>, 3> sick_{};
  std::array<std::unique_ptr<GateBackend>, 3> backends_;
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
  std::map<int, std::string> home_;
};

TEST_F(Health, AnEndpointThatSaysUnavailableIsEjectedAndItsKeysComeBack) {
  sick_[0] = true;
  admin::v1::Health seen;
  ASSERT_TRUE(CallUntil([&] {
    seen = HealthOf("e0");
    return seen.state() == "ejected";
  }));
  EXPECT_GE(Ejections(), 1);
  EXPECT_NE(seen.why().find("UNAVAILABLE"), std::string::npos) << seen.why();
  sick_[0] = false;
  ASSERT_TRUE(CallUntil([&] { return States() == 0; }));
  // Keys that it failed five times pass it over for 5 s.
  EXPECT_TRUE(WaitUntil([&] { return Served() == home_; }));
}

TEST_F(Health, AnEndpointThatHangsIsEjectedAndItsKeysComeBack) {
  backends_[1]->Close();
  ASSERT_TRUE(CallUntil([&] { return Ejections() >= 1; }));
  backends_[1]->Open();
  ASSERT_TRUE(CallUntil([&] { return States() == 0; }));
  EXPECT_EQ(Served(), home_);
}

TEST_F(Health, AKilledEndpointIsEjectedAndNoKeyIsWithoutService) {
  backends_[2]->Kill();
  ASSERT_TRUE(CallUntil([&] { return Ejections() >= 1; }));
  ExpectServedByOthers("e2");
}

TEST_F(Health, OrdersHoldUntilTheyAreTakenBack) {
  using Request = admin::v1::SetEndpointHealthRequest;
  ASSERT_TRUE(Order("e0", Request::ACTION_EJECT).ok());
  ExpectServedByOthers("e0");
  EXPECT_EQ(HealthOf("e0").state(), "ejected");
  EXPECT_FALSE(HealthOf("e0").has_probe_in_ms());
  ASSERT_TRUE(Order("e1", Request::ACTION_EJECT).ok());
  EXPECT_EQ(Order("e2", Request::ACTION_EJECT).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Order("none", Request::ACTION_EJECT).error_code(), grpc::StatusCode::NOT_FOUND);
  ASSERT_TRUE(Order("e0", Request::ACTION_RESTORE).ok());
  ASSERT_TRUE(Order("e1", Request::ACTION_RESTORE).ok());
  ASSERT_TRUE(CallUntil([&] { return States() == 0; }));
  EXPECT_EQ(Served(), home_);
}

}  // namespace
}  // namespace sluice::integration
