#include "http2/flood/penalty_box.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/http2/connection/connection_fixture.h"

namespace sluice::http2 {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr base::TimePoint kStart{seconds(1000)};

std::string Address(size_t i) { return "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + ":1"; }

TEST(PenaltyBox, AnAddressIsRememberedForAWhile) {
  PenaltyBox box;
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart), 0u);
  box.Note("10.0.0.1:5", kStart);
  EXPECT_EQ(box.Count("10.0.0.1:6", kStart), 1u);
  EXPECT_EQ(box.Count("10.0.0.2:5", kStart), 0u);
  EXPECT_EQ(box.Count("unix:/a", kStart), 0u);
  const base::TimePoint end = kStart + PenaltyBox::kForgets;
  EXPECT_EQ(box.Count("10.0.0.1:6", end - milliseconds(1)), 1u);
  EXPECT_EQ(box.Count("10.0.0.1:6", end), 0u);
}

TEST(PenaltyBox, EachTimeCountsAndOneIsForgottenAtATime) {
  PenaltyBox box;
  for (int i = 0; i < 3; ++i) box.Note("10.0.0.1:5", kStart);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart), 3u);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart + PenaltyBox::kForgets), 2u);
  box.Note("10.0.0.1:5", kStart + PenaltyBox::kForgets);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart + PenaltyBox::kForgets), 3u);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart + 4 * PenaltyBox::kForgets), 0u);
}

TEST(PenaltyBox, NoMoreThanSoManyAreHeldAgainstAnAddress) {
  PenaltyBox box;
  for (int i = 0; i < 1000; ++i) box.Note("10.0.0.1:5", kStart);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart), PenaltyBox::kCountMax);
  EXPECT_EQ(box.Count("10.0.0.1:5", kStart + PenaltyBox::kCountMax * PenaltyBox::kForgets), 0u);
}

// Others share the address: one offence costs them little. A peer that comes back each time waits for all of it.
TEST(PenaltyBox, TheWaitGrowsWithTheSquareOfTheCount) {
  PenaltyBox box;
  std::vector<int64_t> waits;
  for (uint32_t i = 0; i < PenaltyBox::kCountMax; ++i) {
    box.Note("10.0.0.1:5", kStart);
    waits.push_back(std::chrono::duration_cast<milliseconds>(box.Wait("10.0.0.1:7", kStart, seconds(1))).count());
  }
  EXPECT_EQ(waits, (std::vector<int64_t>{15, 62, 140, 250, 390, 562, 765, 1000}));
  EXPECT_EQ(box.Wait("10.0.0.2:7", kStart, seconds(1)).count(), 0);
  EXPECT_EQ(box.Wait("10.0.0.1:7", kStart, std::chrono::minutes(1)), std::chrono::minutes(1));
}

TEST(PenaltyBox, UnixSocketsAreOne) {
  PenaltyBox box;
  box.Note("unix:", kStart);
  EXPECT_EQ(box.Count("unix:/other", kStart), 1u);
  EXPECT_EQ(box.Count("[::1]:4", kStart), 0u);
}

TEST(PenaltyBox, TheTableIsBoundedAndForgetsTheOldestFirst) {
  PenaltyBox box;
  const auto at = [](size_t i) { return kStart + std::chrono::microseconds(i); };
  for (size_t i = 0; i <= PenaltyBox::kAddressesMax; ++i) box.Note(Address(i), at(i));
  EXPECT_EQ(box.size(), PenaltyBox::kAddressesMax);
  const base::TimePoint now = at(PenaltyBox::kAddressesMax);
  EXPECT_EQ(box.Count(Address(0), now), 0u);
  EXPECT_EQ(box.Count(Address(1), now), 1u);
  EXPECT_EQ(box.Count(Address(PenaltyBox::kAddressesMax), now), 1u);
  // Later all of them are over, and go together.
  box.Note("192.0.2.1:1", now + PenaltyBox::kForgets);
  EXPECT_EQ(box.size(), 1u);
}

// A connection of an address that was cut off.
class AbuseDelayTest : public ConnectionTest {
 public:
  AbuseDelayTest() { context.abuse = FloodReports(&record); }
  void CutOff(uint32_t times = PenaltyBox::kCountMax) {
    for (uint32_t i = 0; i < times; ++i) record.clients.Note("peer", time.worker.now());
  }
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

TEST_F(AbuseDelayTest, AFloodOnOneDelaysTheNextALittle) {
  StartAndFlood();
  EXPECT_EQ(record.clients.Count("peer", time.worker.now()), 1u);
  Advance(milliseconds(100));
  connection.reset();
  Start(Role::kServer);
  Request();
  EXPECT_EQ(log, Strings{});
  Advance(milliseconds(16));
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
  time.clock.Advance(PenaltyBox::kCountMax * PenaltyBox::kForgets);
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
