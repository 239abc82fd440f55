// Routes with a failover cluster, and clusters with priorities, behind real gRPC servers and clients: no call fails
// while some endpoint is there, none goes farther than it must, and calls come home.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "support/echo_call.h"
#include "support/gate_backend.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using std::chrono::milliseconds;

class Failover : public testing::Test {
 protected:
  Failover() {
    config_.endpoints = {near_.endpoint(), near_too_.endpoint()};
    config_.cluster = {"slow_start: {window: 0}"};
    config_.route = {"failover: far"};
    config_.more_clusters = "  - {name: far, endpoints: [{name: far, address: \"" + far_.endpoint().second + "\"}]}\n";
    proxy_ = std::make_unique<Proxy>(config_);
    stub_ = echo::v1::Echo::NewStub(Connect(proxy_->target()));
  }
  static GateBackend::Answer Named(const std::string& name) {
    return [name](const GateBackend::Call& call) {
      call.reply->set_backend(name);
      return grpc::Status::OK;
    };
  }
  // The backend that answers a call with that key; a failure says its status.
  std::string Ask(int key) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + milliseconds(5000));
    context.AddMetadata("x-key", std::to_string(key));
    const Reply reply = Call(stub_.get(), Kind::kUnary, &context, {});
    return reply.status.ok() && !reply.messages.empty() ? reply.messages[0].backend() : Describe(reply.status);
  }
  grpc::Status Order(const std::string& endpoint, admin::v1::ChangeEndpointsRequest::Kind kind) {
    grpc::ClientContext context;
    admin::v1::ChangeEndpointsRequest request;
    admin::v1::ChangeEndpointsResponse response;
    request.set_cluster("echo");
    request.set_kind(kind);
    request.add_endpoints()->set_name(endpoint);
    return proxy_->admin().ChangeEndpoints(&context, request, &response);
  }

  GateBackend near_{"near", Named("near")}, near_too_{"near_too", Named("near")}, far_{"far", Named("far")};
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

TEST_F(Failover, NoCallFailsWhenAllOfTheFirstClusterAreKilled) {
  for (int key = 0; key < 20; ++key) ASSERT_EQ(Ask(key), "near");
  near_.Kill();
  for (int key = 0; key < 20; ++key) ASSERT_EQ(Ask(key), "near") << "one of two is enough";
  near_too_.Kill();
  for (int key = 0; key < 50; ++key) ASSERT_EQ(Ask(key), "far");
  EXPECT_GE(proxy_->Metric("sluice_failovers_total"), 50);
}

TEST_F(Failover, ADrainedClusterSendsItsCallsAwayAndTheyComeHome) {
  using Request = admin::v1::ChangeEndpointsRequest;
  ASSERT_TRUE(Order("near", Request::KIND_DRAIN).ok());
  ASSERT_EQ(Ask(1), "near");
  ASSERT_TRUE(Order("near_too", Request::KIND_DRAIN).ok());
  for (int key = 0; key < 20; ++key) ASSERT_EQ(Ask(key), "far");
  ASSERT_TRUE(Order("near", Request::KIND_UNDRAIN).ok());
  for (int key = 0; key < 20; ++key) ASSERT_EQ(Ask(key), "near");
  EXPECT_EQ(proxy_->Metric("sluice_failovers_total"), 20);
}

// The same backends in one cluster, the far one with a lower priority.
class Priorities : public Failover {
 protected:
  Priorities() {
    admin::v1::ChangeEndpointsRequest request;
    request.set_kind(admin::v1::ChangeEndpointsRequest::KIND_REPLACE);
    request.set_cluster("echo");
    for (const GateBackend* backend : {&near_, &near_too_, &far_}) {
      admin::v1::EndpointSpec& spec = *request.add_endpoints();
      spec.set_name(backend->name());
      spec.set_address(backend->address());
      spec.set_priority(backend == &far_ ? 1 : 0);
    }
    grpc::ClientContext context;
    admin::v1::ChangeEndpointsResponse response;
    EXPECT_TRUE(proxy_->admin().ChangeEndpoints(&context, request, &response).ok());
  }
  grpc::Status SetHealth(admin::v1::SetEndpointHealthRequest::Action action) {
    grpc::ClientContext context;
    admin::v1::SetEndpointHealthRequest request;
    admin::v1::SetEndpointHealthResponse response;
    request.set_cluster("echo");
    request.set_endpoint("near");
    request.set_action(action);
    return proxy_->admin().SetEndpointHealth(&context, request, &response);
  }
  std::set<int> KeysOfFar() {
    std::set<int> keys;
    for (int key = 0; key < 100; ++key) {
      const std::string backend = Ask(key);
      EXPECT_TRUE(backend == "near" || backend == "far") << backend;
      if (backend == "far") keys.insert(key);
    }
    return keys;
  }
};

TEST_F(Priorities, InGoodHealthNoCallGoesToTheLowerOne) {
  EXPECT_TRUE(KeysOfFar().empty());
  EXPECT_EQ(far_.arrived(), 0u);
}

TEST_F(Priorities, NoCallFailsWhenAllOfTheFirstAreKilled) {
  EXPECT_TRUE(KeysOfFar().empty());
  near_.Kill();
  near_too_.Kill();
  EXPECT_EQ(KeysOfFar().size(), 100u);
}

TEST_F(Priorities, WhatIsSpilledIsTheSameAndComesHome) {
  using Request = admin::v1::SetEndpointHealthRequest;
  ASSERT_TRUE(SetHealth(Request::ACTION_EJECT).ok());
  ASSERT_TRUE(WaitUntil([&] { return !KeysOfFar().empty(); }));
  const std::set<int> spilled = KeysOfFar();
  EXPECT_GT(spilled.size(), 10u);
  EXPECT_LT(spilled.size(), 55u) << "half of the weight carries 70%";
  EXPECT_EQ(KeysOfFar(), spilled);
  ASSERT_TRUE(SetHealth(Request::ACTION_RESTORE).ok());
  EXPECT_TRUE(WaitUntil([&] { return KeysOfFar().empty(); }));
}

}  // namespace
}  // namespace sluice::integration
