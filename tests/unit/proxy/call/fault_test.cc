// Failures that operators ask for: which calls they meet, and what their clients see.
#include "proxy/call/fault.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using testing::HasSubstr;

class Causes final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord& record, uint32_t) override {
    if (record.fetch) return;
    causes.emplace_back(record.cause);
    details.emplace_back(record.detail);
    statuses.push_back(record.status);
  }
  std::vector<std::string> causes, details;
  std::vector<GrpcCode> statuses;
};

class CallFaultTest : public test::ProxyFixture {
 public:
  CallFaultTest() { observers = {told}; }
  // In force for a minute; takes the place of those before. Null: none.
  void Put(std::optional<FaultOptions> options) {
    std::shared_ptr<const FaultTable> table;
    if (options) {
      fault = std::make_shared<const Fault>(7, std::move(*options), time.clock.Now() + seconds(60));
      table = std::make_shared<const FaultTable>(FaultTable{fault});
    }
    worker->context.faults = table;
    if (home) home->context.faults = table;
  }
  void Ask(FramePeer& client, uint32_t id, const std::string& path = "/pkg.Service/Method",
           const h2::Fields& more = {}) {
    client.Send(Headers(id, Block(h2::With(GrpcRequest(path), more))) + Data(id, Message("q"), h2::kEndStream));
    Run();
  }
  bool Sent(uint32_t id) { return Connected("10.0.0.1:1") && !Up().streams[id].headers.empty(); }
  uint64_t Injected(ProxyMetrics::FaultKind kind) { return metrics.faults[static_cast<size_t>(kind)]->Value(); }

  std::shared_ptr<Causes> told = std::make_shared<Causes>();
  std::shared_ptr<const Fault> fault;
};

TEST_F(CallFaultTest, AbortedCallsEndWithTheCodeAndReachNoBackend) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .abort = GrpcCode::kNotFound});
  Ask(client, 1);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "5");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "fault_injected");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "no");
  EXPECT_THAT(client.streams[1].Value("grpc-message"), HasSubstr("fault 7"));
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  EXPECT_EQ(fault->calls.load(), 1u);
  EXPECT_EQ(Injected(ProxyMetrics::FaultKind::kAbort), 1u);
  Put({});
  Ask(client, 3);
  EXPECT_TRUE(Sent(1));
}

TEST_F(CallFaultTest, ItIsOfItsRouteOrItsMethodAlone) {
  routes.push_back(routes[0]);
  routes[0].name = "first";
  routes[0].prefix = "/pkg.Service/";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "first", .abort = GrpcCode::kAborted});
  Ask(client, 1);
  Ask(client, 3, "/other.Service/Method");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "10");
  EXPECT_TRUE(client.streams[3].headers.empty());
  Put(FaultOptions{.method = "/other.Service/Method", .abort = GrpcCode::kAborted});
  Ask(client, 5);
  Ask(client, 7, "/other.Service/Method");
  Ask(client, 9, "/other.Service/Method2");
  EXPECT_TRUE(client.streams[5].headers.empty());
  EXPECT_EQ(client.streams[7].Value("grpc-status"), "10");
  EXPECT_TRUE(client.streams[9].headers.empty());
}

TEST_F(CallFaultTest, ItEndsByItself) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .abort = GrpcCode::kAborted});
  Advance(seconds(60) - milliseconds(1));
  Ask(client, 1);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "10");
  Advance(milliseconds(1));
  Ask(client, 3);
  EXPECT_TRUE(client.streams[3].headers.empty());
}

TEST_F(CallFaultTest, ADelayIsPartOfTheCallsTime) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .delay = milliseconds(100)});
  Ask(client, 1);
  Ask(client, 3, "/pkg.Service/Method", {{"grpc-timeout", "50m"}});
  Ask(client, 5, "/pkg.Service/Method", {{"grpc-timeout", "1S"}});
  Ask(client, 7);
  client.Send(h2::RstStream(7, 8));
  Run();
  EXPECT_EQ(told->causes, (std::vector<std::string>{"cancelled"}))
      << "the client need not wait for the end of the delay";
  Advance(milliseconds(50));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_THAT(told->details.back(), HasSubstr("a fault"));
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  Advance(milliseconds(50));
  ASSERT_TRUE(Connected("10.0.0.1:1"));
  EXPECT_EQ(Up().streams.size() - Up().streams.count(0), 2u);
  std::vector<std::string> timeouts;
  for (const auto& [id, stream] : Up().streams) timeouts.push_back(stream.Value("grpc-timeout"));
  EXPECT_THAT(timeouts, testing::Contains("900000u"));
  EXPECT_EQ(Injected(ProxyMetrics::FaultKind::kDelay), 4u);
}

TEST_F(CallFaultTest, ADelayComesBeforeTheAbort) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .delay = milliseconds(100), .abort = GrpcCode::kInternal});
  Ask(client, 1);
  EXPECT_TRUE(client.streams[1].headers.empty());
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "13");
}

TEST_F(CallFaultTest, OneThatIsRemovedDoesNothingMoreToACallThatItDelays) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .delay = milliseconds(100), .abort = GrpcCode::kInternal});
  Ask(client, 1);
  Put({});
  Advance(milliseconds(100));
  EXPECT_TRUE(Sent(1));
}

TEST_F(CallFaultTest, APercentageIsOfTheCallsByChance) {
  constexpr uint64_t kSeed = 20261125;
  Start({"10.0.0.1:1"});
  worker->worker().random() = base::Random(kSeed);
  FramePeer& client = Client();
  Put(FaultOptions{.route = "r", .abort = GrpcCode::kAborted, .percent = 20});
  size_t aborted = 0;
  for (uint32_t id = 1; id < 800; id += 2) {
    Ask(client, id);
    aborted += client.streams[id].Value("grpc-status") == "10";
    if (client.streams[id].headers.empty()) client.Send(h2::RstStream(id, 8));
  }
  EXPECT_NEAR(static_cast<double>(aborted), 80, 30) << "seed " << kSeed;
  EXPECT_EQ(fault->calls.load(), aborted);
}

class CallCutTest : public CallFaultTest {
 public:
  void Cut(uint32_t messages) { Put(FaultOptions{.route = "r", .reset_after = messages}); }
  void Answer(uint32_t id, const std::string& body) {
    Up().Send(Headers(id, Block(GrpcResponse())) + Data(id, body) + Headers(id, Block(GrpcTrailers()), kLast));
    Run();
  }
};

TEST_F(CallCutTest, TheResponseIsResetBehindSoManyMessages) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Cut(2);
  Ask(client, 1);
  const std::string two = Message("one") + Message(std::string(300, '2'));
  Answer(1, two + Message("three"));
  EXPECT_EQ(client.streams[1].data, two);
  EXPECT_EQ(client.streams[1].reset, 2u);
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  EXPECT_EQ(told->causes, (std::vector<std::string>{"fault_injected"}));
  EXPECT_EQ(told->statuses, (std::vector<GrpcCode>{GrpcCode::kInternal}));
  EXPECT_EQ(Injected(ProxyMetrics::FaultKind::kReset), 1u);
}

TEST_F(CallCutTest, AMessageMayComeInAnyPieces) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Cut(2);
  Ask(client, 1);
  Up().Send(Headers(1, Block(GrpcResponse())));
  const std::string two = Message("") + Message("abc");
  for (const char c : two + Message("x")) {
    Up().Send(Data(1, std::string(1, c)));
    Run();
  }
  EXPECT_EQ(client.streams[1].data, two);
  EXPECT_EQ(client.streams[1].reset, 2u);
  EXPECT_EQ(Up().streams[1].reset, 8u) << "the backend is told";
}

TEST_F(CallCutTest, AShorterResponseIsWhole) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Cut(2);
  Ask(client, 1);
  Answer(1, Message("one"));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_FALSE(client.streams[1].reset);
  Ask(client, 3);
  Up().Send(Headers(3, Block(h2::With(GrpcResponse(), GrpcTrailers("5"))), kLast));
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "5");
}

TEST_F(CallCutTest, BeforeTheFirstMessageOnlyHeadersCome) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Cut(0);
  Ask(client, 1);
  Answer(1, Message("one"));
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  EXPECT_EQ(client.streams[1].data, "");
  EXPECT_EQ(client.streams[1].reset, 2u);
}

// What the client has not taken yet is still sent before the reset.
TEST_F(CallCutTest, ASlowClientGetsItsMessagesFirst) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client({{4, 10}});  // SETTINGS_INITIAL_WINDOW_SIZE
  client.credit = false;
  Cut(1);
  Ask(client, 1);
  const std::string message = Message(std::string(20, 'm'));
  Answer(1, message + Message("x"));
  EXPECT_EQ(client.streams[1].data, message.substr(0, 10));
  EXPECT_FALSE(client.streams[1].reset);
  client.Send(h2::WindowUpdate(1, 100));
  Run();
  EXPECT_EQ(client.streams[1].data, message);
  EXPECT_EQ(client.streams[1].reset, 2u);
}

TEST_F(CallCutTest, AClientThatGoesMeanwhileEndsTheCall) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client({{4, 10}});
  client.credit = false;
  Cut(1);
  Ask(client, 1);
  Answer(1, Message(std::string(20, 'm')));
  EXPECT_TRUE(told->causes.empty());
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(told->causes.size(), 1u);
}

class CallFaultCacheTest : public CallCutTest {
 public:
  CallFaultCacheTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(100'000)}}; }
};

TEST_F(CallFaultCacheTest, CallsThatTheCacheWouldAnswerAreMetToo) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Ask(client, 1);
  Answer(1, Message("a"));
  Ask(client, 3);
  EXPECT_EQ(client.streams[3].data, Message("a"));
  Put(FaultOptions{.route = "r", .abort = GrpcCode::kAborted});
  Ask(client, 5);
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "10");
  Put(FaultOptions{.route = "r", .delay = milliseconds(10)});
  Ask(client, 7);
  EXPECT_TRUE(client.streams[7].headers.empty());
  Advance(milliseconds(10));
  EXPECT_EQ(client.streams[7].data, Message("a"));
  Cut(1);
  Ask(client, 9);
  EXPECT_EQ(client.streams[9].data, Message("a"));
  EXPECT_EQ(client.streams[9].reset, 2u);
  EXPECT_EQ(told->causes.back(), "fault_injected");
  Put({});
  Ask(client, 11);
  EXPECT_EQ(client.streams[11].data, Message("a"));
  EXPECT_FALSE(client.streams[11].reset);
}

// The fetch is made for others, too.
TEST_F(CallFaultCacheTest, AFetchIsNotMet) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Cut(0);
  Ask(client, 1);
  Put({});
  Ask(client, 3);
  Answer(1, Message("a"));
  EXPECT_EQ(client.streams[1].reset, 2u);
  EXPECT_EQ(client.streams[3].data, Message("a"));
}

}  // namespace
}  // namespace sluice::proxy
