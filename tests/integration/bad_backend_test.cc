// Backends that close, stall, send garbage or leave out grpc-status: the client gets a gRPC status, and
// nothing stays behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "base/slice.h"
#include "support/backends.h"
#include "support/echo_call.h"
#include "support/proxy.h"
#include "support/raw_backend.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;
using raw::Frame;

const raw::Fields kOkHeaders = {{":status", "200"}, {"content-type", "application/grpc"}};

// Reads up to a request's HEADERS; its stream, or 0 if the connection ends first.
uint32_t NextRequest(RawPeer& peer) {
  const auto frame = peer.Until([](const RawPeer::Frame& frame) { return frame.type == raw::kHeaders; });
  return frame ? frame->stream : 0;
}
uint32_t Request(RawPeer& peer) { return peer.Accept() ? NextRequest(peer) : 0; }
// Sends these bytes for every stream, and keeps the connection until the proxy closes it.
std::function<void(RawPeer&)> Answers(std::function<std::string(uint32_t stream)> bytes) {
  return [bytes](RawPeer& peer) {
    for (uint32_t stream = Request(peer); stream != 0; stream = NextRequest(peer)) peer.Send(bytes(stream));
  };
}

struct Behaviour {
  std::string name;
  std::function<void(RawPeer&)> handle;
  std::vector<StatusCode> codes;  // what the client may get
};
void PrintTo(const Behaviour& behaviour, std::ostream* out) { *out << behaviour.name; }

class BadBackend : public testing::TestWithParam<Behaviour> {};

TEST_P(BadBackend, GivesTheClientAStatus) {
  RawBackend backend(GetParam().handle);
  ProxyConfig config;
  config.endpoints = {{"bad", backend.address()}};
  config.cluster = {"connect_timeout: 200ms", "backoff_base: 1ms", "backoff_max: 2ms"};
  Proxy proxy(config);
  {
    auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
    for (const Kind kind : kKinds) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(800));
      echo::v1::EchoRequest request;
      request.set_payload("x");
      const Reply reply = Call(stub.get(), kind, &context, request);
      EXPECT_THAT(GetParam().codes, testing::Contains(reply.status.error_code())) << Describe(reply.status);
    }
  }
  EXPECT_TRUE(WaitUntil([&] { return proxy.Metric("sluice_calls_in_flight") == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return proxy.Metric("sluice_endpoint_in_flight") == 0; }));
  EXPECT_TRUE(WaitUntil([&] { return base::Block::LiveBytes() < (2u << 20); })) << base::Block::LiveBytes();
}

const Behaviour kBehaviours[] = {
    {"ClosesAtOnce", [](RawPeer&) {}, {StatusCode::UNAVAILABLE}},
    {"ClosesAfterThePreface", [](RawPeer& peer) { peer.Accept(); }, {StatusCode::UNAVAILABLE}},
    {"ClosesAfterTheRequest", [](RawPeer& peer) { Request(peer); }, {StatusCode::UNAVAILABLE}},
    {"ClosesInsideAFrame",
     [](RawPeer& peer) {
       const uint32_t stream = Request(peer);
       peer.Send(raw::Headers(stream, kOkHeaders).substr(0, 12));
     },
     {StatusCode::UNAVAILABLE}},
    {"ClosesInsideTheResponse",
     [](RawPeer& peer) {
       const uint32_t stream = Request(peer);
       peer.Send(raw::Headers(stream, kOkHeaders) + Frame(raw::kData, 0, stream, raw::Message("")));
     },
     {StatusCode::UNAVAILABLE}},
    {"SaysNothing", [](RawPeer& peer) { peer.Rest(); }, {StatusCode::DEADLINE_EXCEEDED, StatusCode::UNAVAILABLE}},
    {"StallsAfterTheSettings", Answers([](uint32_t) { return std::string(); }), {StatusCode::DEADLINE_EXCEEDED}},
    {"StallsAfterTheHeaders",
     Answers([](uint32_t stream) { return raw::Headers(stream, kOkHeaders); }),
     {StatusCode::DEADLINE_EXCEEDED}},
    {"AnswersInHttp1",
     [](RawPeer& peer) {
       peer.Send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
       peer.Rest();
     },
     {StatusCode::UNAVAILABLE, StatusCode::INTERNAL}},
    {"SendsGarbage",
     Answers([](uint32_t) { return std::string(10'000, '\xee'); }),
     {StatusCode::INTERNAL, StatusCode::UNAVAILABLE}},
    {"SendsAHeaderBlockThatIsNone",
     Answers(
         [](uint32_t stream) { return Frame(raw::kHeaders, raw::kEndHeaders, stream, "\xff\xff\xff\xff\xff\x7f"); }),
     {StatusCode::INTERNAL, StatusCode::UNAVAILABLE}},
    {"SendsDataBeforeHeaders",
     Answers([](uint32_t stream) { return Frame(raw::kData, 0, stream, raw::Message("x")); }),
     {StatusCode::INTERNAL}},
    {"SendsHeadersWithoutStatus",
     Answers([](uint32_t stream) {
       return raw::Headers(stream, {{"content-type", "application/grpc"}});
     }),
     {StatusCode::INTERNAL}},
    {"SendsAStreamThatWasNotOpened",
     Answers([](uint32_t) { return raw::Headers(1001, kOkHeaders); }),
     {StatusCode::INTERNAL, StatusCode::UNAVAILABLE}},
    {"PushesAStream",
     Answers([](uint32_t stream) { return Frame(raw::kPushPromise, raw::kEndHeaders, stream, raw::U32(2)); }),
     {StatusCode::INTERNAL, StatusCode::UNAVAILABLE}},
    {"SendsMoreThanTheWindow",
     Answers([](uint32_t stream) {
       std::string frames = raw::Headers(stream, kOkHeaders);
       for (int i = 0; i < 2000; ++i) frames += Frame(raw::kData, 0, stream, std::string(16384, '\0'));
       return frames;
     }),
     {StatusCode::INTERNAL, StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED, StatusCode::CANCELLED}},
    {"SendsAHeaderListAboveTheLimit",
     Answers([](uint32_t stream) {
       raw::Fields fields = kOkHeaders;
       for (int i = 0; i < 70; ++i) fields.emplace_back("x-" + std::to_string(i), std::string(1000, 'v'));
       const std::string block = raw::Block(fields);
       std::string frames;
       for (size_t at = 0; at < block.size(); at += 16384) {
         frames += Frame(at == 0 ? raw::kHeaders : raw::kContinuation,
                         at + 16384 >= block.size() ? raw::kEndHeaders : 0, stream, block.substr(at, 16384));
       }
       return frames;
     }),
     {StatusCode::RESOURCE_EXHAUSTED, StatusCode::INTERNAL}},
    {"EndsWithoutGrpcStatus",
     Answers([](uint32_t stream) {
       return raw::Headers(stream, kOkHeaders) + Frame(raw::kData, raw::kEndStream, stream, raw::Message(""));
     }),
     {StatusCode::UNKNOWN, StatusCode::INTERNAL}},
    {"EndsWithTrailersWithoutGrpcStatus",
     Answers([](uint32_t stream) {
       return raw::Headers(stream, kOkHeaders) + raw::Headers(stream, {{"x-other", "1"}}, true);
     }),
     {StatusCode::UNKNOWN, StatusCode::INTERNAL}},
    {"AnswersWithHttp503",
     Answers([](uint32_t stream) {
       return raw::Headers(stream, {{":status", "503"}, {"content-type", "text/html"}}, true);
     }),
     {StatusCode::UNAVAILABLE}},
    {"AnswersWithHttp404",
     Answers([](uint32_t stream) {
       return raw::Headers(stream, {{":status", "404"}}, true);
     }),
     {StatusCode::UNIMPLEMENTED}},
    {"ResetsWithInternalError",
     Answers([](uint32_t stream) { return Frame(raw::kRstStream, 0, stream, raw::U32(raw::kInternalError)); }),
     {StatusCode::INTERNAL}},
    {"ResetsWithCancel",
     Answers([](uint32_t stream) { return Frame(raw::kRstStream, 0, stream, raw::U32(raw::kCancel)); }),
     {StatusCode::CANCELLED}},
    {"ResetsWithEnhanceYourCalm",
     Answers([](uint32_t stream) { return Frame(raw::kRstStream, 0, stream, raw::U32(raw::kEnhanceYourCalm)); }),
     {StatusCode::RESOURCE_EXHAUSTED}},
    {"RefusesEveryStream",
     Answers([](uint32_t stream) { return Frame(raw::kRstStream, 0, stream, raw::U32(raw::kRefusedStream)); }),
     {StatusCode::UNAVAILABLE}},
    {"GoesAwayFromEveryStream",
     Answers([](uint32_t) { return Frame(raw::kGoaway, 0, 0, raw::U32(0) + raw::U32(raw::kNoError)); }),
     {StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED}},
    {"AcceptsNoStreams",
     [](RawPeer& peer) {
       if (!peer.Accept()) return;
       peer.Send(raw::Settings({{3, 0}}));
       while (const uint32_t stream = NextRequest(peer)) {
         peer.Send(Frame(raw::kRstStream, 0, stream, raw::U32(raw::kRefusedStream)));
       }
     },
     {StatusCode::UNAVAILABLE, StatusCode::DEADLINE_EXCEEDED, StatusCode::RESOURCE_EXHAUSTED}},
};
INSTANTIATE_TEST_SUITE_P(Backends, BadBackend, testing::ValuesIn(kBehaviours),
                         [](const auto& info) { return info.param.name; });

// gRPC C++ of before 2024 may answer a call at its deadline and again when its handler ends (docs/http2.md).
TEST(ABackendThatAnswersACallTwice, KeepsItsOtherCalls) {
  RawBackend backend([](RawPeer& peer) {
    const uint32_t other = Request(peer), twice = NextRequest(peer);
    const auto answer = [](uint32_t stream, const std::string& code) {
      raw::Fields fields = kOkHeaders;
      fields.emplace_back("grpc-status", code);
      return raw::Headers(stream, fields, true) + Frame(raw::kRstStream, 0, stream, raw::U32(raw::kNoError));
    };
    if (twice != 0) peer.Send(answer(twice, "4") + answer(twice, "1") + answer(other, "0"));
    peer.Rest();
  });
  ProxyConfig config;
  config.top = {"workers: 1"};  // one worker has one connection to the backend
  config.endpoints = {{"twice", backend.address()}};
  Proxy proxy(config);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  const auto code = [&] {
    grpc::ClientContext context;
    return Call(stub.get(), Kind::kServerStream, &context, {}).status.error_code();
  };
  auto one = std::async(std::launch::async, code), two = std::async(std::launch::async, code);
  EXPECT_THAT((std::vector{one.get(), two.get()}),
              testing::UnorderedElementsAre(StatusCode::OK, StatusCode::DEADLINE_EXCEEDED));
  EXPECT_EQ(backend.connections(), 1);
}

// A port that was free a moment ago.
std::string AddressOfNobody() { return Backends(1).address(0); }

TEST(BackendsThatAreNotThere, AreUnavailable) {
  ProxyConfig config;
  config.endpoints = {{"gone", AddressOfNobody()}};
  Proxy proxy(config);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  grpc::ClientContext context;
  const Reply reply = Call(stub.get(), Kind::kUnary, &context, {});
  EXPECT_EQ(reply.status.error_code(), StatusCode::UNAVAILABLE) << Describe(reply.status);
  EXPECT_EQ(reply.Trailer("sluice-reason"), "connect_failed");
}

TEST(BackendsThatAreNotThere, AreGoneAroundWhenThereAreOthers) {
  Backends backends(2);
  ProxyConfig config;
  config.endpoints = backends.endpoints();
  config.endpoints.emplace_back("gone", AddressOfNobody());
  Proxy proxy(config);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  for (int i = 0; i < 300; ++i) {
    grpc::ClientContext context;
    context.AddMetadata("x-key", "key-" + std::to_string(i));
    const Reply reply = Call(stub.get(), kKinds[i % 4], &context, {});
    ASSERT_TRUE(reply.status.ok()) << i << ": " << Describe(reply.status);
  }
}

TEST(AnEmptyCluster, IsUnavailableWithItsReason) {
  Proxy proxy(ProxyConfig{});
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  grpc::ClientContext context;
  const Reply reply = Call(stub.get(), Kind::kUnary, &context, {});
  EXPECT_EQ(reply.status.error_code(), StatusCode::UNAVAILABLE) << Describe(reply.status);
  EXPECT_EQ(reply.Trailer("sluice-reason"), "no_endpoint");
}

TEST(ACallWithoutARoute, IsUnimplementedWithItsReason) {
  Backends backends(1);
  ProxyConfig config;
  config.endpoints = backends.endpoints();
  config.route = {"service: some.other.Service"};
  Proxy proxy(config);
  auto stub = echo::v1::Echo::NewStub(Connect(proxy.target()));
  for (const Kind kind : kKinds) {
    grpc::ClientContext context;
    const Reply reply = Call(stub.get(), kind, &context, {});
    EXPECT_EQ(reply.status.error_code(), StatusCode::UNIMPLEMENTED) << Describe(reply.status);
    EXPECT_EQ(reply.Trailer("sluice-reason"), "no_route");
  }
}

}  // namespace
}  // namespace sluice::integration
