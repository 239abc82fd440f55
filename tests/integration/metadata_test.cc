// One call's header fields and libgrpc: whatever a client sends, calls of others on the same connection to the backend
// are answered, and the connection goes on.
#include <grpcpp/server_builder.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/backends.h"
#include "support/proxy.h"
#include "support/raw_peer.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

using raw::Fields;
using raw::Frame;

class Metadata : public testing::Test {
 protected:
  static constexpr uint32_t kHonest = 8;

  Metadata() { Front(backends_.endpoints(), backends_[0].service()); }
  void Front(std::vector<std::pair<std::string, std::string>> endpoints, const echo::EchoService& service) {
    ProxyConfig config;
    config.endpoints = std::move(endpoints);
    proxy_ = std::make_unique<Proxy>(config);
    service_ = &service;
  }
  RawPeer Connected() {
    RawPeer peer = RawPeer::Connect(proxy_->port());
    peer.Handshake();
    return peer;
  }
  static Fields Echo(const Fields& more) {
    Fields fields = raw::EchoHeaders();
    for (const auto& [name, value] : more) {
      auto at = fields.begin();
      while (at != fields.end() && at->first != name) ++at;
      // A pseudo-header stands before the others.
      if (at != fields.end() && (name[0] == ':' || name == "content-type")) {
        at->second = value;
      } else {
        fields.emplace_back(name, value);
      }
    }
    return fields;
  }
  static std::string LongHeaders(uint32_t stream, const Fields& fields) {
    constexpr size_t kPart = 16384;
    const std::string block = raw::Block(fields);
    std::string frames;
    for (size_t at = 0; at == 0 || at < block.size(); at += kPart) {
      const bool last = at + kPart >= block.size();
      frames += Frame(at == 0 ? raw::kHeaders : raw::kContinuation, last ? raw::kEndHeaders : 0, stream,
                      block.substr(at, kPart));
    }
    return frames;
  }
  // Honest calls are open at the backend while a stranger makes a call with each of `strange`; then they end. Returns
  // the strange calls' statuses.
  std::vector<std::string> Beside(const std::vector<Fields>& strange) {
    RawPeer honest = Connected(), stranger = Connected();
    for (uint32_t i = 0; i < kHonest; ++i)
      EXPECT_TRUE(honest.Send(raw::Headers(1 + 2 * i, raw::EchoHeaders("BidiStream"))));
    EXPECT_TRUE(WaitUntil([&] { return service_->in_flight() == kHonest; }));
    std::vector<std::string> statuses;
    uint32_t stream = 1;
    for (const Fields& more : strange) {
      const Fields fields = Echo(more);
      EXPECT_TRUE(
          stranger.Send(LongHeaders(stream, fields) + Frame(raw::kData, raw::kEndStream, stream, raw::Message(""))));
      const RawPeer::Answer answer = stranger.AnswerOf(stream);
      statuses.push_back(answer.reset ? "reset" : answer.grpc_status());
      // Its handler may end a little later than its answer is here.
      EXPECT_TRUE(WaitUntil([&] { return service_->in_flight() == kHonest; }))
          << more.at(0).first << ": " << more.at(0).second.substr(0, 40);
      stream += 2;
    }
    for (uint32_t i = 0; i < kHonest; ++i) {
      EXPECT_TRUE(honest.Send(Frame(raw::kData, raw::kEndStream, 1 + 2 * i, raw::Message(""))));
      EXPECT_EQ(honest.AnswerOf(1 + 2 * i).grpc_status(), "0");
    }
    return statuses;
  }

  Backends backends_{1};
  const echo::EchoService* service_ = nullptr;
  std::unique_ptr<Proxy> proxy_;
};

TEST_F(Metadata, BytesThatDoNotDecodeCostTheirCallAlone) {
  EXPECT_EQ(Beside({{{"x-bin", "%%%"}},
                    {{"x-bin", "_-8"}},
                    {{"x-bin", "Y==="}},
                    {{"x-bin", "\xff"}},
                    {{"-bin", "YWJj"}},
                    {{"x-bin", "YWJj,Y"}},
                    {{"grpc-trace-bin", "%"}}}),
            std::vector<std::string>(7, "3"));
}

TEST_F(Metadata, BytesInEverySpellingReachTheBackend) {
  EXPECT_EQ(Beside({{{"x-bin", "YWJj"}},
                    {{"x-bin", "YQ"}},
                    {{"x-bin", "YQ=="}},
                    {{"x-bin", "YR"}},
                    {{"x-bin", "YWJ"}},
                    {{"x-bin", "YWJj,ZGVm"}},
                    {{"x-bin", "YWJj, YQ==,"}},
                    {{"x-bin", ""}},
                    {{"x-bin", " YQ "}}}),
            std::vector<std::string>(9, "0"));
}

// libgrpc says 8 KiB unless it is told otherwise, as Backends tell it.
TEST_F(Metadata, AHeaderListAboveTheBackendsLimitCostsItsCallAlone) {
  echo::EchoService service("limited");
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  Front({{"limited", "127.0.0.1:" + std::to_string(port)}}, service);
  EXPECT_EQ(Beside({{{"x", std::string(7000, 'x')}},
                    {{"x", std::string(9000, 'x')}},
                    {{"x", std::string(60000, 'x')}},
                    {{":path", "/" + std::string(30000, 'p') + "/Unary"}}}),
            (std::vector<std::string>{"0", "8", "8", "8"}));
  proxy_.reset();
  server->Shutdown(std::chrono::system_clock::now());
}

// What its own call comes to is the backend's to say.
TEST_F(Metadata, OddFieldsCostTheirCallAlone) {
  Beside({{{"x!#$&'*+.^_`|~", "v"}},
          {{"x%2", "%zz"}},
          {{"x", "\x01\x7f\x80\xff"}},
          {{"x", ""}},
          {{"grpc-encoding", "bogus"}},
          {{"grpc-encoding", ""}},
          {{"grpc-accept-encoding", ",,,"}},
          {{"grpc-previous-rpc-attempts", "-1"}},
          {{"grpc-retry-pushback-ms", "x"}},
          {{"grpc-status", "x"}},
          {{"grpc-message", "%zz%"}},
          {{"user-agent", "\xff"}},
          {{"grpc-internal-encoding-request", "x"}},
          {{"grpc-internal-stream-encoding-request", "gzip"}},
          {{"lb-token", "x"}},
          {{"lb-cost-bin", "YQ"}},
          {{"grpc-server-stats-bin", "YQ"}},
          {{"grpc-tags-bin", "YQ"}},
          {{"endpoint-load-metrics-bin", "YQ"}},
          {{"x-endpoint-load-metrics", "x"}},
          {{"te", "trailers"}},
          {{"content-length", "5"}},
          {{"expect", "100-continue"}},
          {{"content-type", "application/grpc+\xff"}},
          {{"content-type", "text/plain"}},
          {{"content-type", ""}},
          {{":path", "/"}},
          {{":path", "/\xff"}},
          {{":path", "/a?b"}},
          {{":authority", "\xff"}},
          {{":authority", ""}},
          {{":scheme", "ftp"}},
          {{":method", "PUT"}},
          {{":method", "GET"}},
          {{":method", "HEAD"}},
          {{"cookie", "a=b; c=d"}},
          {{"grpc-timeout", "99999999H"}},
          {{"grpc-timeout", "1n"}}});
}

}  // namespace
}  // namespace sluice::integration
