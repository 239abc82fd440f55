#include "upstream/endpoint_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "pool_fixture.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using test::FakeHost;
using test::FramePeer;

TEST_F(EndpointPoolTest, ItDialsWhenACallWaitsAndNotBefore) {
  EXPECT_TRUE(Pool().Usable());
  EXPECT_EQ(Pool().Ready(), nullptr);
  Run();
  EXPECT_EQ(host.dials, 0);
  EXPECT_EQ(endpoint->link(), EndpointLink::kIdle);
  NewCall("a");
  EXPECT_EQ(endpoint->link(), EndpointLink::kConnecting);
  Run();
  EXPECT_EQ(host.dials, 1);
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_EQ(endpoint->link(), EndpointLink::kConnected);
  EXPECT_EQ(endpoint->metrics().connections->Value(), 1);
  NewCall("b");
  EXPECT_EQ(Log(), (Strings{"b connection"}));
  Run();
  EXPECT_EQ(host.dials, 1);
  EXPECT_EQ(host.last().streams[3].headers.size(), 1u);
}

TEST_F(EndpointPoolTest, WaitingCallsAreServedInTheirOrderAndNoCallOvertakes) {
  options.connections_max = 1;
  host.settings = {{3, 1}};  // MAX_CONCURRENT_STREAMS
  NewCall("a");
  Run();
  NewCall("b");
  NewCall("c");
  NewCall("d");
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  for (const char* next : {"b", "c", "d"}) {
    Caller& now = *callers[next[0] - 'b'];
    std::exchange(now.stream, nullptr)->Release();
    // Between the release and the waiter's turn a new call must not take the room.
    EXPECT_EQ(Log(), (Strings{std::string(next) + " connection"}));
    EXPECT_EQ(Pool().Ready(), nullptr);
    Run();
  }
}

TEST_F(EndpointPoolTest, BeyondPendingCallsMaxNoCallWaits) {
  options.pending_calls_max = 2;
  host.mode = FakeHost::Mode::kHang;
  for (const char* name : {"a", "b", "c"}) NewCall(name);
  EXPECT_EQ(Log(), (Strings{"c full"}));
  callers[0]->CancelWait();  // a place is free again
  NewCall("d");
  NewCall("e");
  EXPECT_EQ(Log(), (Strings{"e full"}));
}

TEST_F(EndpointPoolTest, ACancelledWaiterLeavesFromAnyPlaceInTheQueue) {
  for (const char* name : {"a", "b", "c", "d"}) NewCall(name);
  callers[1]->CancelWait();
  callers[1]->CancelWait();  // idempotent
  callers.pop_back();        // the destructor does it too
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection", "c connection"}));
}

TEST_F(EndpointPoolTest, AtThePeersStreamLimitAnotherConnectionIsOpenedUpToTheMaximum) {
  options.connections_max = 3;
  host.settings = {{3, 2}};
  NewCall("a");
  Run();
  for (const char* name : {"b", "c", "d", "e", "f", "g"}) {
    NewCall(name);
    Run();
  }
  EXPECT_EQ(host.connections.size(), 3u);
  EXPECT_EQ(Log(),
            (Strings{"a connection", "b connection", "c connection", "d connection", "e connection", "f connection"}));
  EXPECT_EQ(endpoint->metrics().connections->Value(), 3);
}

TEST_F(EndpointPoolTest, BackOffGrowsFromBaseToMaximumWithAFifthOfJitter) {
  options.backoff_base = milliseconds(100);
  options.backoff_max = milliseconds(5000);
  host.mode = FakeHost::Mode::kRefuse;
  double expected = 100;
  std::set<int64_t> waits;
  for (int failure = 0; failure < 30; ++failure) {
    ASSERT_TRUE(Pool().Usable());
    NewCall("a");
    Run();
    ASSERT_EQ(Log(), (Strings{"a connect_failed"}));
    EXPECT_EQ(endpoint->link(), EndpointLink::kBackoff);
    int64_t waited = 0;
    while (!Pool().Usable()) {
      Advance(milliseconds(1));
      ASSERT_LT(++waited, 7000);
    }
    EXPECT_GE(waited, static_cast<int64_t>(0.8 * expected)) << failure;
    EXPECT_LE(waited, static_cast<int64_t>(1.2 * expected) + 1) << failure;
    if (expected == 5000) waits.insert(waited);
    expected = std::min(5000.0, expected * 2);
  }
  EXPECT_GT(waits.size(), 5u);  // it is jitter, not a constant
  EXPECT_EQ(host.dials, 30);
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 30u);
}

TEST_F(EndpointPoolTest, AWaitInBackOffFailsAtOnce) {
  host.mode = FakeHost::Mode::kRefuse;
  NewCall("a");
  Run();
  NewCall("b");
  EXPECT_EQ(Log(), (Strings{"a connect_failed", "b connect_failed"}));
  EXPECT_EQ(host.dials, 1);
}

TEST_F(EndpointPoolTest, ConnectTimeoutFailsTheWaitingCalls) {
  options.connect_timeout = milliseconds(300);
  host.mode = FakeHost::Mode::kHang;
  NewCall("a");
  NewCall("b");
  Advance(milliseconds(299));
  EXPECT_EQ(Log(), Strings{});
  Advance(milliseconds(1));
  EXPECT_EQ(Log(), (Strings{"a connect_timeout", "b connect_timeout"}));
}

// The kernel accepts for a process that hangs; what a server sends first shows that it is there (RFC 9113 3.4).
TEST_F(EndpointPoolTest, AConnectionCarriesCallsWhenItsServersSettingsHaveCome) {
  host.speaks = false;
  NewCall("a");
  Run();
  EXPECT_EQ(host.dials, 1);
  EXPECT_EQ(Log(), Strings{});
  EXPECT_EQ(endpoint->link(), EndpointLink::kConnecting);
  EXPECT_EQ(Pool().Ready(), nullptr);
  EXPECT_EQ(host.last().Count(h2::kSettings), 1u);  // ours need not wait
  EXPECT_EQ(host.last().Count(h2::kHeaders), 0u);
  NewCall("b");  // waits too, and no second connection is opened meanwhile
  Run();
  EXPECT_EQ(host.dials, 1);
  host.last().Send(h2::Settings().substr(0, 5));
  Run();
  EXPECT_EQ(Log(), Strings{});
  host.last().Send(h2::Settings().substr(5));
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection", "b connection"}));
  EXPECT_EQ(endpoint->link(), EndpointLink::kConnected);
  Advance(options.connect_timeout * 2);
  EXPECT_FALSE(host.last().end);
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 0u);
}

// The call that it was opened for has gone meanwhile.
TEST_F(EndpointPoolTest, WithoutSettingsItGetsNoCallsEvenWhereNoneWaits) {
  host.speaks = false;
  NewCall("a");
  Run();
  callers[0]->CancelWait();
  EXPECT_EQ(Pool().Ready(), nullptr);
  NewCall("b");
  Run();
  EXPECT_EQ(Log(), Strings{});
  EXPECT_EQ(host.dials, 1);
  host.last().Send(h2::Settings());
  Run();
  EXPECT_EQ(Log(), (Strings{"b connection"}));
}

TEST_F(EndpointPoolTest, AnEndpointThatAcceptsAndSaysNothingIsAConnectTimeoutAndInBackOff) {
  options.connect_timeout = milliseconds(300);
  host.speaks = false;
  NewCall("a");
  NewCall("b");
  Run();
  Advance(milliseconds(299));
  EXPECT_EQ(Log(), Strings{});
  Advance(milliseconds(1));
  EXPECT_EQ(Log(), (Strings{"a connect_timeout", "b connect_timeout"}));  // they were never sent: for another endpoint
  EXPECT_FALSE(Pool().Usable());
  EXPECT_EQ(endpoint->link(), EndpointLink::kBackoff);
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
  EXPECT_EQ(endpoint->metrics().timeouts->Value(), 1u);
  EXPECT_EQ(endpoint->metrics().connections->Value(), 0);
  EXPECT_TRUE(host.last().end);
  EXPECT_EQ(host.last().Count(h2::kHeaders), 0u);
  NewCall("c");
  EXPECT_EQ(Log(), (Strings{"c connect_failed"}));  // not another that hangs
  EXPECT_EQ(host.dials, 1);
  host.speaks = true;
  Advance(milliseconds(1000));
  NewCall("d");
  Run();
  EXPECT_EQ(Log(), (Strings{"d connection"}));
}

// connect_timeout is one for the connection and what follows.
TEST_F(EndpointPoolTest, TimeThatTheConnectionTookIsNotThereForTheSettings) {
  options.connect_timeout = milliseconds(300);
  host.mode = FakeHost::Mode::kHang;
  host.speaks = false;
  NewCall("a");
  Advance(milliseconds(200));
  host.mode = FakeHost::Mode::kAccept;
  net.Answer("10.0.0.1:1");
  Run();
  EXPECT_EQ(host.connections.size(), 1u);
  Advance(milliseconds(100));
  EXPECT_EQ(Log(), (Strings{"a connect_timeout"}));
}

TEST_F(EndpointPoolTest, AConnectionThatEndsBeforeItsSettingsCountsAsAFailure) {
  host.speaks = false;
  NewCall("a");
  Run();
  host.last().wire().Close();
  Run();
  EXPECT_EQ(Log(), (Strings{"a connect_failed"}));
  EXPECT_FALSE(Pool().Usable());
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
  EXPECT_EQ(host.dials, 1);
}

TEST_F(EndpointPoolTest, AServerThatDrainsJustNowIsAskedAgainAtOnce) {
  host.speaks = false;
  NewCall("a");
  Run();
  host.last().Send(h2::Settings() + h2::Goaway(0x7fffffff, 0));
  host.speaks = true;
  Run();
  EXPECT_EQ(host.dials, 2);
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 0u);
}

// Trap: each such connection is there, so it is replaced at once, for ever.
TEST_F(EndpointPoolTest, AnEndpointThatGoesAwayBehindItsSettingsAgainAndAgainIsInBackOff) {
  options.backoff_base = milliseconds(100);
  host.speaks = false;
  const auto goes_away = [this] {
    host.last().Send(h2::Settings() + h2::Goaway(0, 0));
    Run();
  };
  NewCall("a");
  Run();
  for (uint32_t i = 1; i <= EndpointPool::kGoneAwayMax; ++i) {
    goes_away();
    EXPECT_EQ(Log(), Strings{});
    EXPECT_EQ(host.dials, static_cast<int>(i + 1));
  }
  goes_away();
  EXPECT_EQ(Log(), (Strings{"a connect_failed"}));
  EXPECT_FALSE(Pool().Usable());
  for (auto& connection : host.connections) connection->wire().Close();
  Run();
  Advance(milliseconds(121));
  NewCall("b");
  Run();
  goes_away();
  EXPECT_EQ(Log(), (Strings{"b connect_failed"}));
  Advance(milliseconds(121));
  EXPECT_FALSE(Pool().Usable());  // twice as long now
}

TEST_F(EndpointPoolTest, AServerOfAnotherProtocolFailsTheCallsAtOnce) {
  host.speaks = false;
  NewCall("a");
  Run();
  host.last().Send("HTTP/1.1 400 Bad Request\r\n\r\n");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connect_failed"}));
  EXPECT_FALSE(Pool().Usable());
  host.last().wire().Close();
  Run();
  EXPECT_EQ(endpoint->metrics().connections->Value(), 0);
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
}

TEST_F(EndpointPoolTest, ADrainDoesNotWaitForSettings) {
  host.speaks = false;
  NewCall("a");
  Run();
  set->Drain(*endpoint);
  EXPECT_EQ(Log(), (Strings{"a draining"}));
  Run();
  Advance(milliseconds(1001));
  EXPECT_EQ(set->size(), 0u);
  EXPECT_TRUE(host.last().end);
}

TEST_F(EndpointPoolTest, CloseNowEndsAConnectionWhoseSettingsAreAwaited) {
  host.speaks = false;
  NewCall("a");
  Run();
  set->CloseAll();
  EXPECT_EQ(Log(), (Strings{"a draining"}));
  Run();
  EXPECT_TRUE(host.last().end);
  Advance(options.connect_timeout);
}

TEST_F(EndpointPoolTest, RequestsSayTheSchemeOfTheirTransport) {
  request = {{":method", "POST"}, {":scheme", "https"}, {":path", "/a.B/C"}, {":authority", "a"}, {"te", "trailers"}};
  NewCall("a");
  Run();
  EXPECT_EQ(host.last().streams[1].Value(":scheme"), "http");
}

TEST_F(EndpointPoolTest, AConnectionThatSpokeAndEndedIsReplacedAtOnce) {
  NewCall("a");
  Run();
  host.last().wire().Close();
  Run();
  Log();
  EXPECT_TRUE(Pool().Usable());
  EXPECT_EQ(endpoint->link(), EndpointLink::kIdle);
  NewCall("b");
  Run();
  EXPECT_EQ(host.dials, 2);
  EXPECT_EQ(Log(), (Strings{"b connection"}));
}

// A call that has another endpoint to go to does not wait for the connection, but has it made.
TEST_F(EndpointPoolTest, WhereAConnectionWasLostCallsArePassedOnUntilTheNextOneIsThere) {
  EXPECT_TRUE(Pool().TakesCalls()) << "none was needed yet";
  NewCall("a");
  EXPECT_TRUE(Pool().TakesCalls()) << "the first one is on its way";
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
  host.mode = FakeHost::Mode::kHang;
  host.last().wire().Close();
  Run();
  EXPECT_EQ(host.dials, 1) << "not before a call asks";
  EXPECT_FALSE(Pool().TakesCalls());
  EXPECT_FALSE(Pool().TakesCalls());
  EXPECT_EQ(host.dials, 2) << "one at a time";
  EXPECT_TRUE(Pool().Usable()) << "a call that has nowhere else to go may wait";
  host.mode = FakeHost::Mode::kAccept;
  net.Answer("10.0.0.1:1");
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
}

// The server hangs from the start: only the calls of the first moment wait for it.
TEST_F(EndpointPoolTest, AFirstConnectionThatTakesLongIsNotWaitedForByFurtherCalls) {
  host.speaks = false;
  NewCall("a");
  Run();
  EXPECT_TRUE(Pool().TakesCalls());
  Advance(EndpointPool::kConnectGrace);
  EXPECT_FALSE(Pool().TakesCalls());
  EXPECT_TRUE(Pool().Usable());
}

// A connection without calls that we closed is no loss.
TEST_F(EndpointPoolTest, AfterAnIdleConnectionTheNextOneIsWaitedFor) {
  options.life.idle_timeout = milliseconds(1000);
  Caller& caller = NewCall("a");
  Run();
  std::exchange(caller.stream, nullptr)->Release();
  Advance(milliseconds(1100));
  Advance(milliseconds(1100));
  ASSERT_EQ(endpoint->link(), EndpointLink::kIdle);
  EXPECT_TRUE(Pool().TakesCalls());
  EXPECT_EQ(host.dials, 1);
}

// Trap: its SETTINGS were in order, so it is connected to again at once, and breaks the next calls, and so on.
TEST_F(EndpointPoolTest, AnEndpointThatBreaksTheProtocolAgainAndAgainIsInBackOff) {
  options.backoff_base = milliseconds(100);
  options.backoff_max = milliseconds(10'000);
  const auto break_it = [&](const char* call) {
    NewCall(call);
    Run();
    EXPECT_EQ(Log(), (Strings{std::string(call) + " connection"}));
    host.last().Send(h2::Data(0, "on no stream"));
    Run();
    host.last().wire().Close();
    Run();
    EXPECT_EQ(Log(), (Strings{"0: reset PROTOCOL_ERROR lost"}));
  };
  break_it("a");
  EXPECT_TRUE(Pool().Usable());  // it may have been one bad response
  break_it("b");
  EXPECT_EQ(endpoint->link(), EndpointLink::kBackoff);
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
  NewCall("c");
  EXPECT_EQ(Log(), (Strings{"c connect_failed"}));  // never sent: for another endpoint
  EXPECT_EQ(host.dials, 2);
  Advance(milliseconds(121));
  break_it("d");
  Advance(milliseconds(121));
  EXPECT_FALSE(Pool().Usable());  // twice as long now
  Advance(milliseconds(11'000));
  break_it("e");
  EXPECT_TRUE(Pool().Usable());  // long ago: it counts anew
  break_it("f");
  EXPECT_FALSE(Pool().Usable());
  Advance(milliseconds(121));
  EXPECT_TRUE(Pool().Usable());
}

TEST_F(EndpointPoolTest, AnEndpointThatFloodsIsInBackOffAtOnce) {
  NewCall("a");
  Run();
  std::string flood;
  for (uint32_t i = 0; i < 2 * options.http2.settings_per_second; ++i) flood += h2::Settings();
  host.last().Send(flood);
  Run();
  EXPECT_FALSE(Pool().Usable());
  EXPECT_EQ(endpoint->metrics().connect_failures->Value(), 1u);
}

TEST_F(EndpointPoolTest, CallsThatWaitForASecondConnectionGetItAfterTheBackOff) {
  host.settings = {{3, 1}};
  NewCall("a");
  Run();
  host.mode = FakeHost::Mode::kRefuse;
  NewCall("b");
  Run();
  EXPECT_EQ(host.dials, 2);
  EXPECT_EQ(Log(), (Strings{"a connection"}));  // b waits on: the first connection may have room yet
  host.mode = FakeHost::Mode::kAccept;
  Advance(milliseconds(121));
  EXPECT_EQ(host.dials, 3);
  EXPECT_EQ(Log(), (Strings{"b connection"}));
}

TEST_F(EndpointPoolTest, WithOnlyAClosingConnectionAFailedDialFailsTheCalls) {
  NewCall("a");
  Run();
  host.last().Send(h2::Goaway(1, 0));
  host.mode = FakeHost::Mode::kRefuse;
  Run();
  NewCall("b");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection", "b connect_failed"}));
}

TEST_F(EndpointPoolTest, DrainFailsWaitingCallsAndLetsTheOthersFinish) {
  host.settings = {{3, 1}};
  options.connections_max = 1;
  Pool().BeginCall();
  Caller& running = NewCall("a");
  Run();
  NewCall("b");
  endpoint->MarkRemoved();
  set->Drain(*endpoint);
  EXPECT_EQ(Log(), (Strings{"a connection", "b draining"}));
  Run();
  EXPECT_FALSE(endpoint->pool(0)->Usable());
  EXPECT_EQ(set->size(), 1u);
  EXPECT_FALSE(host.last().end);
  // Its call ends: so does the connection, and with it the pool.
  host.last().Send(h2::Headers(1, h2::Block(h2::GrpcResponse()), h2::kEndHeaders | h2::kEndStream));
  Run();
  EXPECT_EQ(running.recorder.headers.size(), 1u);
  std::exchange(running.stream, nullptr)->Release();
  endpoint->pool(0)->EndCall(Outcome::kAnswered, 0);
  Run();
  EXPECT_TRUE(host.last().end);
  host.last().wire().Close();
  Run();
  EXPECT_EQ(set->size(), 0u);
  EXPECT_EQ(endpoint->pool(0), nullptr);
}

TEST_F(EndpointPoolTest, AfterDrainTimeoutWhatRunsIsCutOff) {
  options.drain_timeout = milliseconds(500);
  Pool().BeginCall();
  Caller& running = NewCall("a");
  Run();
  endpoint->MarkRemoved();
  set->Drain(*endpoint);
  Advance(milliseconds(499));
  EXPECT_FALSE(running.recorder.reset);
  Advance(milliseconds(2));
  EXPECT_TRUE(running.recorder.reset);
  std::exchange(running.stream, nullptr)->Release();
  endpoint->pool(0)->EndCall(Outcome::kAnswered, 0);
  host.last().wire().Close();
  Run();
  EXPECT_EQ(set->size(), 0u);
}

TEST_F(EndpointPoolTest, APeerThatKeepsADrainedConnectionOpenHoldsItForOneSecond) {
  NewCall("a");
  Run();
  std::exchange(callers[0]->stream, nullptr)->Release();
  set->Drain(*endpoint);
  Run();
  EXPECT_EQ(set->size(), 1u);
  Advance(milliseconds(1001));
  EXPECT_EQ(set->size(), 0u);
}

TEST_F(EndpointPoolTest, DrainWhileDialingEndsAtOnce) {
  host.mode = FakeHost::Mode::kHang;
  NewCall("a");
  set->Drain(*endpoint);
  EXPECT_EQ(Log(), (Strings{"a draining"}));
  Run();
  EXPECT_EQ(set->size(), 0u);
}

TEST_F(EndpointPoolTest, AConnectionThatEndsUnderCallsIsCountedAsLost) {
  NewCall("a");
  Run();
  host.last().wire().Close();
  Run();
  EXPECT_EQ(endpoint->metrics().lost->Value(), 1u);
  Caller& b = NewCall("b");
  Run();
  std::exchange(b.stream, nullptr)->Release();
  Run();
  host.last().wire().Close();
  Run();
  EXPECT_EQ(host.connections.size(), 2u);
  EXPECT_EQ(endpoint->metrics().connections->Value(), 0);
  EXPECT_EQ(endpoint->metrics().lost->Value(), 1u) << "no call was on it";
}

TEST_F(EndpointPoolTest, CloseNowEndsCallsAndConnections) {
  host.settings = {{3, 1}};
  options.connections_max = 1;
  Pool().BeginCall();
  NewCall("a");
  Run();
  NewCall("b");
  set->CloseAll();
  EXPECT_EQ(Log(), (Strings{"a connection", "b draining", "0: reset NO_ERROR lost"}));
  EXPECT_EQ(set->size(), 1u);  // until its call has let go
  std::exchange(callers[0]->stream, nullptr)->Release();
  endpoint->pool(0)->EndCall(Outcome::kAnswered, 0);
  set->CloseAll();
  EXPECT_EQ(set->size(), 0u);
  Run();
  EXPECT_TRUE(host.last().end);
}

}  // namespace
}  // namespace sluice::upstream
