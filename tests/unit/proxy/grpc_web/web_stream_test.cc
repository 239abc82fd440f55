// gRPC-Web through a whole proxy, in frames: what the endpoint sees of a request, and the client of a response.
#include "proxy/grpc_web/web_stream.h"

#include <gtest/gtest.h>

#include "support/proxy_fixture.h"
#include "support/web_frames.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::kEndStream;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::FromText;
using test::kLast;
using test::ToText;
using test::TrailerFrame;
using test::WebRequest;

constexpr const char* kBinary = "application/grpc-web+proto";
constexpr const char* kText = "application/grpc-web-text";
constexpr const char* kPage = "https://app.example.com";

class WebStreamTest : public test::ProxyFixture {
 public:
  WebStreamTest() {
    listener.grpc_web.enabled = true;
    listener.grpc_web.cors.origins = {kPage};
  }
  FramePeer& StartClient(const std::vector<std::pair<uint16_t, uint32_t>>& settings = {}) {
    Start({"10.0.0.1:1"});
    return Client(settings);
  }
  static std::string Request(uint32_t id, const std::string& type, const std::string& body, const Fields& more = {}) {
    return Headers(id, Block(WebRequest(type, more))) + Data(id, body, kEndStream);
  }
  static std::string Header(const test::Heard& stream, const std::string& name) {
    for (const auto& [key, value] : stream.headers.at(0)) {
      if (key == name) return value;
    }
    return "<none>";
  }
  size_t UpstreamCalls() {
    size_t n = 0;
    if (!Connected("10.0.0.1:1")) return 0;
    for (const auto& [id, stream] : Up().streams) n += !stream.headers.empty();
    return n;
  }
};

TEST_F(WebStreamTest, ABinaryCallIsOneOfGrpcToTheEndpoint) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, Message("ask"), {{"content-length", "8"}, {"x-grpc-web", "1"}, {"x-mine", "v"}}));
  Run();
  const test::Heard& asked = Up().streams[1];
  EXPECT_EQ(Header(asked, "content-type"), "application/grpc");
  EXPECT_EQ(Header(asked, "te"), "trailers");
  EXPECT_EQ(Header(asked, "content-length"), "<none>");
  EXPECT_EQ(Header(asked, "x-mine"), "v");
  EXPECT_EQ(asked.data, Message("ask"));
  EXPECT_TRUE(asked.end);

  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"x-first", "1"}, {"content-length", "11"}}))) +
            Data(1, Message("answer")) + Headers(1, Block(With(GrpcTrailers(), {{"x-last", "2"}})), kLast));
  Run();
  const test::Heard& heard = client.streams[1];
  ASSERT_EQ(heard.headers.size(), 1u);
  EXPECT_EQ(
      heard.headers[0],
      (Fields{
          {":status", "200"}, {"content-type", "application/grpc-web+proto"}, {"x-first", "1"}, {"vary", "origin"}}));
  EXPECT_EQ(heard.data, Message("answer") + TrailerFrame("grpc-status: 0\r\nx-last: 2\r\n"));
  EXPECT_TRUE(heard.end);
  EXPECT_FALSE(heard.reset);
  EXPECT_EQ(metrics.grpc_web_requests[0]->Value(), 1u);
}

TEST_F(WebStreamTest, TextMayBeSplitAtEveryByte) {
  FramePeer& client = StartClient();
  // Two flushes of a client: padding inside of the stream.
  const std::string text = ToText(Message("first")) + ToText(Message("second one"));
  const std::string bytes = Message("first") + Message("second one");
  uint32_t id = 1;
  for (size_t cut = 0; cut <= text.size(); ++cut, id += 2) {
    client.Send(Headers(id, Block(WebRequest(kText))) + Data(id, text.substr(0, cut)));
    Run();
    client.Send(Data(id, text.substr(cut), kEndStream));
    Run();
    EXPECT_EQ(Up().streams[id].data, bytes) << cut;
    EXPECT_TRUE(Up().streams[id].end) << cut;
    Respond(Up(), id, Message("answer"));
    Run();
    EXPECT_EQ(Header(client.streams[id], "content-type"), "application/grpc-web-text+proto");
    EXPECT_EQ(FromText(client.streams[id].data), Message("answer") + TrailerFrame("grpc-status: 0\r\n")) << cut;
    EXPECT_TRUE(client.streams[id].end) << cut;
  }
}

TEST_F(WebStreamTest, AResponseMayBeSplitAtEveryByte) {
  FramePeer& client = StartClient();
  const std::string bytes = Message("a") + Message("bcde") + Message("") + Message("fg");
  uint32_t id = 1;
  for (const char* type : {kText, kBinary}) {
    for (size_t cut = 0; cut <= bytes.size(); ++cut, id += 2) {
      client.Send(Request(id, type, ""));
      Run();
      Up().Send(Headers(id, Block(GrpcResponse())) + Data(id, bytes.substr(0, cut)));
      Run();
      Up().Send(Data(id, bytes.substr(cut)));
      Run();
      Up().Send(Headers(id, Block(GrpcTrailers()), kLast));
      Run();
      const std::string& data = client.streams[id].data;
      EXPECT_EQ(type == kText ? FromText(data) : data, bytes + TrailerFrame("grpc-status: 0\r\n")) << type << cut;
      EXPECT_TRUE(client.streams[id].end);
    }
  }
}

TEST_F(WebStreamTest, NoMessageWaitsForTheNext) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ""));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())));
  std::string so_far;
  for (const char* message : {"x", "xy", "xyz", ""}) {
    Up().Send(Data(1, Message(message).substr(0, 3)));
    Run();
    Up().Send(Data(1, Message(message).substr(3)));
    Run();
    so_far += Message(message);
    EXPECT_EQ(FromText(client.streams[1].data), so_far);
    EXPECT_EQ(client.streams[1].data.size() % 4, 0u);  // what the client's library decodes as it comes
  }
}

TEST_F(WebStreamTest, AcceptDecidesWhatTheResponseIs) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, Message("q"), {{"accept", "application/grpc-web-text"}}) +
              Request(3, kText, ToText(Message("q")), {{"accept", "application/grpc-web+proto"}}) +
              Request(5, kText, ToText(Message("q")), {{"accept", "*/*"}}));
  Run();
  for (uint32_t id : {1, 3, 5}) {
    EXPECT_EQ(Up().streams[id].data, Message("q"));
    Respond(Up(), id, Message("a"));
  }
  Run();
  const std::string whole = Message("a") + TrailerFrame("grpc-status: 0\r\n");
  EXPECT_EQ(FromText(client.streams[1].data), whole);
  EXPECT_EQ(client.streams[3].data, whole);
  EXPECT_EQ(Header(client.streams[3], "content-type"), "application/grpc-web+proto");
  EXPECT_EQ(FromText(client.streams[5].data), whole);
}

TEST_F(WebStreamTest, TrailersAloneStayHeaders) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, "", {{"origin", kPage}}));
  Run();
  Up().Send(
      Headers(1, Block(With(GrpcResponse(), {{"grpc-status", "5"}, {"access-control-allow-origin", "*"}})), kLast));
  Run();
  EXPECT_EQ(
      client.streams[1].headers,
      std::vector<Fields>({{{":status", "200"},
                            {"content-type", "application/grpc-web-text+proto"},
                            {"grpc-status", "5"},
                            {"vary", "origin"},
                            {"access-control-allow-origin", kPage},
                            {"access-control-expose-headers", "grpc-status, grpc-message, grpc-status-details-bin"}}}));
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_EQ(client.streams[1].data, "");
}

// A client makes a status of the HTTP status; a reset would be a network error without a word to the page.
TEST_F(WebStreamTest, AResponseThatIsNotGrpcStaysWhatItIs) {
  FramePeer& client = StartClient();
  const Fields headers = {{":status", "200"}, {"content-type", "text/html"}, {"content-length", "6"}};
  for (uint32_t id : {1, 3, 5}) client.Send(Request(id, id == 3 ? kText : kBinary, "", {{"origin", kPage}}));
  Run();
  Up().Send(Headers(1, Block(headers)) + Data(1, "<html>", h2::kEndStream));
  Up().Send(Headers(3, Block(headers)) + Data(3, "<ht") + Data(3, "ml>", h2::kEndStream));
  Up().Send(Headers(5, Block(headers)) + Data(5, "<html>") + Headers(5, Block({{"x-sum", "1"}}), kLast));
  Run();
  for (uint32_t id : {1, 3, 5}) {
    const test::Heard& heard = client.streams[id];
    EXPECT_EQ(Header(heard, "content-type") + Header(heard, "content-length"), "text/html<none>") << id;
    EXPECT_EQ(Header(heard, "access-control-allow-origin"), kPage);
    EXPECT_EQ(heard.data, "<html>") << id;
    EXPECT_TRUE(heard.headers.size() == 1u && heard.end && !heard.reset);
  }
}

TEST_F(WebStreamTest, ErrorsOfTheProxyAreReadableByThePage) {
  routes[0].service = "other.Service";
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, Message("q"), {{"origin", kPage}}));
  Run();
  const test::Heard& heard = client.streams[1];
  ASSERT_EQ(heard.headers.size(), 1u);
  EXPECT_EQ(Header(heard, ":status"), "200");
  EXPECT_EQ(Header(heard, "content-type"), "application/grpc-web+proto");
  EXPECT_EQ(Header(heard, "grpc-status"), "12");
  EXPECT_EQ(Header(heard, "sluice-reason"), "no_route");
  EXPECT_EQ(Header(heard, "access-control-allow-origin"), kPage);
  EXPECT_TRUE(heard.end);
}

TEST_F(WebStreamTest, AGatesRefusalIsReadableByThePage) {
  routes[0].access = {{.action = AccessRule::Action::kDeny}};
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ToText(Message("q")), {{"origin", kPage}}));
  Run();
  EXPECT_EQ(Header(client.streams[1], "grpc-status"), "7");
  EXPECT_EQ(Header(client.streams[1], "access-control-allow-origin"), kPage);
  EXPECT_EQ(UpstreamCalls(), 0u);
}

TEST_F(WebStreamTest, TextThatIsNoBase64IsAnError) {
  FramePeer& client = StartClient();
  uint32_t id = 1;
  for (const char* text : {"AAAA*AAA", "AAAAA", "A===", "AAAA\n"}) {
    for (size_t cut = 0; cut <= std::string_view(text).size(); ++cut, id += 2) {
      client.Send(Headers(id, Block(WebRequest(kText, {{"origin", kPage}}))) +
                  Data(id, std::string(text).substr(0, cut)));
      Run();
      client.Send(Data(id, std::string(text).substr(cut), kEndStream));
      Run();
      const test::Heard& heard = client.streams[id];
      ASSERT_EQ(heard.headers.size(), 1u) << text << cut;
      EXPECT_EQ(Header(heard, "grpc-status"), "13");
      EXPECT_EQ(Header(heard, "sluice-reason"), "malformed_request");
      EXPECT_EQ(Header(heard, "access-control-allow-origin"), kPage);
      EXPECT_TRUE(heard.end);
      EXPECT_EQ(heard.reset.value_or(0), 0u);  // NO_ERROR, where the request had not ended
    }
  }
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kMalformedRequest)]->Value(), (id - 1) / 2);
  for (const auto& [up, stream] : Up().streams) EXPECT_TRUE(stream.reset || stream.headers.empty()) << up;
}

TEST_F(WebStreamTest, BadTextAfterTheResponseHasBegunEndsItWithAStatus) {
  FramePeer& client = StartClient();
  client.Send(Headers(1, Block(WebRequest(kText))) + Data(1, ToText(Message("q"))));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, Message("a")));
  Run();
  client.Send(Data(1, "????"));
  Run();
  const std::string body = FromText(client.streams[1].data);
  EXPECT_TRUE(body.starts_with(Message("a") + "\x80")) << body;
  EXPECT_NE(body.find("grpc-status: 13\r\n"), body.npos);
  EXPECT_NE(body.find("sluice-reason: malformed_request\r\n"), body.npos);
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_TRUE(Up().streams[1].reset);
}

// Behind a part of a message the trailers would be read as the rest of it.
TEST_F(WebStreamTest, AResponseThatEndsInsideOfAMessageIsReset) {
  FramePeer& client = StartClient();
  uint32_t id = 1;
  for (const char* type : {kText, kBinary}) {
    client.Send(Request(id, type, ""));
    Run();
    Up().Send(Headers(id, Block(GrpcResponse())) + Data(id, Message("whole") + Message("half").substr(0, 7)) +
              Headers(id, Block(GrpcTrailers("14")), kLast));
    Run();
    EXPECT_EQ(client.streams[id].reset, 2u) << type;  // INTERNAL_ERROR
    EXPECT_FALSE(client.streams[id].end);
    id += 2;
  }
}

TEST_F(WebStreamTest, AnEndpointCannotSendTrailersAsAMessage) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, ""));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, TrailerFrame("grpc-status: 0\r\n")));
  Run();
  EXPECT_EQ(client.streams[1].data, "");
  EXPECT_EQ(client.streams[1].reset, 2u);
  EXPECT_TRUE(Up().streams[1].reset) << "the call has ended, too";
}

TEST_F(WebStreamTest, AResponseThatWasLostHasItsStatusInTheBody) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ""));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, Message("a")) + h2::RstStream(1, 8));
  Run();
  const std::string body = FromText(client.streams[1].data);
  EXPECT_TRUE(body.starts_with(Message("a") + "\x80"));
  EXPECT_NE(body.find("grpc-status: 1\r\n"), body.npos) << body;
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(WebStreamTest, TheDeadlineIsTheClients) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, "", {{"grpc-timeout", "100m"}, {"origin", kPage}}) +
              Request(3, kText, "", {{"grpc-timeout", "100m"}}));
  Run();
  Up().Send(Headers(3, Block(GrpcResponse())) + Data(3, Message("a")));
  Run();
  Advance(milliseconds(101));
  EXPECT_EQ(Header(client.streams[1], "grpc-status"), "4");
  EXPECT_EQ(Header(client.streams[1], "access-control-allow-origin"), kPage);
  const std::string body = FromText(client.streams[3].data);
  EXPECT_TRUE(body.starts_with(Message("a") + "\x80"));
  EXPECT_NE(body.find("grpc-status: 4\r\n"), body.npos);
  EXPECT_TRUE(Up().streams[1].reset && Up().streams[3].reset);
}

TEST_F(WebStreamTest, ACancelledCallIsCancelledAtTheEndpoint) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ToText(Message("q"))));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, Message("a")));
  Run();
  client.Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(Up().streams[1].reset, 8u);
}

TEST_F(WebStreamTest, AStopIsAStatusInTheBody) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kBinary, ""));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, Message("a")));
  Run();
  worker->EndCalls();
  if (home) home->EndCalls();
  Run();
  EXPECT_TRUE(client.streams[1].data.starts_with(Message("a") + "\x80"));
  EXPECT_NE(client.streams[1].data.find("grpc-status: 14\r\n"), std::string::npos);
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(WebStreamTest, ACallGoesOnWhileItsConnectionDrains) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ""));
  Run();
  Up().Send(Headers(1, Block(GrpcResponse())) + Data(1, Message("a")));
  Run();
  front().DrainDownstream();
  Run();
  EXPECT_GT(client.Count(h2::kGoaway), 0u);
  Up().Send(Data(1, Message("b")) + Headers(1, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(FromText(client.streams[1].data), Message("a") + Message("b") + TrailerFrame("grpc-status: 0\r\n"));
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(WebStreamTest, ARefusedRequestIsTriedAgainWithItsBody) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ToText(Message("q"))));
  Run();
  Up().Send(h2::RstStream(1, 7));  // REFUSED_STREAM
  Run();
  EXPECT_EQ(Up().streams[3].data, Message("q"));
  Respond(Up(), 3, Message("a"));
  Run();
  EXPECT_EQ(FromText(client.streams[1].data), Message("a") + TrailerFrame("grpc-status: 0\r\n"));
}

TEST_F(WebStreamTest, EachByteOfARequestIsCreditedOnce) {
  FramePeer& client = StartClient();
  const std::string bytes = Message(std::string(900'000, 'm'));  // what base64 adds is more than a window
  const std::string text = ToText(bytes);
  client.Send(Headers(1, Block(WebRequest(kText))));
  for (size_t at = 0; at < text.size(); at += 10'001) {
    client.Send(Data(1, text.substr(at, 10'001)));
    Run();
  }
  EXPECT_EQ(Up().streams[1].data, bytes);
  // Credits are batched: what is left is less than half of the window.
  EXPECT_GT(client.Credited(1) + listener.http2.stream_window_bytes / 2, text.size());
  EXPECT_LE(client.Credited(1), text.size());
  client.Send(Data(1, "", kEndStream));
  Run();
  EXPECT_TRUE(Up().streams[1].end);
}

TEST_F(WebStreamTest, AGroupThatAFrameCompletesCreditsNoMoreThanHasCome) {
  FramePeer& client = StartClient();
  client.Send(Headers(1, Block(WebRequest(kText))));
  Run();
  Up().credit = false;
  const std::string text = ToText(Message(std::string(180'000, 'm')));
  ASSERT_LE(text.size(), listener.http2.stream_window_bytes);
  for (size_t at = 0; at < text.size();) {
    for (const size_t size : {size_t{8003}, size_t{1}}) {  // three characters of a group, and its last
      client.Send(Data(1, text.substr(std::min(at, text.size()), size)));
      at += size;
      Run();
    }
  }
  // What base64 adds, and what the endpoint's window has let through.
  EXPECT_LE(client.Credited(1), text.size() / 4 + Up().streams[1].data.size() + 4);
  EXPECT_LT(Up().streams[1].data.size(), 180'000u);
}

TEST_F(WebStreamTest, ASlowReaderStopsTheEndpoint) {
  uint32_t id = 1;
  FramePeer& client = StartClient({{4, 0}});  // SETTINGS_INITIAL_WINDOW_SIZE
  const size_t window = cluster.http2.stream_window_bytes;
  for (const char* type : {kText, kBinary}) {
    client.Send(Request(id, type, ""));
    Run();
    Up().Send(Headers(id, Block(GrpcResponse())));
    std::string bytes;
    while (bytes.size() + 5 <= window) bytes += Message("");
    for (size_t at = 0; at < bytes.size(); at += 16'000) Up().Send(Data(id, bytes.substr(at, 16'000)));
    Run();
    EXPECT_EQ(Up().Credited(id), 0u);
    client.credit = false;
    const std::string& read = client.streams[id].data;
    const size_t all = type == kText ? bytes.size() / 3 * 4 : bytes.size();
    for (int i = 0; i < 10'000 && read.size() < all / 4 * 3; ++i) {
      client.Send(h2::WindowUpdate(id, 997) + h2::WindowUpdate(0, 997));
      Run();
      // Text has four characters for three bytes.
      EXPECT_LE(Up().Credited(id), type == kText ? read.size() / 4 * 3 + 5 : read.size());
    }
    EXPECT_GT(Up().Credited(id), 0u);
    Up().Send(Headers(id, Block(GrpcTrailers()), kLast));
    client.Send(h2::WindowUpdate(id, 1 << 20) + h2::WindowUpdate(0, 1 << 20));
    Run();
    const std::string& data = client.streams[id].data;
    EXPECT_EQ(type == kText ? FromText(data) : data, bytes + TrailerFrame("grpc-status: 0\r\n"));
    id += 2;
  }
}

TEST_F(WebStreamTest, OnlyPostIsGrpcWeb) {
  FramePeer& client = StartClient();
  Fields get = WebRequest(kText);
  get[0].second = "GET";
  client.Send(Headers(1, Block(get)) + Data(1, "not base64", kEndStream));
  Run();
  EXPECT_EQ(Header(Up().streams[1], "content-type"), kText);
  EXPECT_EQ(Up().streams[1].data, "not base64");
}

TEST_F(WebStreamTest, GrpcBesideItIsAsEver) {
  FramePeer& client = StartClient();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, Message("q"), kEndStream));
  Run();
  Respond(Up(), 1, Message("a"));
  Run();
  EXPECT_EQ(client.streams[1].headers, (std::vector<Fields>{GrpcResponse(), GrpcTrailers()}));
  EXPECT_EQ(client.streams[1].data, Message("a"));
}

TEST_F(WebStreamTest, WhereItIsOffEverythingGoesAsItCame) {
  listener.grpc_web = {};
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, "AAAA"));
  client.Send(Headers(3, Block(test::Preflight(kPage)), kLast));
  Run();
  EXPECT_EQ(Header(Up().streams[1], "content-type"), kText);
  EXPECT_EQ(Up().streams[1].data, "AAAA");
  EXPECT_EQ(Header(Up().streams[3], ":method"), "OPTIONS");
}

// --- CORS ---

TEST_F(WebStreamTest, APreflightIsAnsweredHere) {
  routes[0].access = {{.action = AccessRule::Action::kDeny}};
  FramePeer& client = StartClient();
  client.Send(Headers(1, Block(test::Preflight(kPage)), kLast) +
              Headers(3, Block(test::Preflight("https://evil.org")), kLast));
  Run();
  EXPECT_EQ(Header(client.streams[1], ":status"), "204");
  EXPECT_EQ(Header(client.streams[1], "access-control-allow-origin"), kPage);
  EXPECT_TRUE(client.streams[1].end);
  EXPECT_EQ(client.streams[3].headers, (std::vector<Fields>{{{":status", "204"}, {"vary", "origin"}}}));
  EXPECT_EQ(UpstreamCalls(), 0u);
  EXPECT_EQ(metrics.cors_preflights[1]->Value(), 1u);
  EXPECT_EQ(metrics.cors_preflights[0]->Value(), 1u);
}

TEST_F(WebStreamTest, WithoutCorsPreflightsAndFieldsAreTheEndpoints) {
  listener.grpc_web.cors = {};
  FramePeer& client = StartClient();
  client.Send(Headers(1, Block(test::Preflight(kPage)), kLast) + Request(3, kBinary, "", {{"origin", kPage}}));
  Run();
  EXPECT_EQ(Header(Up().streams[1], ":method"), "OPTIONS");
  Up().Send(Headers(3, Block(With(GrpcResponse(), {{"access-control-allow-origin", "*"}}))) +
            Headers(3, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[3].headers, (std::vector<Fields>{{{":status", "200"},
                                                             {"content-type", "application/grpc-web+proto"},
                                                             {"access-control-allow-origin", "*"}}}));
}

// --- The response cache ---

class WebCacheTest : public WebStreamTest {
 public:
  WebCacheTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }
  static std::string Native(uint32_t id) {
    return Headers(id, Block(h2::GrpcRequest())) + Data(id, Message("q"), kEndStream);
  }
};

TEST_F(WebCacheTest, OneEntryAnswersEachInItsOwnProtocol) {
  FramePeer& client = StartClient();
  client.Send(Native(1));
  Run();
  Respond(Up(), 1, Message("a"));
  Run();
  client.Send(Request(3, kBinary, Message("q"), {{"origin", kPage}}) + Request(5, kText, ToText(Message("q"))) +
              Native(7));
  Run();
  EXPECT_EQ(UpstreamCalls(), 1u);
  const std::string whole = Message("a") + TrailerFrame("grpc-status: 0\r\n");
  EXPECT_EQ(Header(client.streams[3], "content-type"), "application/grpc-web+proto");
  EXPECT_EQ(Header(client.streams[3], "sluice-cache"), "hit");
  EXPECT_EQ(Header(client.streams[3], "access-control-allow-origin"), kPage);
  EXPECT_EQ(client.streams[3].data, whole);
  EXPECT_EQ(Header(client.streams[5], "content-type"), "application/grpc-web-text+proto");
  EXPECT_EQ(FromText(client.streams[5].data), whole);
  EXPECT_EQ(Header(client.streams[7], "content-type"), "application/grpc");
  EXPECT_EQ(client.streams[7].data, Message("a"));
  EXPECT_EQ(client.streams[7].headers.back(), GrpcTrailers());
}

TEST_F(WebCacheTest, WhatAPageAskedForIsStoredAsGrpc) {
  FramePeer& client = StartClient();
  client.Send(Request(1, kText, ToText(Message("q")), {{"origin", kPage}}));
  Run();
  Respond(Up(), 1, Message("a"));
  Run();
  EXPECT_EQ(FromText(client.streams[1].data), Message("a") + TrailerFrame("grpc-status: 0\r\n"));
  client.Send(Native(3));
  Run();
  EXPECT_EQ(UpstreamCalls(), 1u);
  EXPECT_EQ(client.streams[3].data, Message("a"));
  EXPECT_EQ(Header(client.streams[3], "content-type"), "application/grpc");
  EXPECT_EQ(Header(client.streams[3], "access-control-allow-origin"), "<none>");
}

TEST_F(WebCacheTest, CallsOfBothKindsJoinOneFetch) {
  FramePeer& client = StartClient();
  client.Send(Native(1) + Request(3, kBinary, Message("q")) + Request(5, kText, ToText(Message("q"))));
  Run();
  EXPECT_EQ(UpstreamCalls(), 1u);
  Respond(Up(), 1, Message("a"));
  Run();
  const std::string whole = Message("a") + TrailerFrame("grpc-status: 0\r\n");
  EXPECT_EQ(client.streams[1].data, Message("a"));
  EXPECT_EQ(client.streams[3].data, whole);
  EXPECT_EQ(FromText(client.streams[5].data), whole);
}

TEST_F(WebCacheTest, TextInPiecesIsLookedUpAsAWhole) {
  FramePeer& client = StartClient();
  client.Send(Native(1));
  Run();
  Respond(Up(), 1, Message("a"));
  Run();
  const std::string text = ToText(Message("q"));
  uint32_t id = 3;
  for (size_t cut = 1; cut <= text.size(); ++cut, id += 2) {
    client.Send(Headers(id, Block(WebRequest(kText))) + Data(id, text.substr(0, cut)) +
                Data(id, text.substr(cut), kEndStream));
    Run();
    EXPECT_EQ(Header(client.streams[id], "sluice-cache"), "hit") << cut;
  }
  EXPECT_EQ(UpstreamCalls(), 1u);
}

TEST_F(WebCacheTest, BadTextIsNoHit) {
  FramePeer& client = StartClient();
  client.Send(Native(1));
  Run();
  Respond(Up(), 1, Message("a"));
  Run();
  client.Send(Request(3, kText, ToText(Message("q")) + "?"));
  client.Send(Headers(5, Block(WebRequest(kText))) + Data(5, "?") + Data(5, "AAAA") + h2::RstStream(5, 8));
  Run();
  EXPECT_EQ(Header(client.streams[3], "grpc-status"), "13");
  EXPECT_EQ(Header(client.streams[5], "grpc-status"), "13");
  // The rest of such a request is not heard, though by itself it would be one.
  client.Send(Headers(7, Block(WebRequest(kText))) + Data(7, "?") + Data(7, ToText(Message("q")), kEndStream));
  Run();
  EXPECT_EQ(Header(client.streams[7], "grpc-status"), "13");
  EXPECT_EQ(response_cache->stats().hits, 0u);
}

}  // namespace
}  // namespace sluice::proxy
