// Calls that wait for a stream on connections that are there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pool_fixture.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;

constexpr uint16_t kStreamsMax = 3;  // SETTINGS_MAX_CONCURRENT_STREAMS

class PoolPendingTest : public EndpointPoolTest {
 public:
  PoolPendingTest() { options.connections_max = 2; }
  uint32_t Bad() { return endpoint->MakeCell(0).bad; }
};

TEST_F(PoolPendingTest, AServerThatAllowsNoStreamsEndsTheWaitAndIsEvidence) {
  host.settings = {{kStreamsMax, 0}};
  NewCall("a");
  Run();
  EXPECT_EQ(host.connections.size(), 2u);
  EXPECT_TRUE(Pool().AllowsNone());
  Advance(milliseconds(500));
  NewCall("b");
  Advance(milliseconds(1499));
  EXPECT_EQ(Log(), Strings{});
  Advance(milliseconds(1));
  EXPECT_EQ(Log(), (Strings{"a pending_timeout"}));
  EXPECT_EQ(Bad(), 1u);
  EXPECT_EQ(endpoint->MakeCell(0).cause.load(), Cause::kNoStream);
  Advance(milliseconds(500));
  EXPECT_EQ(Log(), (Strings{"b pending_timeout"}));
  EXPECT_EQ(Bad(), 2u);
}

TEST_F(PoolPendingTest, CallsPassItOverAfterATenthOfASecondAndComeBackWhenThereIsRoom) {
  host.settings = {{kStreamsMax, 0}};
  NewCall("a");
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
  Advance(EndpointPool::kConnectGrace);
  EXPECT_FALSE(Pool().TakesCalls());
  EXPECT_TRUE(Pool().Usable()) << "a call that has nowhere else to go may wait";
  Advance(seconds(2));
  EXPECT_EQ(Log(), (Strings{"a pending_timeout"}));
  EXPECT_FALSE(Pool().TakesCalls()) << "that no call waits is no room";
  Run();
  EXPECT_EQ(host.dials, 2) << "connections_max holds for those that pass it over, too";
  host.last().Send(h2::Settings({{kStreamsMax, 10}}));
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
  NewCall("b");
  EXPECT_EQ(Log(), (Strings{"b connection"}));
}

TEST_F(PoolPendingTest, StreamsThatCallersKeepOpenAreNoEvidence) {
  options.connections_max = 1;
  host.settings = {{kStreamsMax, 1}};
  NewCall("a");
  Run();
  NewCall("b");
  EXPECT_FALSE(Pool().AllowsNone());
  Advance(EndpointPool::kConnectGrace);
  EXPECT_FALSE(Pool().TakesCalls()) << "other endpoints can take its calls";
  Advance(seconds(2));
  EXPECT_EQ(Log(), (Strings{"a connection", "b pending_timeout"}));
  EXPECT_EQ(Bad(), 0u);
  std::exchange(callers[0]->stream, nullptr)->Release();
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
}

TEST_F(PoolPendingTest, AQueueThatMovesIsNotPassedOver) {
  options.connections_max = 1;
  host.settings = {{kStreamsMax, 1}};
  NewCall("a");
  Run();
  for (int i = 0; i < 10; ++i) NewCall(std::to_string(i));
  for (int i = 0; i < 10; ++i) {
    Advance(milliseconds(90));
    EXPECT_TRUE(Pool().TakesCalls()) << i;
    std::exchange(callers[static_cast<size_t>(i)]->stream, nullptr)->Release();
    Run();
  }
}

TEST_F(PoolPendingTest, AConnectUnderWayHasItsOwnBound) {
  options.pending_timeout = milliseconds(200);
  options.connect_timeout = seconds(1);
  host.mode = FakeHost::Mode::kHang;
  NewCall("a");
  Advance(milliseconds(900));
  EXPECT_EQ(Log(), Strings{});
  host.mode = FakeHost::Mode::kAccept;
  net.Answer("10.0.0.1:1");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection"}));
}

// Requests that are not read hold the connection's window, and new ones would wait behind them.
TEST_F(PoolPendingTest, AConnectionWhoseWindowIsUsedUpIsPassedOver) {
  NewCall("a");
  Run();
  host.last().credit = false;
  while (host.connections.size() == 1 && callers.size() < 60) {
    Caller& unread = NewCall("b");
    Run();
    ASSERT_NE(unread.stream, nullptr);
    if (host.connections.size() == 1) unread.stream->SendData(base::Slice::Copy(std::string(65535, 'x')), false);
    Run();
  }
  ASSERT_EQ(host.connections.size(), 2u);
  Caller& call = NewCall("d");
  ASSERT_NE(call.stream, nullptr);
  call.stream->SendData(base::Slice::Copy("request"), true);
  Run();
  EXPECT_TRUE(call.stream->send_complete());
  EXPECT_EQ(host.connections.size(), 2u);
}

}  // namespace
}  // namespace sluice::upstream
