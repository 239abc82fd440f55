// Traffic rules behind real gRPC servers and clients: weighted clusters, rewriting, faults and mirroring.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "support/backends.h"
#include "support/echo_call.h"
#include "support/gate_backend.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

GateBackend::Answer Named(const std::string& name) {
  return [name](const GateBackend::Call& call) {
    call.reply->set_backend(name);
    return grpc::Status::OK;
  };
}

// The entry of `clusters` for one backend.
std::string Cluster(const std::string& name, const GateBackend& backend, const std::string& more = "") {
  return "  - {name: " + name + ", endpoints: [{name: " + name + ", address: \"" + backend.address() + "\"}]" + more +
         "}\n";
}

class Traffic : public testing::Test {
 protected:
  void Start() {
    proxy_ = std::make_unique<Proxy>(config_);
    stub_ = echo::v1::Echo::NewStub(Connect(proxy_->target()));
  }
  Reply Ask(int key, const echo::v1::EchoRequest& request = {}, Kind kind = Kind::kUnary, int messages = 1,
            const std::map<std::string, std::string>& metadata = {}, milliseconds timeout = milliseconds(10'000)) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    context.AddMetadata("x-key", std::to_string(key));
    for (const auto& [name, value] : metadata) context.AddMetadata(name, value);
    return Call(stub_.get(), kind, &context, request, messages);
  }
  std::string BackendOf(int key) {
    const Reply reply = Ask(key);
    return reply.status.ok() && !reply.messages.empty() ? reply.messages[0].backend() : Describe(reply.status);
  }
  std::set<int> KeysOf(const std::string& backend, int keys = 200) {
    std::set<int> out;
    for (int key = 0; key < keys; ++key) {
      if (BackendOf(key) == backend) out.insert(key);
    }
    return out;
  }

  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

class WeightedClusters : public Traffic {
 protected:
  WeightedClusters() {
    config_.endpoints = {users_.endpoint()};
    config_.more_clusters = Cluster("canary", canary_);
    Weigh(90, 10);
  }
  void Weigh(int users, int canary) {
    config_.to = "clusters: [{name: echo, weight: " + std::to_string(users) +
                 "}, {name: canary, weight: " + std::to_string(canary) + "}]";
  }
  GateBackend users_{"users", Named("users")}, canary_{"canary", Named("canary")};
};

TEST_F(WeightedClusters, ACanaryGrowsAndKeepsItsKeys) {
  Start();
  const std::set<int> few = KeysOf("canary");
  EXPECT_GT(few.size(), 4u);
  EXPECT_LT(few.size(), 45u);
  EXPECT_EQ(KeysOf("canary"), few);
  Weigh(60, 40);
  Operator(*proxy_).ReloadWith(config_);
  const std::set<int> more = KeysOf("canary");
  EXPECT_GT(more.size(), few.size());
  for (const int key : few) EXPECT_TRUE(more.contains(key)) << key;
  EXPECT_EQ(KeysOf("users").size() + more.size(), 200u);
  const std::string page = proxy_->server().backend().RenderMetrics();
  EXPECT_THAT(page, HasSubstr("cluster=\"canary\""));
  EXPECT_EQ(proxy_->Metric("sluice_calls_total"), 800);
}

TEST_F(WeightedClusters, CallsOfACanaryThatDiesGoToTheOthers) {
  config_.route = {"failover: echo"};
  Weigh(50, 50);
  Start();
  ASSERT_FALSE(KeysOf("canary", 50).empty());
  canary_.Kill();
  for (int key = 0; key < 50; ++key) EXPECT_EQ(BackendOf(key), "users") << key;
}

TEST_F(WeightedClusters, StoredResponsesAreOfTheirCluster) {
  config_.route = {"cache: {ttl: 1h, methods: [sluice.echo.v1.Echo/Unary], vary: [x-key]}"};
  Start();
  std::map<int, std::string> first;
  for (int key = 0; key < 60; ++key) first[key] = BackendOf(key);
  const uint64_t arrived = users_.arrived() + canary_.arrived();
  for (int key = 0; key < 60; ++key) EXPECT_EQ(BackendOf(key), first[key]) << key;
  EXPECT_EQ(users_.arrived() + canary_.arrived(), arrived);
  Weigh(0, 1);
  Operator(*proxy_).ReloadWith(config_);
  for (int key = 0; key < 60; ++key) EXPECT_EQ(BackendOf(key), "canary") << key;
}

TEST_F(Traffic, FieldsAndTheAuthorityAreRewrittenForAllKindsOfCalls) {
  Backends backends(1);
  config_.endpoints = backends.endpoints();
  config_.route = {
      "rewrite: {authority: users.internal, request: {remove: [x-gone], set: [{name: x-set, value: ours}, "
      "{name: a-bin, value: AAEC}], add: [{name: x-more, value: two}]}, "
      "response: {remove: [echo-backend], set: [{name: x-served, value: here}]}}"};
  Start();
  echo::v1::EchoRequest request;
  request.set_return_metadata(true);
  request.set_reply_count(1);
  for (const Kind kind : kKinds) {
    const Reply reply =
        Ask(1, request, kind, 1, {{"x-gone", "1"}, {"x-set", "theirs"}, {"x-more", "one"}, {"x-kept", "k"}});
    ASSERT_TRUE(reply.status.ok()) << ToString(kind) << Describe(reply.status);
    ASSERT_FALSE(reply.messages.empty());
    const echo::v1::EchoReply& seen = reply.messages[0];
    EXPECT_EQ(seen.authority(), "users.internal");
    std::multimap<std::string, std::string> metadata;
    for (const auto& field : seen.metadata()) metadata.emplace(field.key(), field.value());
    EXPECT_EQ(metadata.count("x-gone"), 0u);
    EXPECT_EQ(metadata.count("x-set"), 1u);
    EXPECT_EQ(metadata.find("x-set")->second, "ours");
    EXPECT_EQ(metadata.find("a-bin")->second, std::string("\0\1\2", 3));
    EXPECT_EQ(metadata.count("x-more"), 2u);
    EXPECT_EQ(metadata.find("x-kept")->second, "k");
    EXPECT_EQ(reply.Header("x-served"), "here");
    EXPECT_EQ(reply.headers.count("echo-backend") + reply.trailers.count("echo-backend"), 0u);
  }
}

class Faults : public Traffic {
 protected:
  Faults() {
    config_.endpoints = backends_.endpoints();
    config_.route = {"name: main", "cache: {ttl: 1h, methods: [sluice.echo.v1.Echo/Unary], shared: true}"};
    Start();
  }
  std::string Ctl(std::vector<std::string> words) {
    words.insert(words.begin(), "fault");
    const Finished done = Operator(*proxy_).Ctl(std::move(words));
    EXPECT_EQ(done.code, 0) << done.output;
    return done.output;
  }
  Backends backends_{1};
};

TEST_F(Faults, AnAbortIsSeenByAllCallsOfTheRouteAlsoThoseOfTheCache) {
  ASSERT_TRUE(Ask(1).status.ok());
  ASSERT_TRUE(Ask(1).status.ok());
  EXPECT_EQ(backends_.calls(), 1u);
  EXPECT_THAT(Ctl({"add", "main", "--abort", "RESOURCE_EXHAUSTED", "--for", "1h"}), HasSubstr("fault 1: route main"));
  for (const Kind kind : kKinds) {
    const Reply reply = Ask(1, {}, kind);
    EXPECT_EQ(reply.status.error_code(), StatusCode::RESOURCE_EXHAUSTED) << ToString(kind);
    EXPECT_EQ(reply.Trailer("sluice-reason"), "fault_injected");
  }
  EXPECT_EQ(backends_.calls(), 1u);
  EXPECT_THAT(Ctl({"list"}), HasSubstr("abort RESOURCE_EXHAUSTED"));
  EXPECT_EQ(proxy_->Metric("sluice_faults_injected_total"), 4);
  Ctl({"remove", "1"});
  EXPECT_TRUE(Ask(1).status.ok());
}

TEST_F(Faults, ADelayIsOfOneMethodAndEndsAtTheDeadline) {
  Ctl({"add", "sluice.echo.v1.Echo/Unary", "--delay", "300ms", "--for", "1h"});
  const auto began = steady_clock::now();
  EXPECT_TRUE(Ask(1).status.ok());
  EXPECT_GE(steady_clock::now() - began, milliseconds(300));
  EXPECT_EQ(Ask(1, {}, Kind::kUnary, 1, {}, milliseconds(100)).status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  const auto other = steady_clock::now();
  EXPECT_TRUE(Ask(1, {}, Kind::kClientStream).status.ok());
  EXPECT_LT(steady_clock::now() - other, milliseconds(300));
}

TEST_F(Faults, AResponseIsCutOffBehindSoManyMessages) {
  Ctl({"add", "main", "--reset-after", "3", "--for", "1h"});
  echo::v1::EchoRequest request;
  request.set_reply_count(10);
  request.set_payload(std::string(100'000, 'p'));
  const Reply reply = Ask(1, request, Kind::kServerStream);
  EXPECT_EQ(reply.status.error_code(), StatusCode::INTERNAL) << Describe(reply.status);
  EXPECT_EQ(reply.messages.size(), 3u);
  EXPECT_EQ(Ask(1, request, Kind::kBidiStream, 5).messages.size(), 3u);
  EXPECT_TRUE(Ask(1).status.ok()) << "one message is no three";
}

TEST_F(Faults, ItEndsByItself) {
  Ctl({"add", "main", "--abort", "ABORTED", "--for", "500ms"});
  EXPECT_EQ(Ask(1).status.error_code(), StatusCode::ABORTED);
  EXPECT_TRUE(WaitUntil([&] { return Ask(1).status.ok(); }));
  EXPECT_TRUE(WaitUntil([&] { return Ctl({"list"}) == "no faults\n"; }));
}

TEST_F(Faults, ACallThatWaitsAtAStopEnds) {
  Ctl({"add", "main", "--delay", "1h", "--for", "1h"});
  grpc::ClientContext context;
  echo::v1::EchoReply reply;
  grpc::Status status;
  std::thread client([&] { status = stub_->Unary(&context, {}, &reply); });
  EXPECT_TRUE(WaitUntil([&] { return Operator(*proxy_).CallsInFlight() == 1; }));
  proxy_->server().Stop();
  client.join();
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE) << Describe(status);
}

class Mirroring : public Traffic {
 protected:
  void StartWith(const std::string& mirror, const std::string& cluster = "") {
    config_.endpoints = {users_.endpoint()};
    config_.more_clusters = Cluster("next", next_, cluster);
    config_.route = {"mirror: {cluster: next, " + mirror + "}"};
    Start();
  }
  double Results(const std::string& result) {
    const std::string page = proxy_->server().backend().RenderMetrics();
    const std::string label = "result=\"" + result + "\"";
    for (size_t at = page.find("sluice_mirrored_calls_total{"); at != page.npos;
         at = page.find("sluice_mirrored_calls_total{", at + 1)) {
      const std::string line = page.substr(at, page.find('\n', at) - at);
      if (line.find(label) != line.npos) return std::stod(line.substr(line.rfind(' ')));
    }
    return 0;
  }

  std::atomic<int> marked_{0};
  GateBackend users_{"users", [](const GateBackend::Call& call) {
                       EXPECT_EQ(call.Metadata("sluice-mirrored"), "");
                       call.reply->set_payload(call.request->payload());
                       return grpc::Status::OK;
                     }};
  // Answers differently where the payload says so.
  GateBackend next_{"next", [this](const GateBackend::Call& call) {
                      marked_ += call.Metadata("sluice-mirrored") == "1";
                      if (call.request->payload() == "status") return grpc::Status(StatusCode::NOT_FOUND, "none");
                      call.reply->set_payload(call.request->payload() == "message" ? "other" : call.request->payload());
                      return grpc::Status::OK;
                    }};
};

TEST_F(Mirroring, AnswersAreComparedAndTheClientGetsThePrimarys) {
  StartWith("compare: true");
  for (const std::string payload : {"same", "same", "status", "message"}) {
    echo::v1::EchoRequest request;
    request.set_payload(payload);
    const Reply reply = Ask(1, request);
    ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
    EXPECT_EQ(reply.messages.at(0).payload(), payload);
  }
  EXPECT_TRUE(WaitUntil([&] {
    return Results("equal") == 2 && Results("status_differs") == 1 && Results("message_differs") == 1;
  })) << proxy_->server().backend().RenderMetrics();
  EXPECT_EQ(marked_.load(), 4);
  EXPECT_EQ(proxy_->Metric("sluice_calls_total"), 4) << "doubles are no calls";
}

TEST_F(Mirroring, AClusterThatHangsDelaysNoCall) {
  StartWith("compare: true, calls_max: 5, timeout: 1s");
  next_.Close();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(i).status.ok());
  EXPECT_EQ(next_.arrived() + static_cast<uint64_t>(Results("busy")), 20u);
  EXPECT_GE(Results("busy"), 15);
  EXPECT_TRUE(WaitUntil([&] { return Results("incomplete") == static_cast<double>(next_.arrived()); }));
  next_.Open();
}

TEST_F(Mirroring, AClusterThatIsGoneFailsNoCall) {
  StartWith("compare: true");
  next_.Kill();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Ask(i).status.ok());
  EXPECT_TRUE(WaitUntil([&] { return Results("incomplete") + Results("no_endpoint") == 20; }));
}

TEST_F(Mirroring, LargeRequestsGoThroughWhateverTheMirrorTakes) {
  StartWith("bytes_max: 64KiB");
  echo::v1::EchoRequest request;
  request.set_payload(std::string(3'000'000, 'p'));
  for (int i = 0; i < 5; ++i) {
    const Reply reply = Ask(i, request);
    ASSERT_TRUE(reply.status.ok()) << Describe(reply.status);
    ASSERT_EQ(reply.messages.at(0).payload().size(), 3'000'000u);
  }
  EXPECT_TRUE(WaitUntil([&] { return Results("full") + Results("answered") == 5; }));
}

}  // namespace
}  // namespace sluice::integration
