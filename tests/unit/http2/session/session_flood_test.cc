// What a peer may not do without end (http2/flood/kind.h): each flood ends the connection with ENHANCE_YOUR_CALM at its
// limit and not one frame before. What honest peers do: honest_peer_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session/session.h"
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
  FloodKind abuse;
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
    {"RapidReset", Role::kServer, FloodKind::kRapidReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i)) + h2::RstStream(Id(i), 8); }},
    {"MalformedRequests", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return h2::Headers(Id(i), Block({{"a", "b"}}));
     }},
    {"EmptyHeaders", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return h2::Headers(Id(i), ""); }},
    {"WindowUpdateOfZero", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) + (i % 2 == 0 ? h2::WindowUpdate(Id(i), 0) : h2::RawFrame(h2::kPriority, 0, Id(i), "x"));
     }},
    {"WindowOverflow", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) +
              (i % 2 == 0 ? h2::WindowUpdate(Id(i), 0x7fffffff) : h2::RawFrame(h2::kPriority, 0, Id(i), "x"));
     }},
    {"PriorityOfTheWrongSize", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i)) + h2::RawFrame(h2::kPriority, 0, Id(i), "four"); }},
    {"RequestsThatDependOnThemselves", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPriorityFlag, Id(i),
                           h2::Big(Id(i), 4) + "w" + Block(h2::GrpcRequest()));
     }},
    {"StreamsThatDependOnThemselves", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i)) + h2::RawFrame(h2::kPriority, 0, Id(i), h2::Big(Id(i), 4) + "w"); }},
    {"DataAfterTheEnd", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) { return Request(Id(i), h2::kEndHeaders | h2::kEndStream) + h2::Data(Id(i), "after the end"); }},
    {"HeadersAfterTheEnd", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i), h2::kEndHeaders | h2::kEndStream) + h2::Headers(Id(i), Block({{"a", "b"}}), 5);
     }},
    {"TrailersWithoutAnEnd", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return Request(Id(i)) + h2::Headers(Id(i), Block({{"a", "b"}}));
     }},
    {"ContentLengthMismatch", Role::kServer, FloodKind::kForcedReset, kLimit, Nothing,
     [](uint32_t i) {
       return h2::Headers(Id(i), Block(h2::With(h2::GrpcRequest(), {{"content-length", "5"}}))) +
              h2::Data(Id(i), "sixsix");
     }},
    {"DataOnStreamsThePeerReset", Role::kServer, FloodKind::kForcedReset, kLimit,
     [](SessionHarness& server) { server.Feed(Request(1) + h2::RstStream(1, 8)); },
     // That reset was one of the hundred.
     [](uint32_t i) { return i == 0 ? std::string() : h2::Data(1, "not for this stream"); }},
    {"Settings", Role::kServer, FloodKind::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t) { return h2::Settings(); }},
    {"SettingsAcks", Role::kServer, FloodKind::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t) { return h2::SettingsAck(); }},
    {"ManySettingsInOne", Role::kServer, FloodKind::kSettingsFlood, 8, Nothing,  // 1 + 160 / 16 each
     [](uint32_t) {
       return h2::Settings(std::vector<std::pair<uint16_t, uint32_t>>(160, {1, 0}));
     }},
    {"HeaderTableSizeFlapping", Role::kServer, FloodKind::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t i) {
       return h2::Settings({{1, i % 2 == 0 ? 0 : 4096}});
     }},
    {"WindowsOfManyStreams", Role::kServer, FloodKind::kSettingsFlood, 4, OpenMany,  // 1 + 320 / 16 each
     [](uint32_t i) {
       return h2::Settings({{4, 1000 + i}});
     }},
    {"Pings", Role::kServer, FloodKind::kPingFlood, kLimit + 3, Nothing, [](uint32_t) { return h2::Ping(1); }},
    {"PingAcks", Role::kServer, FloodKind::kPingFlood, kLimit + 3, Nothing,
     [](uint32_t) { return h2::Ping(1, h2::kAck); }},
    {"WindowUpdates", Role::kServer, FloodKind::kWindowUpdateFlood, kLimit + 6, Nothing,
     [](uint32_t) { return h2::WindowUpdate(0, 1); }},
    {"WindowUpdatesOfAStream", Role::kServer, FloodKind::kWindowUpdateFlood, kLimit + 6, OpenOne,
     [](uint32_t) { return h2::WindowUpdate(1, 1); }},
    {"WindowUpdatesOfStreamsThatAreOver", Role::kServer, FloodKind::kWindowUpdateFlood, kLimit + 8, OpenAndReset,
     [](uint32_t) { return h2::WindowUpdate(1, 1); }},
    {"Priority", Role::kServer, FloodKind::kPriorityFlood, kLimit, Nothing,
     [](uint32_t i) { return h2::RawFrame(h2::kPriority, 0, Id(i), "12345"); }},
    {"PriorityOfStreamsThatAreOver", Role::kServer, FloodKind::kPriorityFlood, kLimit + 4, OpenAndReset,
     [](uint32_t i) {
       const char* const payloads[] = {"12345", "four", "\0\0\0\1w"};
       return h2::RawFrame(h2::kPriority, 0, 1, std::string_view(payloads[i % 3], i % 3 == 1 ? 4 : 5));
     }},
    {"UnknownFrames", Role::kServer, FloodKind::kUnknownFrames, kLimit, Nothing,
     [](uint32_t i) { return h2::RawFrame(static_cast<uint8_t>(10 + i), 0, 0, ""); }},
    {"EmptyData", Role::kServer, FloodKind::kEmptyData, kLimit + 4, OpenOne, [](uint32_t) { return h2::Data(1, ""); }},
    {"EmptyPaddedData", Role::kServer, FloodKind::kPaddingFlood, (kLimit + 4) / 2, OpenOne,  // two each
     [](uint32_t) { return h2::PaddedData(1, "", 255); }},
    {"DataOfAByte", Role::kServer, FloodKind::kEmptyData, kLimit + 4, OpenOne,
     [](uint32_t) { return h2::Data(1, "x"); }},
    {"DataOfAByteAndPadding", Role::kServer, FloodKind::kPaddingFlood, (kLimit + 4) / 2, OpenOne,
     [](uint32_t) { return h2::PaddedData(1, "x", 255); }},
    {"SmallContinuations", Role::kServer, FloodKind::kContinuationFlood, kLimit + 1,
     [](SessionHarness& server) { server.Feed(h2::Headers(1, "", 0)); },
     [](uint32_t i) { return i == 0 ? std::string() : h2::Continuation(1, i % 2 == 0 ? "" : "\x82", 0); }},
    {"TableSizeUpdatesOfManyBlocks", Role::kServer, FloodKind::kTableSizeFlapping, 16,
     Nothing,  // 10 each, of which the stream pays 4
     [](uint32_t i) { return h2::Headers(Id(i), SizeUpdates(10)); }},
    // 256 fields fit, and 16 of what is left are a unit each: 1 + 320 / 16.
    {"HpackBombs", Role::kServer, FloodKind::kOversizedHeaders, 4, Nothing,
     [](uint32_t i) { return h2::Headers(Id(i), std::string(256 + 320, '\x82'), h2::kEndHeaders | h2::kEndStream); }},
    {"HpackBombsOfABackend", Role::kClient, FloodKind::kOversizedHeaders,
     4 + 4,  // the calls have paid for as much again
     [](SessionHarness& client) {
       for (int i = 0; i < 50; ++i) client.Open();
     },
     [](uint32_t i) { return h2::Headers(Id(i), std::string(256 + 320, '\x88'), h2::kEndHeaders | h2::kEndStream); }},
    {"HeadersOnStreamsThatAreOver", Role::kServer, FloodKind::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) {
       return h2::Headers(1, Block({{"a", "b"}}), 5);
     }},
    {"EmptyDataOnStreamsThatAreOver", Role::kServer, FloodKind::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) { return h2::Data(1, "", h2::kEndStream); }},
    {"ResetsOfStreamsThatAreOver", Role::kServer, FloodKind::kClosedStreamFrames, kLimit + 4, OpenAndReset,
     [](uint32_t) { return h2::RstStream(1, 8); }},
    {"RequestsAfterOurGoaway", Role::kServer, FloodKind::kClosedStreamFrames, kLimit,
     [](SessionHarness& server) { server.session->GoawayNow(ErrorCode::kNoError, ""); },
     [](uint32_t i) { return Request(Id(i)); }},
    {"Goaways", Role::kServer, FloodKind::kGoawayFlood, kLimit, Nothing, [](uint32_t) { return h2::Goaway(0, 0); }},
    // The walk over 320 streams costs 20 more; they have paid for as much again.
    {"GoawaysWithManyStreams", Role::kServer, FloodKind::kGoawayFlood, 4 + 4, OpenMany,
     [](uint32_t) { return h2::Goaway(0, 0); }},
    {"SettingsOfABackend", Role::kClient, FloodKind::kSettingsFlood, kLimit - 2, Nothing,
     [](uint32_t) { return h2::Settings(); }},
    {"PingsOfABackend", Role::kClient, FloodKind::kPingFlood, kLimit + 3, Nothing,
     [](uint32_t) { return h2::Ping(1); }},
    {"InterimResponses", Role::kClient, FloodKind::kInterimResponses, kLimit + 4,
     [](SessionHarness& client) { client.Open(); },
     [](uint32_t) {
       return h2::Headers(1, Block({{":status", "103"}}));
     }},
    {"EmptyDataOfABackend", Role::kClient, FloodKind::kEmptyData, kLimit + 4,
     [](SessionHarness& client) {
       client.Open();
       client.Feed(h2::Headers(1, Block(h2::GrpcResponse())));
     },
     [](uint32_t) { return h2::Data(1, ""); }},
    {"GoawaysOfABackend", Role::kClient, FloodKind::kGoawayFlood, kLimit, Nothing,
     [](uint32_t) { return h2::Goaway(0x7fffffff, 0); }},
    {"DataOfABackendOnStreamsThatAreOver", Role::kClient, FloodKind::kForcedReset, kLimit + 1,
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
  EXPECT_EQ(server.session->abuse(), FloodKind::kRefusedStreams);
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
  EXPECT_EQ(server.session->abuse(), FloodKind::kDataDribble);
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
  EXPECT_EQ(server.session->abuse(), FloodKind::kDataDribble);
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
  EXPECT_EQ(server.session->abuse(), FloodKind::kUnreadAnswers);
}

TEST(SessionFlood, AHeaderBlockWithoutEndIsNamed) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, "", 0));
  for (int i = 0; i < 1000 && server.Feed(h2::Continuation(1, std::string(16384, '\0'), 0)); ++i) {
  }
  EXPECT_EQ(server.session->abuse(), FloodKind::kHeaderBlock);
}

TEST(SessionFlood, ABlockInSmallPartsIsAFlood) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, "", 0));
  for (int i = 0; i < 10'000 && server.Feed(h2::Continuation(1, "", 0)); ++i) {
  }
  EXPECT_EQ(server.session->abuse(), FloodKind::kContinuationFlood);
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
  EXPECT_EQ(client.session->abuse(), FloodKind::kLateResponses);
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

}  // namespace
}  // namespace sluice::http2
