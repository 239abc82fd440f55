// Calls and the response cache where something else happens meanwhile: a new endpoint list, a route's time limit, a client
// that dribbles its message; and what is counted then.
#include <gmock/gmock.h>

#include "base/slice.h"
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
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;
using ::testing::HasSubstr;

std::string Message(std::string_view bytes) { return std::string(1, '\0') + h2::Big(bytes.size(), 4) + std::string(bytes); }

class CallCacheEdgeTest : public test::ProxyFixture {
 public:
  CallCacheEdgeTest() { routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}}; }

  void Call(FramePeer& client, uint32_t id, std::string_view message, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message(message), h2::kEndStream));
    Run();
  }
  void Answer(const std::string& address, uint32_t id, std::string_view message) {
    Up(address).Send(Headers(id, Block(GrpcResponse())) + Data(id, Message(message)) +
                     Headers(id, Block(GrpcTrailers()), kLast));
    Run();
  }
  // 16 KiB that need no answer.
  static std::string Other() { return h2::RawFrame(0xee, 0, 0, std::string(16'000, 'x')); }
  int64_t Errors(base::ErrorKind kind) { return static_cast<int64_t>(metrics.errors[static_cast<size_t>(kind)]->Value()); }
};

// Between any two bytes of the message, other frames fill read blocks.
TEST_F(CallCacheEdgeTest, AMessageThatDribblesInPinsNoReadBlocks) {
  routes[0].retry.attempts_max = 1;  // nothing is kept for another attempt
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const std::string message = Message(std::string(100, 'x'));
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  const size_t before = base::Block::LiveBytes();
  for (size_t i = 0; i + 1 < message.size(); ++i) {
    client.Send(Data(1, message.substr(i, 1)) + Other());
    Run();
  }
  EXPECT_LT(base::Block::LiveBytes() - before, 600'000u);
  client.Send(Data(1, message.substr(message.size() - 1), h2::kEndStream));
  Run();
  EXPECT_EQ(Up().streams[1].data, message);
}

TEST_F(CallCacheEdgeTest, AResponseThatDribblesInPinsNoReadBlocks) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Call(client, 1, "q");
  const std::string message = Message(std::string(100, 'x'));
  Up().Send(Headers(1, Block(GrpcResponse())));
  Run();
  const size_t before = base::Block::LiveBytes();
  for (size_t i = 0; i < message.size(); ++i) {
    Up().Send(Data(1, message.substr(i, 1)) + Other());
    Run();
  }
  EXPECT_LT(base::Block::LiveBytes() - before, 600'000u);
  Up().Send(Headers(1, Block(GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].data, message);
}

}  // namespace
}  // namespace sluice::proxy
