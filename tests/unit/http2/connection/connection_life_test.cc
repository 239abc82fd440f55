// Bounds in time: peers that keep us waiting, idle connections, old ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "connection_fixture.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::Continuation;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using std::chrono::milliseconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kCancel = 8, kSettingsTimeout = 4, kEnhanceYourCalm = 11;

class ConnectionLifeTest : public ConnectionTest {
 public:
  ConnectionLifeTest() { options.life = {}; }
  uint32_t GoawayCode() const {
    const h2::Frame* frame = peer->Last(h2::kGoaway);
    return frame == nullptr ? UINT32_MAX : frame->Word(4);
  }
  // Time goes by in steps, as it does for a worker: a jump is one look at what is due.
  void Pass(milliseconds by) {
    for (; by > milliseconds(1000); by -= milliseconds(1000)) Advance(milliseconds(1000));
    Advance(by);
  }
  void Say(const std::string& bytes) {
    peer->Send(bytes);
    Run();
  }
  // A request that has ended, with a response of `bytes` begun.
  void Respond(uint32_t id, size_t bytes, bool end) {
    streams[id]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), false);
    streams[id]->SendData(base::Slice::Copy(std::string(bytes, 'x')), end);
    Run();
  }
  void Request(uint32_t id, uint8_t flags = h2::kEndHeaders | h2::kEndStream) {
    peer->Send(Headers(id, Block(GrpcRequest()), flags));
    Run();
  }
  // The client answers the PING of a drain: the second GOAWAY covers the request that it had sent.
  void ExpectTheDrainToEndBehindRequest1() {
    peer->Send(h2::RawFrame(h2::kPing, h2::kAck, 0, peer->Last(h2::kPing)->payload));
    Run();
    EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 1u);
    streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true);
    Release(1);
    Run();
    EXPECT_TRUE(peer->streams[1].end);
    EXPECT_TRUE(peer->end);
  }
};

TEST_F(ConnectionLifeTest, AClientThatSaysNothingIsSentAwayAfterHeadersTimeout) {
  Start(Role::kServer, /*handshake=*/false);
  peer->acknowledge = false;
  Advance(milliseconds(9999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(GoawayCode(), kSettingsTimeout);
  EXPECT_EQ(log, (Strings{"timeout headers"}));
  Advance(milliseconds(1001));  // it does not close either
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionLifeTest, APrefaceByteByByteBuysNoTime) {
  Start(Role::kServer, /*handshake=*/false);
  peer->acknowledge = false;
  const std::string preface = h2::Preface() + h2::Settings();
  for (size_t i = 0; i < 10; ++i) {
    Say(preface.substr(i, 1));
    Advance(milliseconds(999));
  }
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(10));
  EXPECT_EQ(GoawayCode(), kSettingsTimeout);
}

TEST_F(ConnectionLifeTest, APrefaceWithoutSettingsIsNotEnough) {
  Start(Role::kServer, /*handshake=*/false);
  peer->acknowledge = false;
  peer->Send(h2::Preface());
  Advance(milliseconds(10000));
  EXPECT_EQ(GoawayCode(), kSettingsTimeout);
}

TEST_F(ConnectionLifeTest, AnUpstreamThatSaysNothingIsLeft) {
  Start(Role::kClient, /*handshake=*/false);
  Open();
  peer->acknowledge = false;
  Advance(milliseconds(10000));
  EXPECT_EQ(GoawayCode(), kSettingsTimeout);
  EXPECT_THAT(log, Contains("0: reset NO_ERROR lost"));
  EXPECT_TRUE(connection->closed());  // it would not read a last word
}

TEST_F(ConnectionLifeTest, AHeaderBlockThatDoesNotEndEndsTheConnection) {
  Start(Role::kServer);
  Advance(milliseconds(60000));  // the clock begins with the block
  const std::string block = Block(GrpcRequest());
  Say(Headers(1, block.substr(0, 5), 0));
  for (size_t i = 0; i < 9; ++i) {
    Advance(milliseconds(1000));
    Say(Continuation(1, block.substr(5 + i, 1), 0));
  }
  Advance(milliseconds(999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(GoawayCode(), kEnhanceYourCalm);
  EXPECT_EQ(log, (Strings{"timeout headers"}));
}

TEST_F(ConnectionLifeTest, AFrameThatDoesNotEndEndsTheConnection) {
  Start(Role::kServer);
  const std::string frame = Headers(1, Block(GrpcRequest()));
  Say(frame.substr(0, 4));
  Advance(milliseconds(5000));
  Say(frame.substr(4, 10));
  Advance(milliseconds(4999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(GoawayCode(), kEnhanceYourCalm);
}

TEST_F(ConnectionLifeTest, BlocksCutByReadsOneAfterAnotherAreNoFault) {
  Start(Role::kServer);
  std::string left;
  for (uint32_t id = 1; id < 41; id += 2) {
    const std::string frame = Headers(id, Block(GrpcRequest()));
    Say(left + frame.substr(0, 20));  // there is always one unfinished
    left = frame.substr(20);
    Advance(milliseconds(4000));
  }
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  EXPECT_EQ(streams.size(), 19u);
}

TEST_F(ConnectionLifeTest, AnHonestConnectionMaySayNothingForLong) {
  Start(Role::kServer);
  Request(1, h2::kEndHeaders);  // a subscription
  Advance(std::chrono::hours(30));
  peer->Send(Data(1, "still here"));
  Run();
  EXPECT_FALSE(connection->closed());
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  EXPECT_EQ(peer->Count(h2::kRstStream), 0u);
  EXPECT_EQ(recorders[0]->data, "still here");
}

TEST_F(ConnectionLifeTest, ASocketThatTakesNothingEndsTheConnection) {
  Start(Role::kServer);
  Request(1);
  Advance(milliseconds(3600000 - 1));  // an old success is no sign of life
  near->SetBufferBytes(0);
  Respond(1, 1000, false);
  Advance(milliseconds(59999));
  EXPECT_FALSE(connection->closed());
  Advance(milliseconds(1));
  EXPECT_TRUE(connection->closed());
  EXPECT_THAT(log, Contains("timeout send"));
  EXPECT_EQ(log.back(), "closed the peer does not read");
}

TEST_F(ConnectionLifeTest, ASocketThatTakesALittleNowAndThenIsKept) {
  buffer_bytes = 4096;
  Start(Role::kServer);
  peer->Send(h2::WindowUpdate(0, 1 << 20));
  Request(1);
  peer->reading = false;
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), false);
  streams[1]->SendData(base::Slice::Copy(std::string(65000, 'x')), true);
  Run();
  for (int i = 0; i < 10; ++i) {
    Advance(milliseconds(50000));
    uint8_t some[2048];
    ASSERT_EQ(peer->wire().Read(some, sizeof(some)).kind, net::IoResult::Kind::kOk);
    Run();
  }
  EXPECT_FALSE(connection->closed());
}

TEST_F(ConnectionLifeTest, DataThatWaitsForAWindowTooLongEndsItsStreamAndNoOther) {
  Start(Role::kServer);
  peer->credit = false;
  peer->Send(h2::WindowUpdate(0, 1 << 20));
  Request(1);
  Request(3, h2::kEndHeaders);
  Respond(1, 100'000, true);  // 65535 of it go
  Release(1);                 // it drains by itself, or not
  streams[3]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), false);
  Pass(milliseconds(299999));
  EXPECT_EQ(peer->Count(h2::kRstStream), 0u);
  EXPECT_GT(connection->session().buffered_bytes(), 0u);
  Pass(milliseconds(77000));  // late by a quarter at most, and our steps
  EXPECT_EQ(peer->streams[1].reset, kCancel);
  EXPECT_EQ(peer->Count(h2::kRstStream), 1u);
  EXPECT_EQ(log.back(), "timeout stall 1");
  EXPECT_EQ(connection->session().buffered_bytes(), 0u);
  EXPECT_FALSE(connection->closed());
}

TEST_F(ConnectionLifeTest, MoreDataThanMayWaitEndsTheStreamsWithTheMostOfIt) {
  metrics::Registry registry(2);
  FloodRecord record(registry);
  context.abuse = FloodReports(&record);
  options.session.queued_bytes_max = 1 << 20;
  Start(Role::kServer);
  peer->credit = false;
  for (uint32_t id : {1, 3, 5}) Request(id);
  Respond(1, 300'000, false);  // 65535 of it go, then the connection has no window
  Respond(3, 600'000, false);
  Respond(5, 100'000, false);
  EXPECT_EQ(peer->Count(h2::kRstStream), 0u);
  streams[5]->SendData(base::Slice::Copy(std::string(200'000, 'x')), true);
  Run();
  EXPECT_EQ(peer->streams[3].reset, kEnhanceYourCalm);
  EXPECT_EQ(peer->Count(h2::kRstStream), 1u);
  EXPECT_THAT(log, Contains("3: reset ENHANCE_YOUR_CALM stalled"));
  EXPECT_LT(connection->session().buffered_bytes(), (1u << 20) / 8 * 7);
  EXPECT_EQ(record.downstream[static_cast<size_t>(FloodKind::kUnreadData)]->Value(), 1u);
  EXPECT_EQ(record.clients.size(), 0u);  // and others of its address are not delayed
  EXPECT_FALSE(connection->closed());
  peer->credit = true;
  Say(h2::WindowUpdate(0, 1 << 20) + h2::WindowUpdate(1, 1 << 20) + h2::WindowUpdate(5, 1 << 20));
  EXPECT_EQ(peer->streams[1].data.size(), 300'000u);
  EXPECT_EQ(peer->streams[5].data.size(), 300'000u);
}

TEST_F(ConnectionLifeTest, TheConsumerOfAStalledStreamHearsOfIt) {
  Start(Role::kClient);
  peer->credit = false;
  Open().SendData(base::Slice::Copy(std::string(100'000, 'x')), false);
  Run();
  Pass(milliseconds(375000));
  EXPECT_THAT(log, Contains("0: reset CANCEL stalled"));
}

TEST_F(ConnectionLifeTest, AWindowThatOpensALittleNowAndThenKeepsTheStream) {
  Start(Role::kServer);
  peer->credit = false;
  Request(1);
  Respond(1, 200'000, true);
  for (int i = 0; i < 20; ++i) {
    Say(h2::WindowUpdate(0, 1) + h2::WindowUpdate(1, 1));
    Pass(milliseconds(200000));
  }
  EXPECT_EQ(peer->Count(h2::kRstStream), 0u);
}

TEST_F(ConnectionLifeTest, AConnectionWindowOfZeroStallsItsStreamsToo) {
  Start(Role::kServer);
  peer->credit = false;
  Request(1);
  peer->Send(h2::WindowUpdate(1, 1 << 20));
  Respond(1, 100'000, true);
  Pass(milliseconds(375000));
  EXPECT_EQ(peer->streams[1].reset, kCancel);
}

TEST_F(ConnectionLifeTest, AClientThatOwesARequestIsResetOnlyWhereAsked) {
  options.life.body_timeout = milliseconds(4000);
  Start(Role::kServer);
  Request(1, h2::kEndHeaders);
  Request(3);  // owes nothing
  Request(5, h2::kEndHeaders);
  for (int i = 0; i < 12; ++i) {
    peer->Send(Data(5, "x"));
    Advance(milliseconds(1000));
  }
  EXPECT_EQ(peer->streams[1].reset, kCancel);
  EXPECT_FALSE(peer->streams[3].reset || peer->streams[5].reset);
  EXPECT_THAT(log, Contains("1: reset CANCEL stalled"));
  EXPECT_THAT(log, Contains("timeout body 1"));
}

TEST_F(ConnectionLifeTest, APeerWithoutAWindowOwesNothing) {
  options.life.body_timeout = milliseconds(4000);
  options.session.stream_window_bytes = 65535;
  Start(Role::kServer);
  Request(1, h2::kEndHeaders);
  std::string all;
  for (int i = 0; i < 4; ++i) all += Data(1, std::string(i < 3 ? 16384 : 16383, 'x'));
  peer->Send(all);  // and it is not consumed
  Pass(milliseconds(60000));
  EXPECT_FALSE(peer->streams[1].reset);
}

TEST_F(ConnectionLifeTest, AnEndpointOwesAResponseOnceItHasTheRequest) {
  options.life.body_timeout = milliseconds(4000);
  Start(Role::kClient);
  Stream& first = Open();
  Open();
  first.SendData(base::Slice::Copy("all of it"), true);
  Advance(milliseconds(1000));
  for (int i = 0; i < 6; ++i) Advance(milliseconds(1000));
  EXPECT_EQ(peer->streams[1].reset, kCancel);
  EXPECT_FALSE(peer->streams[3].reset);
}

TEST_F(ConnectionLifeTest, AnIdleClientIsToldTwiceSoThatNoRequestIsLost) {
  options.life.idle_timeout = milliseconds(1000);
  Start(Role::kServer);
  peer->acknowledge = false;
  Advance(milliseconds(1000));
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 0x7fffffffu);
  Request(1);  // it had left before the client read that
  EXPECT_EQ(log, (Strings{"timeout idle", "goaway", "request 1"}));
  ExpectTheDrainToEndBehindRequest1();
}

// RFC 9113 6.8: the drain waits for the answer to its PING, or for kDrainAnswer, however short idle_timeout is.
TEST_F(ConnectionLifeTest, AnIdleClientThatADrainHasToldToGoMayStillAsk) {
  options.life.idle_timeout = milliseconds(50);
  Start(Role::kServer);
  peer->acknowledge = false;
  connection->Drain();
  Advance(milliseconds(4999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_FALSE(peer->end);
  Request(1);  // it had left before the client read that
  EXPECT_EQ(log, (Strings{"request 1"}));
  ExpectTheDrainToEndBehindRequest1();
}

TEST_F(ConnectionLifeTest, AnIdleClientThatDoesNotAnswerADrainIsLeftAfterFiveSeconds) {
  options.life.idle_timeout = milliseconds(50);
  Start(Role::kServer);
  peer->acknowledge = false;
  connection->Drain();
  for (int i = 0; i < 100; ++i) Advance(milliseconds(50));
  ASSERT_EQ(peer->Count(h2::kGoaway), 2u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 0u);
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionLifeTest, AClientThatTakesItsLastResponseSlowlyIsNotIdle) {
  options.life.idle_timeout = milliseconds(50);
  Start(Role::kServer);
  Request(1);
  connection->Drain();
  Run();
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 1u);
  near->SetBufferBytes(0);  // it reads nothing
  Respond(1, 1000, true);
  Release(1);
  for (int i = 0; i < 40; ++i) Advance(milliseconds(50));
  EXPECT_FALSE(connection->closed());
  near->SetBufferBytes(net::MemoryStream::kBufferBytes);
  Run();
  EXPECT_EQ(peer->streams[1].data.size(), 1000u);
  EXPECT_TRUE(peer->streams[1].end);
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionLifeTest, AClientThatNeverTakesItsLastResponseIsLeftAfterAgeGrace) {
  options.life.idle_timeout = milliseconds(50);
  options.life.send_timeout = milliseconds(0);
  options.life.age_grace = milliseconds(2000);
  Start(Role::kServer);
  Request(1);
  connection->Drain();
  Run();
  near->SetBufferBytes(0);  // it reads nothing
  Respond(1, 1000, true);
  Release(1);
  Advance(milliseconds(50));
  Advance(milliseconds(1999));
  EXPECT_EQ(log, (Strings{"request 1"}));
  Advance(milliseconds(1));
  EXPECT_EQ(log, (Strings{"request 1", "timeout age_grace"}));
  Advance(milliseconds(1000));  // the last word's bound
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionLifeTest, AnEndpointThatIsSlowToAnswerIsNeitherOldNorIdle) {
  options.life.age_max = milliseconds(20);
  options.life.idle_timeout = milliseconds(30);
  Start(Role::kClient, /*handshake=*/false);
  peer->acknowledge = false;
  for (int i = 0; i < 10; ++i) Advance(milliseconds(11));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  peer->Send(h2::Settings());
  Run();
  EXPECT_TRUE(connection->CanOpen());
  Open();
  Advance(milliseconds(25));
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_THAT(log, Contains("timeout age"));
}

TEST_F(ConnectionLifeTest, AnOldConnectionTakesNoNewCallsAndEndsWithTheLast) {
  options.life.age_max = milliseconds(100'000);
  Start(Role::kServer);
  Request(1);
  Advance(milliseconds(89'999));  // a tenth less at least
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(20'001));
  EXPECT_EQ(peer->Count(h2::kGoaway), 2u);
  EXPECT_THAT(log, Contains("timeout age"));
  EXPECT_FALSE(connection->closed());
  Respond(1, 10, true);
  Release(1);
  Run();
  EXPECT_TRUE(peer->streams[1].end);
  EXPECT_TRUE(peer->end);
  EXPECT_THAT(log, Not(Contains(HasSubstr("reset"))));
}

TEST_F(ConnectionLifeTest, WhatStillRunsAfterAgeGraceIsCutOff) {
  options.life.age_max = milliseconds(100'000);
  Start(Role::kServer);
  Request(1, h2::kEndHeaders);
  Advance(milliseconds(110'000));
  EXPECT_EQ(peer->Count(h2::kGoaway), 2u);
  Advance(milliseconds(29'999));
  EXPECT_FALSE(peer->end);
  Advance(milliseconds(20'001));
  EXPECT_TRUE(peer->end);
  EXPECT_THAT(log, Contains("timeout age_grace"));
  EXPECT_THAT(log, Contains("1: reset NO_ERROR retired"));
}

TEST_F(ConnectionLifeTest, AnOldUpstreamConnectionIsLeftToItsStreams) {
  options.life.age_max = milliseconds(100'000);
  Start(Role::kClient);
  Open();
  Advance(milliseconds(110'000));
  EXPECT_FALSE(connection->CanOpen());
  EXPECT_FALSE(connection->usable());
  EXPECT_THAT(log, Contains("goaway"));  // the pool looks for another
  peer->Send(Headers(1, Block(h2::GrpcResponse())) +
             Headers(1, Block(h2::GrpcTrailers()), h2::kEndHeaders | h2::kEndStream));
  Run();
  Release(1);
  Run();
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionLifeTest, AgesDifferByATenthUpAndDown) {
  options.life.age_max = milliseconds(100'000);
  milliseconds first{INT64_MAX / 2}, last{0};
  for (int i = 0; i < 40; ++i) {
    Start(Role::kServer);
    milliseconds age{0};
    while (peer->Count(h2::kGoaway) == 0) {
      Advance(milliseconds(1000));
      age += milliseconds(1000);
      ASSERT_LE(age, milliseconds(111'000));
    }
    first = std::min(first, age);
    last = std::max(last, age);
  }
  EXPECT_GE(first, milliseconds(90'000));
  EXPECT_LT(first, milliseconds(97'000));
  EXPECT_GT(last, milliseconds(103'000));
}

TEST_F(ConnectionLifeTest, TrafficDoesNotMoveTheTimer) {
  Start(Role::kServer);
  Request(1, h2::kEndHeaders);
  Run();
  const base::TimePoint before = time.worker.timers().NextExpiry();
  for (int i = 0; i < 100; ++i) peer->Send(Data(1, "x"));
  Run();
  EXPECT_EQ(time.worker.timers().NextExpiry(), before);
}

}  // namespace
}  // namespace sluice::http2
