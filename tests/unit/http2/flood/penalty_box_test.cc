#include "http2/flood/penalty_box.h"

#include <gtest/gtest.h>

#include <string>

#include "unit/http2/connection/connection_fixture.h"

namespace sluice::http2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::TimePoint kStart{seconds(1000)};

std::string Address(size_t i) { return "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ":1"; }

TEST(PenaltyBox, AnAddressIsRememberedForAWhile) {
  PenaltyBox box;
  EXPECT_FALSE(box.Has("10.0.0.1:5", kStart));
  box.Note("10.0.0.1:5", kStart);
  EXPECT_TRUE(box.Has("10.0.0.1:6", kStart));
  EXPECT_FALSE(box.Has("10.0.0.2:5", kStart));
  EXPECT_FALSE(box.Has("unix:/a", kStart));
  const base::TimePoint end = kStart + PenaltyBox::kRemembered;
  EXPECT_TRUE(box.Has("10.0.0.1:6", end - milliseconds(1)));
  EXPECT_FALSE(box.Has("10.0.0.1:6", end));
}

TEST(PenaltyBox, EachTimeCountsAnew) {
  PenaltyBox box;
  box.Note("10.0.0.1:5", kStart);
  box.Note("10.0.0.1:5", kStart + seconds(9));
  box.Note("10.0.0.2:5", kStart);
  EXPECT_TRUE(box.Has("10.0.0.1:5", kStart + seconds(18)));
  EXPECT_FALSE(box.Has("10.0.0.2:5", kStart + seconds(18)));
}

TEST(PenaltyBox, UnixSocketsAreOne) {
  PenaltyBox box;
  box.Note("unix:", kStart);
  EXPECT_TRUE(box.Has("unix:/other", kStart));
  EXPECT_FALSE(box.Has("[::1]:4", kStart));
}

TEST(PenaltyBox, TheTableIsBoundedAndForgetsTheOldestFirst) {
  PenaltyBox box;
  for (size_t i = 0; i <= PenaltyBox::kAddressesMax; ++i) box.Note(Address(i), kStart + milliseconds(i));
  EXPECT_EQ(box.size(), PenaltyBox::kAddressesMax);
  const base::TimePoint now = kStart + milliseconds(PenaltyBox::kAddressesMax);
  EXPECT_FALSE(box.Has(Address(0), now));
  EXPECT_TRUE(box.Has(Address(1), now));
  EXPECT_TRUE(box.Has(Address(PenaltyBox::kAddressesMax), now));
  // Later all of them are over, and go together.
  box.Note("192.0.2.1:1", now + PenaltyBox::kRemembered);
  EXPECT_EQ(box.size(), 1u);
}

// A connection of an address that was cut off.
class AbuseDelayTest : public ConnectionTest {
 public:
  AbuseDelayTest() { context.abuse = FloodReports(&record); }
  void CutOff() { record.clients.Note("peer", time.worker.now()); }
  void Request() {
    peer->Send(h2::Headers(1, h2::Block(h2::GrpcRequest())));
    Run();
  }
  metrics::Registry registry{2};
  FloodRecord record{registry};
};

TEST_F(AbuseDelayTest, IsReadOnlyAfterTheDelay) {
  CutOff();
  Start(Role::kServer);
  Request();
  Advance(milliseconds(999));
  EXPECT_EQ(log, Strings{});
  EXPECT_EQ(record.delayed->Value(), 1u);
  Advance(milliseconds(1));
  EXPECT_EQ(log, Strings{"request 1"});
}

TEST_F(AbuseDelayTest, AFloodOnOneDelaysTheNext) {
  StartAndFlood();
  Advance(seconds(2));
  connection.reset();
  Start(Role::kServer);
  Request();
  EXPECT_EQ(log, Strings{});
  Advance(seconds(1));
  EXPECT_EQ(log, Strings{"request 1"});
}

// One call with too much metadata, and behind a sidecar's address are all calls of the application.
TEST_F(AbuseDelayTest, AHeaderBlockThatIsTooLargeDelaysNone) {
  options.session.header_block_bytes_max = 20'000;
  Start(Role::kServer);
  peer->Send(h2::Headers(1, std::string(16'384, '\0'), 0) + h2::Continuation(1, std::string(16'384, '\0'), 0));
  Run();
  ASSERT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_EQ(record.downstream[static_cast<size_t>(FloodKind::kHeaderBlock)]->Value(), 1u);
  EXPECT_EQ(record.clients.size(), 0u);
  Advance(seconds(2));
  connection.reset();
  Start(Role::kServer);
  Request();
  EXPECT_EQ(log, Strings{"request 1"});
}

TEST_F(AbuseDelayTest, AFloodOfABackendDelaysNoClient) {
  options.session.settings_per_second = 16;
  Start(Role::kClient);
  for (int i = 0; i < 16; ++i) peer->Send(h2::Settings());
  Run();
  ASSERT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_EQ(record.clients.size(), 0u);
}

TEST_F(AbuseDelayTest, LaterOrWithoutADelayItIsReadAtOnce) {
  CutOff();
  time.clock.Advance(PenaltyBox::kRemembered);
  time.Run();
  Start(Role::kServer);
  Request();
  EXPECT_EQ(log, Strings{"request 1"});
  EXPECT_EQ(record.delayed->Value(), 0u);
}

TEST_F(AbuseDelayTest, ADelayOfZeroIsNone) {
  CutOff();
  options.life.abuse_delay = milliseconds(0);
  Start(Role::kServer);
  Request();
  EXPECT_EQ(log, Strings{"request 1"});
}

TEST_F(AbuseDelayTest, BackendsAreNotDelayed) {
  CutOff();
  Start(Role::kClient);
  Stream& stream = Open();
  Run();
  peer->Send(h2::Headers(stream.id(), h2::Block(h2::GrpcResponse())));
  Run();
  EXPECT_EQ(log.size(), 1u);
}

TEST_F(AbuseDelayTest, NoOtherBoundRunsMeanwhile) {
  CutOff();
  options.life.abuse_delay = seconds(5);
  options.life.headers_timeout = seconds(1);
  options.life.idle_timeout = seconds(2);
  options.keepalive.interval = options.keepalive.timeout = milliseconds(500);
  Start(Role::kServer);
  for (int i = 0; i < 4; ++i) Advance(seconds(1));
  Request();
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  EXPECT_EQ(peer->Count(h2::kPing), 0u);
  Advance(seconds(1));
  EXPECT_EQ(log, Strings{"request 1"});
}

TEST_F(AbuseDelayTest, AClosedOneIsGoneWithinTheUsualBound) {
  CutOff();
  Start(Role::kServer);
  connection->Close(ErrorCode::kNoError, "enough");
  Run();
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  peer->wire().ShutdownWrite();
  Run();
  EXPECT_TRUE(connection->closed());
}

}  // namespace
}  // namespace sluice::http2
