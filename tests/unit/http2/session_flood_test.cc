// What a peer may not do without end (http2/abuse.h): each flood ends the connection with ENHANCE_YOUR_CALM at its
// limit and not one frame before; what honest peers do does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::Fields;
using h2::SessionHarness;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr uint32_t kLimit = 100;

SessionOptions SmallBudgets() {
  SessionOptions options;
  options.resets_per_second = options.settings_per_second = options.pings_per_second = kLimit;
  options.window_updates_per_second = options.useless_frames_per_second = kLimit;
  return options;
}

std::string Request(uint32_t id, uint8_t flags = h2::kEndHeaders) {
  return h2::Headers(id, Block(h2::GrpcRequest()), flags);
}

// Stream of the i-th request.
uint32_t Id(uint32_t i) { return 2 * i + 1; }

// One way to wear a session out. The streams in `begin` pay for four useless frames each.
struct Flood {
  const char* name;
  Role role;
  Abuse abuse;
  uint32_t passes;  // how many of `frames` the session takes
  std::function<void(SessionHarness&)> begin;
  std::function<std::string(uint32_t i)> frames;
};
std::ostream& operator<<(std::ostream& out, const Flood& flood) { return out << flood.name; }

void OpenOne(SessionHarness& server) { server.Request(1); }
// A stream that we have reset.
void OpenAndReset(SessionHarness& server) {
  server.Request(1);
  server.Release(1);
}
// A stream that waits for its window with more queued than is ever let go.
void StallOne(SessionHarness& server) {
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy(std::string(100000, 'x')), false);
  server.Frames();
}
void OpenMany(SessionHarness& server) {
  for (uint32_t i = 0; i < 320; ++i) server.Request(Id(i));
}
std::string SizeUpdates(int count) {
  std::string block;
  for (int i = 0; i < count; ++i) block += i % 2 == 0 ? std::string("\x20") : std::string("\x3f\xe1\x1f");
  return block + Block(h2::GrpcRequest());
}
void Nothing(SessionHarness&) {}

class SessionFloods : public ::testing::TestWithParam<Flood> {};

TEST_P(SessionFloods, EndTheConnectionAtTheLimit) {
  const Flood& flood = GetParam();
  SessionHarness harness(flood.role, SmallBudgets());
  harness.Handshake();
  flood.begin(harness);
  harness.Frames();
  ASSERT_EQ(harness.error, "");
  uint32_t passed = 0;
  while (passed < 10 * kLimit && harness.Feed(flood.frames(passed))) ++passed;
  EXPECT_EQ(passed, flood.passes);
  EXPECT_EQ(harness.session->abuse(), flood.abuse);
  EXPECT_THAT(harness.error,
              HasSubstr("ENHANCE_YOUR_CALM: " + std::string(ToString(flood.abuse)) + ": beyond 100 a second"));
  EXPECT_THAT(harness.Said().back(), ::testing::EndsWith("code=11"));
}

// The handshake has cost one unit of kSettings (the acknowledgement) and one for the SETTINGS themselves.
// Frames sent by then: SETTINGS, WINDOW_UPDATE, SETTINGS ack.
const Flood kFloods[] = {
    {"RapidReset", Role::kServer, Abuse::kRapidReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i)) + h2::RstStream(Id(i), 8); }},
    {"MalformedRequests", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return h2::Headers(Id(i), Block({{"a", "b"}}));
     }},
    {"EmptyHeaders", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return h2::Headers(Id(i), ""); }},
    {"WindowUpdateOfZero", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) + (i % 2 == 0 ? h2::WindowUpdate(Id(i), 0) : h2::RawFrame(h2::kPriority, 0, Id(i), "x"));
     }},
    {"WindowOverflow", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) +
              (i % 2 == 0 ? h2::WindowUpdate(Id(i), 0x7fffffff) : h2::RawFrame(h2::kPriority, 0, Id(i), "x"));
     }},
    {"PriorityOfTheWrongSize", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i)) + h2::RawFrame(h2::kPriority, 0, Id(i), "four"); }},
    {"DataAfterTheEnd", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i), h2::kEndHeaders | h2::kEndStream) + h2::Data(Id(i), "after the end"); }},
    {"HeadersAfterTheEnd", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i), h2::kEndHeaders | h2::kEndStream) + h2::Headers(Id(i), Block({{"a", "b"}}), 5);
     }},
    {"TrailersWithoutAnEnd", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) + h2::Headers(Id(i), Block({{"a", "b"}}));
     }},
    {"ContentLengthMismatch", Role::kServer, Abuse::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return h2::Headers(Id(i), Block(h2::With(h2::GrpcRequest(), {{"content-length", "5"}}))) +
              h2::Data(Id(i), "sixsix");
     }},
    {"DataOnStreamsThePeerReset", Role::kServer, Abuse::kForcedReset, kLimit,
     [](SessionHarness& server) { server.Feed(Request(1) + h2::RstStream(1, 8)); },
     // That reset was one of the hundred.
     [](uint32_t i) { return i == 0 ? std::string() : h2::Data(1, "not for nobody"); }},
    {"Settings", Role::kServer, Abuse::kSettingsFlood, kLimit - 2, Nothing, [](uint32_t) { return h2::Settings(); }},
    {"SettingsAcks", Role::kServer, Abuse::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t) { return h2::SettingsAck(); }},
    {"ManySettingsInOne", Role::kServer, Abuse::kSettingsFlood, 8, Nothing,  // 1 + 160 / 16 each
     [](uint32_t) {
       return h2::Settings(std::vector<std::pair<uint16_t, uint32_t>>(160, {1, 0}));
     }},
    {"HeaderTableSizeFlapping", Role::kServer, Abuse::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t i) {
       return h2::Settings({{1, i % 2 == 0 ? 0 : 4096}});
     }},
    {"WindowsOfManyStreams", Role::kServer, Abuse::kSettingsFlood, 4, OpenMany,  // 1 + 320 / 16 each
     [](uint32_t i) {
       return h2::Settings({{4, 1000 + i}});
     }},
    {"Pings", Role::kServer, Abuse::kPingFlood, kLimit + 3, Nothing, [](uint32_t) { return h2::Ping(1); }},
    {"PingAcks", Role::kServer, Abuse::kPingFlood, kLimit + 3, Nothing, [](uint32_t) { return h2::Ping(1, h2::kAck); }},
    {"WindowUpdates", Role::kServer, Abuse::kWindowUpdateFlood, kLimit + 6, Nothing,
     [](uint32_t) { return h2::WindowUpdate(0, 1); }},
    {"WindowUpdatesOfAStream", Role::kServer, Abuse::kWindowUpdateFlood, kLimit + 6, OpenOne,
     [](uint32_t) { return h2::WindowUpdate(1, 1); }},
    {"WindowUpdatesOfStreamsThatAreOver", Role::kServer, Abuse::kWindowUpdateFlood, kLimit + 8, OpenAndReset,
     [](uint32_t) { return h2::WindowUpdate(1, 1); }},
    {"Priority", Role::kServer, Abuse::kPriorityFlood, kLimit, Nothing,
     [](uint32_t i) { return h2::RawFrame(h2::kPriority, 0, Id(i), "12345"); }},
    {"UnknownFrames", Role::kServer, Abuse::kUnknownFrames, kLimit, Nothing,
     [](uint32_t i) { return h2::RawFrame(static_cast<uint8_t>(10 + i), 0, 0, ""); }},
    {"EmptyData", Role::kServer, Abuse::kEmptyData, kLimit + 4, OpenOne, [](uint32_t) { return h2::Data(1, ""); }},
    {"EmptyPaddedData", Role::kServer, Abuse::kEmptyData, (kLimit + 4) / 2, OpenOne,  // both empty and padded
     [](uint32_t) { return h2::PaddedData(1, "", 255); }},
    {"DataOfAByte", Role::kServer, Abuse::kEmptyData, kLimit + 4, OpenOne, [](uint32_t) { return h2::Data(1, "x"); }},
    {"Padding", Role::kServer, Abuse::kPaddingFlood, kLimit + 4 + 1, OpenOne,  // 1050 bytes of data have paid for one
     [](uint32_t) { return h2::PaddedData(1, "ten bytes!", 11); }},
    {"SmallContinuations", Role::kServer, Abuse::kContinuationFlood, kLimit + 1,
     [](SessionHarness& server) { server.Feed(h2::Headers(1, "", 0)); },
     [](uint32_t i) { return i == 0 ? std::string() : h2::Continuation(1, i % 2 == 0 ? "" : "\x82", 0); }},
    {"TableSizeUpdatesOfManyBlocks", Role::kServer, Abuse::kTableSizeFlapping, 16,
     Nothing,  // 10 each, of which the stream pays 4
     [](uint32_t i) { return h2::Headers(Id(i), SizeUpdates(10)); }},
    // 256 fields fit, and 16 of what is left are a unit each: 1 + 320 / 16.
    {"HpackBombs", Role::kServer, Abuse::kOversizedHeaders, 4, Nothing,
     [](uint32_t i) { return h2::Headers(Id(i), std::string(256 + 320, '\x82'), h2::kEndHeaders | h2::kEndStream); }},
    {"HpackBombsOfABackend", Role::kClient, Abuse::kOversizedHeaders, 4 + 4,  // the calls have paid for as much again
     [](SessionHarness& client) {
       for (int i = 0; i < 50; ++i) client.Open();
     },
     [](uint32_t i) { return h2::Headers(Id(i), std::string(256 + 320, '\x88'), h2::kEndHeaders | h2::kEndStream); }},
    {"HeadersOnStreamsThatAreOver", Role::kServer, Abuse::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) {
       return h2::Headers(1, Block({{"a", "b"}}), 5);
     }},
    {"EmptyDataOnStreamsThatAreOver", Role::kServer, Abuse::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) { return h2::Data(1, "", h2::kEndStream); }},
    {"ResetsOfStreamsThatAreOver", Role::kServer, Abuse::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) { return h2::RstStream(1, 8); }},
    {"RequestsAfterOurGoaway", Role::kServer, Abuse::kClosedStreamFrames, kLimit,
     [](SessionHarness& server) { server.session->GoawayNow(ErrorCode::kNoError, ""); },
     [](uint32_t i) { return Request(Id(i)); }},
    {"Goaways", Role::kServer, Abuse::kGoawayFlood, kLimit, Nothing, [](uint32_t) { return h2::Goaway(0, 0); }},
    // The walk over 320 streams costs 20 more; they have paid for as much again.
    {"GoawaysWithManyStreams", Role::kServer, Abuse::kGoawayFlood, 4 + 4, OpenMany,
     [](uint32_t) { return h2::Goaway(0, 0); }},
    {"SettingsOfABackend", Role::kClient, Abuse::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t) { return h2::Settings(); }},
    {"PingsOfABackend", Role::kClient, Abuse::kPingFlood, kLimit + 3, Nothing, [](uint32_t) { return h2::Ping(1); }},
    {"InterimResponses", Role::kClient, Abuse::kInterimResponses, kLimit + 4,
     [](SessionHarness& client) { client.Open(); },
     [](uint32_t) {
       return h2::Headers(1, Block({{":status", "103"}}));
     }},
    {"EmptyDataOfABackend", Role::kClient, Abuse::kEmptyData, kLimit + 4,
     [](SessionHarness& client) {
       client.Open();
       client.Feed(h2::Headers(1, Block(h2::GrpcResponse())));
     },
     [](uint32_t) { return h2::Data(1, ""); }},
    {"GoawaysOfABackend", Role::kClient, Abuse::kGoawayFlood, kLimit, Nothing,
     [](uint32_t) { return h2::Goaway(0x7fffffff, 0); }},
    {"DataOfABackendOnStreamsThatAreOver", Role::kClient, Abuse::kForcedReset, kLimit + 1,
     [](SessionHarness& client) {
       client.Open(true);
       client.Feed(h2::Headers(1, Block(h2::GrpcResponse()), 5));
     },
     // The call that has ended pays for one more.
     [](uint32_t) { return h2::Data(1, "more than five"); }},
};
INSTANTIATE_TEST_SUITE_P(All, SessionFloods, ::testing::ValuesIn(kFloods),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(SessionFlood, RequestsBeyondConcurrentStreamsMaxEndTheConnection) {
  SessionOptions options = SmallBudgets();
  options.concurrent_streams_max = 1;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  server.Request(1);
  uint32_t refused = 0;
  while (refused < 1000 && server.Feed(Request(Id(refused + 1)))) ++refused;
  EXPECT_EQ(refused, kLimit);
  EXPECT_EQ(server.session->abuse(), Abuse::kRefusedStreams);
}

// CVE-2019-9511: each WINDOW_UPDATE makes us send a frame of one byte, which pays for two.
TEST(SessionFlood, WindowsOpenedByAByteEndTheConnection) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake();
  StallOne(server);
  uint32_t bytes = 0;
  while (bytes < 1000 && server.Feed(h2::WindowUpdate(0, 100) + h2::WindowUpdate(1, 1))) {
    ++bytes;
    server.Frames();
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kDataDribble);
  EXPECT_LT(bytes, kLimit);
}

TEST(SessionFlood, AConnectionsWindowOpenedByAByteEndsIt) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake({{4, 1 << 20}});
  StallOne(server);  // by the connection's window
  uint32_t bytes = 0;
  while (bytes < 1000 && server.Feed(h2::WindowUpdate(0, 1))) {
    ++bytes;
    server.Frames();
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kDataDribble);
  EXPECT_LT(bytes, kLimit);
}

// A window below zero (RFC 9113 6.9.2) that nothing waits for.
TEST(SessionFlood, AWindowThatNothingWaitsForMayBeOpenedByAByte) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake();
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy(std::string(1000, 'x')), false);
  server.Frames();
  ASSERT_TRUE(server.Feed(h2::Settings({{4, 0}})));
  for (uint32_t i = 0; i < kLimit; ++i) ASSERT_TRUE(server.Feed(h2::WindowUpdate(1, 1))) << i;
}

TEST(SessionFlood, LessPaddingThanDataIsWelcomeAtAnyRate) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake();
  server.Request(1);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(server.Feed(h2::PaddedData(1, "ten bytes!", 5))) << i;
}

TEST(SessionFlood, ABackendMayResetEachCallThatWeOpen) {
  SessionHarness client(Role::kClient, SmallBudgets());
  client.Handshake();
  for (uint32_t i = 0; i < 5 * kLimit; ++i) {
    client.Open();
    client.Frames();
    ASSERT_TRUE(client.Feed(h2::RstStream(Id(i), 8))) << i;
    client.Release(Id(i));
  }
}

TEST(SessionFlood, AWindowOpenedByEnoughIsWelcomeAtAnyRate) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake();
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy(std::string(3000000, 'x')), false);
  server.Frames();
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(server.Feed(h2::WindowUpdate(0, 1024) + h2::WindowUpdate(1, 1024)));
    ASSERT_EQ(server.Frames().size(), 1u);
  }
}

TEST(SessionFlood, WhatIsNotReadIsNamed) {
  SessionOptions options;
  options.control_frames_max = 50;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  for (int i = 0; i < 1000 && server.Feed(h2::Ping(1)); ++i) {
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kUnreadAnswers);
}

TEST(SessionFlood, AHeaderBlockWithoutEndIsNamed) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, "", 0));
  for (int i = 0; i < 1000 && server.Feed(h2::Continuation(1, std::string(16384, '\0'), 0)); ++i) {
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kContinuationFlood);
}

// A whole budget is the most that one frame can cost.
TEST(SessionFlood, WhatCostsMoreThanABudgetIsTakenOnceASecond) {
  SessionHarness server(Role::kServer, SmallBudgets());
  server.Handshake();
  const std::string dear = h2::Settings(std::vector<std::pair<uint16_t, uint32_t>>(2000, {1, 0}));  // 1 + 2000 / 16
  for (int i = 0; i < 3; ++i) {
    server.now += std::chrono::seconds(2);
    ASSERT_TRUE(server.Feed(dear)) << i;
  }
  EXPECT_FALSE(server.Feed(dear));
}

TEST(SessionFlood, EachHeaderBlockHasItsOwnBound) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  const std::string block = Block(h2::With(h2::GrpcRequest(), {{"x-long", std::string(12'000, 'x')}}));
  for (uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(
        server.Feed(h2::Headers(Id(i), block.substr(0, 6000), 0) + h2::Continuation(Id(i), block.substr(6000), 4)))
        << i;
  }
}

TEST(SessionFlood, LateResponsesAreNamed) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true);
  client.Feed(h2::Headers(1, Block(h2::GrpcResponse()), 5));
  uint32_t late = 0;
  while (late < 5000 && client.Feed(h2::Headers(1, Block(h2::GrpcTrailers()), 5))) ++late;
  EXPECT_EQ(late, 1000u);
  EXPECT_EQ(client.session->abuse(), Abuse::kLateResponses);
}

// What goes on is told that the connection is lost, on both sides.
TEST(SessionFlood, OpenStreamsHearThatTheConnectionIsLost) {
  SessionHarness client(Role::kClient, SmallBudgets());
  client.Handshake();
  client.Open();
  for (int i = 0; i < 1000 && client.Feed(h2::Ping(1)); ++i) {
  }
  EXPECT_THAT(client.log.back(), "1: reset ENHANCE_YOUR_CALM lost");
  EXPECT_FALSE(client.session->CanOpen());
}

// ---- Peers that are within their rights, at the default limits ----

class HonestPeer : public ::testing::Test {
 public:
  HonestPeer() {
    server.now = base::TimePoint(std::chrono::hours(1));
    server.Handshake();
  }
  // A unary call of gRPC's: answered, and all of it read.
  void Call() {
    const uint32_t id = Next();
    ASSERT_TRUE(server.Feed(Request(id) + h2::Data(id, h2::Message("hi"), h2::kEndStream)));
    Answer(id);
    ASSERT_TRUE(server.Feed(h2::WindowUpdate(0, 10)));
  }
  void Answer(uint32_t id) {
    Stream& stream = *server.streams.at(id);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
    stream.SendData(base::Slice::Copy(h2::Message("hello")), false);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
    Forget(id);
  }
  // Opens a call; Cancel ends it. False: the connection has ended.
  uint32_t Begin() {
    const uint32_t id = Next();
    EXPECT_TRUE(server.Feed(Request(id)));
    return id;
  }
  bool Cancel(uint32_t id) {
    const bool ok = server.Feed(h2::RstStream(id, 8));
    Forget(id);
    return ok;
  }
  void Forget(uint32_t id) {
    server.Release(id);
    server.recorders.erase(id);
    server.log.clear();
    if (id % 64 == 1) server.Frames();
  }
  uint32_t Next() { return std::exchange(next_, next_ + 2); }

  SessionHarness server{Role::kServer};

 private:
  uint32_t next_ = 1;
};

TEST_F(HonestPeer, MayCancelEveryCallAtAThousandASecond) {
  for (int i = 0; i < 20000; ++i) {
    server.now += milliseconds(1);
    ASSERT_TRUE(Cancel(Begin())) << i;
  }
}

// Whoever has the answer may say so with a reset: gRPC's clients do where they have not ended their request.
TEST_F(HonestPeer, MayResetEachCallThatIsAnswered) {
  for (int i = 0; i < 20000; ++i) {
    const uint32_t id = Begin();
    server.streams.at(id)->SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
    server.Frames();
    ASSERT_TRUE(Cancel(id)) << i;
  }
}

TEST_F(HonestPeer, MayHedgeEveryCallAtAnyRate) {
  for (int i = 0; i < 20000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Call());
    ASSERT_TRUE(Cancel(Begin())) << i;
  }
}

TEST_F(HonestPeer, MayCancelAThousandAtOnceAfterManyCalls) {
  for (int i = 0; i < 10000; ++i) ASSERT_NO_FATAL_FAILURE(Call());
  std::vector<uint32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
  for (uint32_t id : ids) ASSERT_TRUE(Cancel(id));
}

// Deadlines of 0.2 s and a backend that hangs: 5000 resets a second, of calls that concurrent_streams_max has bounded.
TEST_F(HonestPeer, MayCancelAllItsCallsAgainAndAgainAtTheirDeadline) {
  for (int round = 0; round < 20; ++round) {
    std::vector<uint32_t> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
    server.now += milliseconds(200);
    for (uint32_t id : ids) ASSERT_TRUE(Cancel(id)) << round;
  }
}

// What it opened a moment before streams grow older all at once is young all the same.
TEST_F(HonestPeer, IsNoneIfItOpensThemJustBeforeItsAgeIsLookedAt) {
  bool ok = true;
  for (int round = 0; round < 20 && ok; ++round) {
    server.now += milliseconds(99);
    std::vector<uint32_t> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
    server.now += milliseconds(1);
    for (uint32_t id : ids) ok = ok && Cancel(id);
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kRapidReset);
}

TEST_F(HonestPeer, IsNoneIfItCancelsThousandsAsFastAsItMakesThem) {
  uint32_t made = 0;
  while (made < 10000) {
    if (made % 20 == 0) server.now += milliseconds(1);  // 20,000 a second
    ++made;
    if (!Cancel(Begin())) break;
  }
  EXPECT_EQ(server.session->abuse(), Abuse::kRapidReset);
  EXPECT_NEAR(made, 2000 * 20000 / 18000, 25);  // the budget lasts 1/9 s
}

// As grpc-go does: a PING for each message that comes, and both windows opened.
TEST_F(HonestPeer, MayMeasureThePathWithEachCall) {
  for (int i = 0; i < 20000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Call());
    ASSERT_TRUE(server.Feed(h2::Ping(2) + h2::WindowUpdate(0, 7) + h2::WindowUpdate(0, 7))) << i;
  }
}

TEST_F(HonestPeer, MayOpenItsWindowWithEachFrame) {
  const uint32_t id = Begin();
  Stream& stream = *server.streams.at(id);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  for (int i = 0; i < 40000; ++i) {
    stream.SendData(base::Slice::Copy(std::string(100, 'x')), false);
    server.Frames();
    ASSERT_TRUE(server.Feed(h2::WindowUpdate(0, 100) + h2::WindowUpdate(id, 100))) << i;
  }
  server.Release(id);
}

TEST_F(HonestPeer, MayMoveItsWindowsTenTimesASecondWithAThousandStreams) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
  for (int i = 0; i < 200; ++i) {
    server.now += milliseconds(100);
    ASSERT_TRUE(server.Feed(h2::Settings({{4, static_cast<uint32_t>(65535 + i)}}) + h2::Ping(1)));
    server.Frames();
  }
  for (uint32_t id : ids) Forget(id);
}

// Messages of one byte in frames of their own, a stream of them.
TEST_F(HonestPeer, MaySendSmallMessages) {
  const uint32_t id = Begin();
  for (int i = 0; i < 20000; ++i) ASSERT_TRUE(server.Feed(h2::Data(id, h2::Message("")))) << i;
  Forget(id);
}

}  // namespace
}  // namespace sluice::http2
