// Which frame of a request and of a response ends its stream: the same one behind the proxy as before it. gRPC servers
// and clients tell cases apart by it (gRPC over HTTP/2: EOS of a request is on DATA; Trailers-Only is one HEADERS).
#include <gtest/gtest.h>

#include <set>

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
using h2::kEndStream;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FakeHost;
using test::FramePeer;
using test::kLast;

class CallFramingTest : public test::ProxyFixture {
 public:
  // The frames that carry the message on stream `id`, as "HEADERS DATA:7 DATA:0+END".
  static std::string Shape(const FramePeer& peer, uint32_t id) {
    std::string out;
    for (const h2::Frame& frame : peer.frames) {
      if (frame.stream != id || (frame.type != h2::kHeaders && frame.type != h2::kData)) continue;
      if (!out.empty()) out += ' ';
      out += frame.type == h2::kHeaders ? "HEADERS" : "DATA:" + std::to_string(frame.payload.size());
      if (frame.has(kEndStream)) out += "+END";
    }
    return out;
  }
};

TEST_F(CallFramingTest, ARequestThatEndsWithEmptyDataDoesNotEndInItsHeaders) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) {  // the second finds a connection
    client.Send(Headers(id, Block(GrpcRequest())) + Data(id, "", kEndStream));
    Run();
    EXPECT_EQ(Shape(Up(), id), "HEADERS DATA:0+END");
  }
}

TEST_F(CallFramingTest, ARequestThatEndsInItsHeadersHasNoData) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) {
    client.Send(Headers(id, Block(GrpcRequest()), kLast));
    Run();
    EXPECT_EQ(Shape(Up(), id), "HEADERS+END");
  }
}

TEST_F(CallFramingTest, TheEndOfARequestGoesOnTheLastDataThereIs) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, "message") + Data(1, "", kEndStream));
  Run();
  EXPECT_EQ(Shape(Up(), 1), "HEADERS DATA:7+END");
  client.Send(Headers(3, Block(GrpcRequest())));
  Run();
  client.Send(Data(3, "message"));
  Run();
  client.Send(Data(3, "", kEndStream));
  Run();
  EXPECT_EQ(Shape(Up(), 3), "HEADERS DATA:7 DATA:0+END");
}

TEST_F(CallFramingTest, ARequestOfTrailersOnlyHasNoData) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Headers(1, Block({{"checksum", "7"}}), kLast));
  Run();
  EXPECT_EQ(Shape(Up(), 1), "HEADERS HEADERS+END");
}

TEST_F(CallFramingTest, ARetryEndsTheRequestAsTheFirstAttemptDid) {
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, "", kEndStream) + Headers(3, Block(GrpcRequest()), kLast));
  Run();
  for (const char* address : {"10.0.0.1:1", "10.0.0.2:1"}) Up(address).Send(h2::RstStream(1, 7));  // REFUSED_STREAM
  Run();
  // Each host has refused one of the two and taken the other.
  std::multiset<std::string> shapes;
  for (const char* address : {"10.0.0.1:1", "10.0.0.2:1"}) {
    for (uint32_t id : {1, 3}) shapes.insert(Shape(Up(address), id));
  }
  EXPECT_EQ(shapes,
            (std::multiset<std::string>{"HEADERS DATA:0+END", "HEADERS DATA:0+END", "HEADERS+END", "HEADERS+END"}));
}

TEST_F(CallFramingTest, ARequestThatWaitedForAConnectionEndsAsItCame) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").settings = {{3, 1}};  // one stream at a time
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  net.host("10.0.0.1:1").mode = FakeHost::Mode::kHang;
  client.Send(Headers(3, Block(GrpcRequest())) + Data(3, "", kEndStream));
  client.Send(Headers(5, Block(GrpcRequest()), kLast));
  Run();
  for (uint32_t id : {1, 3, 5}) {
    Respond(Up(), id, "");
    Run();
  }
  EXPECT_EQ(Shape(Up(), 3), "HEADERS DATA:0+END");
  EXPECT_EQ(Shape(Up(), 5), "HEADERS+END");
}

// Such a request has no message, so it has no key: it goes by itself, through the wait for its message.
TEST_F(CallFramingTest, ARequestWithoutMessageOfACachedMethodEndsAsItCame) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, "", kEndStream));
  Run();
  client.Send(Headers(3, Block(GrpcRequest())));
  Run();
  client.Send(Data(3, "", kEndStream));
  Run();
  client.Send(Headers(5, Block(GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(Shape(Up(), 1), "HEADERS DATA:0+END");
  EXPECT_EQ(Shape(Up(), 3), "HEADERS DATA:0+END");
  EXPECT_EQ(Shape(Up(), 5), "HEADERS+END");
}

TEST_F(CallFramingTest, AFetchEndsItsRequestOnData) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, Message("")) + Data(1, "", kEndStream));
  Run();
  EXPECT_EQ(Shape(Up(), 1), "HEADERS DATA:5+END");
}

struct Response {
  const char* name;
  std::string frames;  // on stream 1
  const char* shape;
};
const Fields kOnly = With(GrpcResponse(), {{"grpc-status", "5"}});
const Response kResponses[] = {
    {"trailers-only", Headers(1, Block(kOnly), kLast), "HEADERS+END"},
    {"no message", Headers(1, Block(GrpcResponse())) + Headers(1, Block(GrpcTrailers("5")), kLast),
     "HEADERS HEADERS+END"},
    {"a message", Headers(1, Block(GrpcResponse())) + Data(1, Message("m")) + Headers(1, Block(GrpcTrailers()), kLast),
     "HEADERS DATA:6 HEADERS+END"},
};

TEST_F(CallFramingTest, AResponseEndsWithTheFrameItEndedWith) {
  Start({"10.0.0.1:1"});
  uint32_t stream = 1;
  for (const Response& response : kResponses) {
    for (bool at_once : {true, false}) {
      SCOPED_TRACE(std::string(response.name) + (at_once ? ", in one piece" : ", frame by frame"));
      FramePeer& client = Client();
      client.Send(Headers(1, Block(GrpcRequest()), kLast));
      Run();
      std::string wire = response.frames;
      std::string on_stream;
      for (const h2::Frame& frame : h2::TakeFrames(wire)) {
        on_stream += h2::RawFrame(frame.type, frame.flags, stream, frame.payload);
        if (!at_once) {
          Up().Send(std::exchange(on_stream, {}));
          Run();
        }
      }
      Up().Send(on_stream);
      Run();
      EXPECT_EQ(Shape(client, 1), response.shape);
      stream += 2;
    }
  }
}

TEST_F(CallFramingTest, AFetchedResponseEndsWithTheFrameItEndedWith) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes[0].cache.errors = {5};
  Start({"10.0.0.1:1"});
  uint32_t stream = 1;
  for (const Response& response : kResponses) {
    SCOPED_TRACE(response.name);
    const std::string message = Data(1, Message(response.name), kEndStream);
    FramePeer &first = Client(), &second = Client();
    for (FramePeer* client : {&first, &second}) client->Send(Headers(1, Block(GrpcRequest())) + message);
    Run();
    std::string wire = response.frames;
    for (const h2::Frame& frame : h2::TakeFrames(wire)) {
      Up().Send(h2::RawFrame(frame.type, frame.flags, stream, frame.payload));
    }
    Run();
    FramePeer& third = Client();  // of what is stored
    third.Send(Headers(1, Block(GrpcRequest())) + message);
    Run();
    for (FramePeer* client : {&first, &second, &third}) EXPECT_EQ(Shape(*client, 1), response.shape);
    stream += 2;
  }
  EXPECT_EQ(Shape(Up(), stream), "");  // one call for all three
}

}  // namespace
}  // namespace sluice::proxy
