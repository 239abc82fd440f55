// RFC 9113 and RFC 7541 for an intermediary: what a whole proxy does with messages that are in order, and with the
// beginning of connections that are not.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>

#include "http2/fields/validate.h"
#include "support/conformance/script.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Instead;
using h2::With;
using h2::Without;
using http2::Indexing;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ConformanceTest : public test::ProxyFixture {
 public:
  // How each field of all blocks that a peer has heard was spelled.
  static std::multimap<std::string, Indexing> Spelled(const FramePeer& peer) {
    std::multimap<std::string, Indexing> out;
    http2::InternTable interns;
    http2::HpackDecoder decoder(interns);
    for (const h2::Frame& frame : peer.frames) {
      if (frame.type != h2::kHeaders) continue;
      http2::HeaderList list(&interns);
      EXPECT_EQ(decoder.Decode(frame.payload, {}, list), http2::DecodeResult::kOk);
      for (const http2::Field* field : list) out.emplace(field->name(), field->indexing);
    }
    return out;
  }
  static size_t Count(const FramePeer& peer, const std::string& name, Indexing indexing) {
    const auto spelled = Spelled(peer);
    const auto [first, last] = spelled.equal_range(name);
    return static_cast<size_t>(std::count_if(first, last, [&](const auto& field) { return field.second == indexing; }));
  }
  static std::string Never(const std::string& name, const std::string& value) {
    return "\x10" + h2::Big(name.size(), 1) + name + h2::Big(value.size(), 1) + value;
  }
};

// RFC 7541 6.2.3, 7.1.3: never indexed at one hop is never indexed at the next, in requests, responses and trailers,
// and as often as they repeat.
TEST_F(ConformanceTest, NeverIndexedFieldsStaySo) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const std::string secret = Never("x-secret", "s3cret");
  for (uint32_t id = 1; id <= 7; id += 2) {
    client.Send(Headers(id, Block(GrpcRequest()) + secret) + Headers(id, secret, kLast));
    Run();
    Up().Send(Headers(id, Block(GrpcResponse()) + secret) + Headers(id, Block(GrpcTrailers()) + secret, kLast));
    Run();
    ASSERT_EQ(client.streams[id].Value("x-secret"), "s3cret");
  }
  EXPECT_EQ(Count(Up(), "x-secret", Indexing::kNever), 8u);
  EXPECT_EQ(Count(client, "x-secret", Indexing::kNever), 8u);
}

TEST_F(ConformanceTest, NeverIndexedFieldsStaySoWhenTheyComeFromTheCache) {
  routes[0].cache.methods = {{"/pkg.Service/Method", seconds(10)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const std::string secret = Never("x-secret", "s3cret");
  for (uint32_t id = 1; id <= 9; id += 2) {
    client.Send(Headers(id, Block(GrpcRequest())) + Data(id, h2::Message("q"), h2::kEndStream));
    Run();
    if (id > 1) continue;
    Up().Send(Headers(1, Block(GrpcResponse()) + secret) + Data(1, h2::Message("a")) +
              Headers(1, Block(GrpcTrailers()) + secret, kLast));
    Run();
  }
  EXPECT_EQ(client.streams[9].headers.at(0).back().first, "age");
  EXPECT_EQ(Count(client, "x-secret", Indexing::kNever), 10u);
}

// 8.1.1 through the cache: what is malformed at its end is not kept.
TEST_F(ConformanceTest, AMalformedResponseIsNotCached) {
  routes[0].cache.methods = {{"/pkg.Service/Method", seconds(10)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) {
    client.Send(Headers(id, Block(GrpcRequest())) + Data(id, h2::Message("q"), h2::kEndStream));
    Run();
    ASSERT_FALSE(Up().streams[id].headers.empty()) << "answered from the cache";
    Up().Send(Headers(id, Block(GrpcResponse())) + Data(id, h2::Message("a")) +
              Headers(id, Block(With(GrpcTrailers(), {{"Bad", "x"}})), kLast));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "13");
  }
}

// 8.3.1: the request that goes on has its authority in :authority, before all fields.
TEST_F(ConformanceTest, AHostAloneGoesOnAsAuthority) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(Without(GrpcRequest(), ":authority"), {{"host", "b:1"}})), kLast) +
              Headers(3, Block(With(GrpcRequest(), {{"host", "TEST:80"}})), kLast) +
              Headers(5, Block(Without(GrpcRequest(), ":authority")), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers.at(0), (Fields{{":method", "POST"},
                                                   {":scheme", "http"},
                                                   {":path", "/pkg.Service/Method"},
                                                   {":authority", "b:1"},
                                                   {"content-type", "application/grpc"},
                                                   {"te", "trailers"}}));
  EXPECT_EQ(Up().streams[3].headers.at(0), GrpcRequest()) << "a host that says the same goes";
  EXPECT_EQ(Up().streams[5].Value(":authority"), "<none>");
}

// 8.5
TEST_F(ConformanceTest, ConnectNeverReachesABackend) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const std::string connect = Block({{":method", "CONNECT"}, {":authority", "10.0.0.9:22"}});
  client.Send(Headers(1, connect) + Data(1, "SSH-2.0") + Headers(3, connect, kLast));
  Run();
  for (uint32_t id : {1, 3}) {
    EXPECT_EQ(client.streams[id].headers, (std::vector<Fields>{{{":status", "501"}}}));
    EXPECT_TRUE(client.streams[id].end);
  }
  EXPECT_EQ(client.streams[1].reset, h2::kNoError);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

// 8.1: a complete response survives the reset that only stops the request.
TEST_F(ConformanceTest, ACompleteResponseIsPassedOnThoughAResetFollows) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, "part"));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, "whole") + Headers(1, Block(GrpcTrailers()), kLast) +
            h2::RstStream(1, h2::kNoError));
  Run();
  EXPECT_EQ(client.streams[1].data, "whole");
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_EQ(client.streams[1].reset, h2::kNoError);
}

// 8.1.1: HEAD has no content, whatever a backend says.
TEST_F(ConformanceTest, ContentOfAResponseToHeadIsNotPassedOn) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields head = {{":method", "HEAD"}, {":scheme", "http"}, {":path", "/x"}, {":authority", "a"}};
  client.Send(Headers(1, Block(head), kLast) + Headers(3, Block(head), kLast));
  Run();
  const Fields response = {{":status", "200"}, {"content-length", "4"}};
  Up().Send(Headers(1, Block(response)) + Data(1, "oops", h2::kEndStream) + Headers(3, Block(response), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].reset, h2::kProtocolError);
  EXPECT_EQ(client.streams[1].data, "");
  EXPECT_EQ(client.streams[3].headers, (std::vector<Fields>{response}));
  EXPECT_TRUE(client.streams[3].end);
}

// 8.2, 8.2.2, 8.3: what the proxy adds is lower case, no connection-specific field and no pseudo-header.
TEST_F(ConformanceTest, WhatTheProxyAddsIsWellFormed) {
  forwarding.x_forwarded = forwarding.via = true;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "5S"}}))) +
              Headers(1, Block({{"x", "y"}}), kLast));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + h2::RstStream(1, h2::kInternalError));
  Run();
  ASSERT_NE(Up().streams[1].headers.size(), 0u);
  EXPECT_EQ(client.streams[1].headers.size(), 2u);
  for (auto* blocks : {&Up().streams[1].headers, &client.streams[1].headers}) {
    for (size_t i = 0; i < blocks->size(); ++i) {
      http2::HeaderList list;
      for (const auto& [name, value] : (*blocks)[i]) list.Add(name, value);
      if (i > 0) {
        EXPECT_EQ(http2::ValidateTrailers(list), nullptr);
      } else if (blocks == &client.streams[1].headers) {
        EXPECT_EQ(http2::ValidateResponse(list).malformed, nullptr);
      } else {
        EXPECT_EQ(http2::ValidateRequest(list).malformed, nullptr);
        EXPECT_NE(list.Find("x-forwarded-for"), nullptr);
      }
    }
  }
}

// 8.2.3: field lines stay separate; a later hop may need them so.
TEST_F(ConformanceTest, CookiesInPartsGoOnInParts) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields request = With(GrpcRequest(), {{"cookie", "a=b"}, {"x", "1"}, {"cookie", "c=d"}});
  client.Send(Headers(1, Block(request), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers.at(0), request);
}

// 6.9.1, 5.2.1: each hop has its own windows, and each is kept.
TEST_F(ConformanceTest, TheBackendsWindowIsKeptWhateverTheClientSends) {
  net.host("10.0.0.1:1").settings = {{4, 1000}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Up().credit = false;
  for (int i = 0; i < 8; ++i) client.Send(Data(1, std::string(16384, 'x')));
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), 1000u);
  Up().Send(h2::WindowUpdate(1, 500));
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), 1500u);
  Up().Send(h2::Settings({{4, 0}}) + h2::WindowUpdate(1, 999));  // -1000 + 999
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), 1500u);
  Up().Send(h2::WindowUpdate(1, 2));
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), 1501u);
}

// 6.8, 5.1.1: a backend's GOAWAY moves calls to a new connection, and no new stream comes to the old one.
TEST_F(ConformanceTest, NothingIsOpenedBehindAGoaway) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(h2::Request(1, h2::kEnd));
  Run();
  FramePeer& old = Up();
  old.Send(h2::Goaway(1, 99));  // 7: an unknown code
  Run();
  client.Send(h2::Request(3, h2::kEnd));
  Run();
  ASSERT_NE(&Up(), &old);
  EXPECT_EQ(old.streams.count(3), 0u);
  Respond(old, 1, "old");
  Respond(Up(), 1, "new");
  Run();
  EXPECT_EQ(client.streams[1].data, "old");
  EXPECT_EQ(client.streams[3].data, "new");
}

// 3.4
TEST_F(ConformanceTest, AClientThatDoesNotBeginWithThePrefaceIsToldAndClosed) {
  Start({"10.0.0.1:1"});
  for (const std::string& start : {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), h2::Preface() + h2::Ping(1),
                                   h2::Preface() + h2::Request(1, h2::kEnd)}) {
    auto pair = net::MemoryStream::Make(front().worker(), "proxy", "192.0.2.7:40000");
    FramePeer peer(FramePeer::Role::kClient, std::move(pair.far));
    auto open = std::make_shared<std::atomic<int64_t>>(1);
    front().connections.fetch_add(1, std::memory_order_relaxed);
    auto* connection = new DownstreamConnection(front(), std::move(pair.near), listener, open);
    front().downstream.PushBack(*connection);
    connection->Start();
    peer.Send(start);
    for (int i = 0; i < 3; ++i) {
      Run();
      peer.Pump();
    }
    ASSERT_NE(peer.Last(h2::kGoaway), nullptr);
    EXPECT_EQ(peer.Last(h2::kGoaway)->Word(4), h2::kProtocolError);
    EXPECT_TRUE(peer.end);
    EXPECT_EQ(peer.frames.at(0).type, h2::kSettings);
    peer.wire().Close();
    Run();
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

TEST_F(ConformanceTest, ABackendThatSpeaksHttp1IsToldAndTheCallFails) {
  net.host("10.0.0.1:1").speaks = false;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(h2::Request(1, h2::kEnd));
  Run();
  Up().Send("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
  Run();
  ASSERT_NE(Up().Last(h2::kGoaway), nullptr);
  EXPECT_EQ(Up().Last(h2::kGoaway)->Word(4), h2::kProtocolError);
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  EXPECT_NE(client.streams[1].Value("grpc-status"), "0");
  EXPECT_TRUE(client.streams[1].end);
}

}  // namespace
}  // namespace sluice::proxy
