// Peers that stop reading, stay too long, connect too often or make the proxy buffer too much: each is bounded, and an
// honest client beside them is served.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <list>

#include "base/memory_budget.h"
#include "support/backends.h"
#include "support/echo_call.h"
#include "support/operator.h"
#include "support/proxy.h"
#include "support/raw_peer.h"
#include "support/temp_dir.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

class SlowPeers : public testing::Test {
 protected:
  SlowPeers() { config_.endpoints = backends_.endpoints(); }
  void Start() {
    proxy_ = std::make_unique<Proxy>(config_);
    stub_ = echo::v1::Echo::NewStub(Connect(proxy_->target()));
  }
  Reply Honest() {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLongWait);
    return Call(stub_.get(), Kind::kUnary, &context, {});
  }
  // A client that has a connection.
  RawPeer Inside() {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Handshake();
    return peer;
  }
  // A client that sends all frames of a call at once: the call may have to wait for its turn.
  RawPeer Calling() {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Send(std::string(raw::kPreface) + raw::Settings() + raw::EchoCall(1));
    return peer;
  }
  static std::string Request(uint32_t stream, const echo::v1::EchoRequest& request) {
    return raw::Headers(stream, raw::EchoHeaders()) +
           raw::Frame(raw::kData, raw::kEndStream, stream, raw::Message(request.SerializeAsString()));
  }

  Backends backends_{1};
  ProxyConfig config_;
  std::unique_ptr<Proxy> proxy_;
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
};

TEST_F(SlowPeers, ASilentClientIsSentAway) {
  config_.listener = {"headers_timeout: 200ms"};
  Start();
  RawPeer peer = RawPeer::Connect(proxy_->port());
  const std::string heard = peer.Rest();  // as bytes, because acknowledging its SETTINGS would send something
  EXPECT_NE(heard.find(raw::U32(raw::kSettingsTimeout) + "no preface and SETTINGS in time"), std::string::npos);
  EXPECT_EQ(proxy_->Metric("sluice_downstream_timeouts_total"), 1);
  EXPECT_TRUE(Honest().status.ok());
}

TEST_F(SlowPeers, AHeaderBlockWithoutEndEndsTheConnection) {
  config_.listener = {"headers_timeout: 200ms"};
  Start();
  RawPeer peer = Inside();
  const std::string block = raw::Block(raw::EchoHeaders());
  peer.Send(raw::Frame(raw::kHeaders, 0, 1, block.substr(0, 10)) +
            raw::Frame(raw::kContinuation, 0, 1, block.substr(10, 5)));
  EXPECT_EQ(peer.GoawayThenEnd(), raw::kEnhanceYourCalm);
}

TEST_F(SlowPeers, AClientWithoutWindowIsGivenUp) {
  config_.listener = {"stall_timeout: 200ms"};
  Start();
  RawPeer peer = RawPeer::Connect(proxy_->port());
  peer.Send(std::string(raw::kPreface) + raw::Settings({{4, 0}}));  // INITIAL_WINDOW_SIZE
  peer.Send(raw::EchoCall(1));
  EXPECT_EQ(peer.AnswerOf(1).reset, raw::kCancel);
  EXPECT_TRUE(Honest().status.ok());
}

TEST_F(SlowPeers, AnIdleClientIsToldToGo) {
  config_.listener = {"idle_timeout: 200ms"};
  Start();
  RawPeer peer = Inside();
  const auto ping = peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kPing; });
  ASSERT_TRUE(ping);
  peer.Send(raw::Frame(raw::kPing, raw::kAck, 0, ping->payload));
  EXPECT_EQ(peer.GoawayThenEnd(), raw::kNoError);
}

TEST_F(SlowPeers, NoCallIsLostToTheAgeOfConnections) {
  config_.listener = {"age_max: 50ms"};
  config_.cluster = {"age_max: 50ms"};
  Start();
  // gRPC's client may pick a connection in the moment in which it closes it itself, because of our GOAWAY. It sends
  // such a call by another one, if it may (gRFC A6, transparent retries), which Connect() turns off.
  stub_ = echo::v1::Echo::NewStub(grpc::CreateChannel(proxy_->target(), grpc::InsecureChannelCredentials()));
  int calls = 0;
  while (proxy_->Metric("sluice_downstream_connections_total") < 10 ||
         proxy_->Metric("sluice_upstream_connects_total") < 10) {
    const Reply reply = Honest();
    ASSERT_TRUE(reply.status.ok()) << Describe(reply.status) << " after " << calls;
    ++calls;
  }
}

TEST_F(SlowPeers, OneAddressHasItsConnectionsAndNoMore) {
  config_.listener = {"connections_per_peer_max: 3"};
  Start();
  std::list<RawPeer> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(Inside());
  RawPeer more = RawPeer::Connect(proxy_->port());
  EXPECT_EQ(more.Rest(), "");
  EXPECT_EQ(proxy_->Metric("sluice_downstream_connections_refused_total"), 1);
  peers.pop_front();
  ASSERT_TRUE(WaitUntil([&] { return proxy_->Metric("sluice_downstream_connections") == 2; }));
  EXPECT_TRUE(Honest().status.ok());
}

TEST_F(SlowPeers, BeyondTheProcessesConnectionsOthersWaitForAPlace) {
  config_.top = {"connections_max: 2"};
  Start();
  std::list<RawPeer> peers;
  for (int i = 0; i < 2; ++i) peers.push_back(Inside());
  RawPeer waits = Calling();
  peers.back().Send(raw::EchoCall(1));  // those inside are served
  EXPECT_EQ(peers.back().AnswerOf(1).grpc_status(), "0");
  EXPECT_EQ(proxy_->Metric("sluice_downstream_connections_total"), 2);
  peers.pop_front();
  EXPECT_EQ(waits.AnswerOf(1).grpc_status(), "0");
}

TEST_F(SlowPeers, AReloadAppliesTheBoundsOfTheProcess) {
  config_.top = {"connections_max: 1", "memory: {buffered_bytes_max: 16MiB}"};
  Start();
  RawPeer inside = Inside();
  RawPeer waits = Calling();
  EXPECT_EQ(base::MemoryBudget::limit(), 16 << 20);
  config_.top = {"connections_max: 2", "memory: {buffered_bytes_max: 32MiB}"};
  Operator(*proxy_).ReloadWith(config_);
  EXPECT_EQ(waits.AnswerOf(1).grpc_status(), "0");
  EXPECT_EQ(base::MemoryBudget::limit(), 32 << 20);
}

TEST_F(SlowPeers, AReloadAppliesTheModeOfASocketThatStays) {
  TempDir dir;
  const std::string path = dir.File("listen.sock");
  const auto mode = [&] {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  config_.listen = "unix:" + path;
  config_.listener = {"unix_mode: \"0600\""};
  Start();
  EXPECT_EQ(mode(), 0600u);
  config_.listener = {"unix_mode: \"0620\""};
  Operator(*proxy_).ReloadWith(config_);
  EXPECT_TRUE(WaitUntil([&] { return mode() == 0620u; }));
}

TEST_F(SlowPeers, OneConnectionCannotHaveMoreWaitingThanItMay) {
  config_.listener = {"http2: {queued_bytes_max: 2MiB}"};
  Start();
  echo::v1::EchoRequest request;
  request.set_reply_bytes(900'000);
  RawPeer peer = Inside();
  for (uint32_t call = 0; call < 5; ++call) peer.Send(Request(2 * call + 1, request));
  const auto reset = peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kRstStream; });
  ASSERT_TRUE(reset);
  EXPECT_EQ(reset->Number(0), raw::kEnhanceYourCalm);
  EXPECT_GT(proxy_->Metric("sluice_http2_abuse_total"), 0);
  EXPECT_TRUE(Honest().status.ok());
}

TEST_F(SlowPeers, SlowReadersAreSentAwayBeforeAnHonestCallIsRefused) {
  config_.top = {"memory: {buffered_bytes_max: 16MiB}", "workers: 2"};
  Start();
  EXPECT_TRUE(Honest().status.ok());
  constexpr int kClients = 10;
  constexpr uint32_t kCalls = 10;  // of 1 MB each, of which 64 KiB may go to the client
  echo::v1::EchoRequest request;
  request.set_reply_bytes(1'000'000);
  std::list<RawPeer> slow;
  for (int i = 0; i < kClients; ++i) {
    slow.push_back(Inside());
    for (uint32_t call = 0; call < kCalls; ++call) slow.back().Send(Request(2 * call + 1, request));
  }
  double most = 0;
  EXPECT_TRUE(WaitUntil([&] {
    most = std::max(most, proxy_->Metric("sluice_memory_held_bytes"));
    const Reply reply = Honest();
    EXPECT_TRUE(reply.status.ok()) << Describe(reply.status);
    return proxy_->Metric("sluice_memory_connections_closed_total") > 0;
  }));
  EXPECT_GT(proxy_->Metric("sluice_memory_read_pauses_total"), 0);
  // Reading stops 2 MiB before it. In the second until slow clients go come a read of each worker that had begun (256
  // KiB) and 50 bites of 4 KiB from each worker's connection to the endpoint (400 KiB together).
  EXPECT_LT(most, 16 << 20);
  slow.clear();
  EXPECT_TRUE(WaitUntil([&] { return base::MemoryBudget::level() == base::MemoryLevel::kFree; }));
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(Honest().status.ok());
}

TEST_F(SlowPeers, AboveTheProcessesLimitNewCallsAreRefusedUntilThereIsRoom) {
  config_.top = {"memory: {buffered_bytes_max: 16MiB}"};
  Start();
  EXPECT_TRUE(Honest().status.ok());
  base::MemoryBudget::Add(16 << 20);  // as if other clients' buffers took it
  const Reply reply = Honest();
  EXPECT_EQ(reply.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(reply.Trailer("sluice-reason"), "memory_limited");
  base::MemoryBudget::Add(-(16 << 20));
  EXPECT_TRUE(Honest().status.ok());
}

}  // namespace
}  // namespace sluice::integration
