// Attacks that have hit other HTTP/2 stacks, each as its advisory tells it. The budgets
// that most of them meet have their own tests: session_flood_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session/session.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using ::testing::HasSubstr;

uint32_t Odd(uint32_t i) { return 2 * i + 1; }
std::string OpenCall(uint32_t id, uint8_t flags = h2::kEndHeaders) {
  return h2::Headers(id, Block(h2::GrpcRequest()), flags);
}

// Requests at a time that stands still, each with `frames`, until the connection ends. How many were taken.
uint32_t RequestsTaken(const std::function<std::string(uint32_t id)>& frames, SessionHarness& server) {
  server.Handshake();
  uint32_t passed = 0;
  while (passed < 10'000 && server.Feed(frames(Odd(passed)))) {
    ++passed;
    server.Frames();
  }
  return passed;
}

// CVE-2023-44487.
TEST(KnownAttack, RapidReset) {
  SessionHarness server(Role::kServer);
  EXPECT_EQ(RequestsTaken([](uint32_t id) { return OpenCall(id) + h2::RstStream(id, 8); }, server), 2000u);
  EXPECT_THAT(server.error, HasSubstr("rapid_reset"));
}

// CVE-2025-8671, CVE-2025-55163, CVE-2025-9784: the client breaks a rule on its stream, and we are the ones that reset
// it.
TEST(KnownAttack, MadeYouResetInFiveWays) {
  const std::map<std::string, std::function<std::string(uint32_t)>> ways = {
      {"a WINDOW_UPDATE of 0", [](uint32_t id) { return OpenCall(id) + h2::WindowUpdate(id, 0); }},
      {"a window beyond 2^31-1", [](uint32_t id) { return OpenCall(id) + h2::WindowUpdate(id, 0x7fffffff); }},
      {"a PRIORITY of 4 bytes", [](uint32_t id) { return OpenCall(id) + h2::RawFrame(h2::kPriority, 0, id, "four"); }},
      {"HEADERS behind the end",
       [](uint32_t id) {
         return OpenCall(id, h2::kEndHeaders | h2::kEndStream) + h2::Headers(id, Block({{"a", "b"}}), 5);
       }},
      {"DATA behind the end",
       [](uint32_t id) { return OpenCall(id, h2::kEndHeaders | h2::kEndStream) + h2::Data(id, "behind it"); }},
  };
  for (const auto& [name, frames] : ways) {
    SCOPED_TRACE(name);
    SessionHarness server(Role::kServer);
    EXPECT_EQ(RequestsTaken(frames, server), 2000u);
    EXPECT_THAT(server.error, HasSubstr("forced_reset"));
  }
}

// The client ends its call by trailers that cannot go on: we answer, and the backend's call is cancelled as by a reset.
TEST(KnownAttack, MadeYouAnswerByTrailersThatCannotGoOn) {
  const std::map<std::string, std::string> trailers = {
      {"undecodable", Block({{"x-bin", "%%%"}})},
      {"too many", Block(h2::Fields(300, {"a", "b"}))},
  };
  for (const auto& [name, block] : trailers) {
    SCOPED_TRACE(name);
    SessionHarness server(Role::kServer);
    const uint8_t last = h2::kEndHeaders | h2::kEndStream;
    EXPECT_EQ(RequestsTaken([&](uint32_t id) { return OpenCall(id) + h2::Headers(id, block, last); }, server), 2000u);
    EXPECT_THAT(server.error, HasSubstr("rapid_reset"));
  }
}

// CVE-2024-28182, CVE-2023-45288, Netty CVE-2026-33871: CONTINUATION without end, also of length 0.
TEST(KnownAttack, ContinuationOfNoBytesWithoutEnd) {
  for (const Role role : {Role::kServer, Role::kClient}) {
    SessionHarness harness(role);
    harness.Handshake();
    if (role == Role::kClient) harness.Open();
    uint32_t passed = 0;
    bool good = harness.Feed(h2::Headers(1, "", 0));
    while (good && passed < 10'000) {
      good = harness.Feed(h2::Continuation(1, "", 0));
      passed += good;
    }
    EXPECT_FALSE(good);
    EXPECT_LE(passed, 5004u);
    EXPECT_THAT(harness.error, HasSubstr("continuation_flood"));
  }
}

// nghttp2 CVE-2026-27135: a bad frame behind the end of a session met an assertion.
TEST(KnownAttack, FramesOfEachTypeBehindOurGoaway) {
  std::vector<std::string> frames;
  for (int type = 0; type <= 12; ++type) {
    for (const uint32_t id : {0u, 1u, 3u, 4u, 99u}) {
      for (const size_t size : {0u, 1u, 4u, 5u, 8u, 20u}) {
        for (const uint8_t flags : {0, 1, 4, 8, 0x2d}) {
          frames.push_back(h2::RawFrame(static_cast<uint8_t>(type), flags, id, std::string(size, '\x02')));
        }
      }
    }
  }
  for (const std::string& frame : frames) {
    // A session that has failed reads nothing more.
    SessionHarness server(Role::kServer);
    server.Handshake();
    server.Request(1);
    EXPECT_FALSE(server.Feed(h2::Ping(0) + h2::RawFrame(h2::kPing, 0, 1, "12345678") + frame));
    server.Frames();
    const std::string error = server.error;
    EXPECT_FALSE(server.Feed(frame));
    EXPECT_EQ(server.error, error);
    EXPECT_TRUE(server.Frames().empty());
    // One that ends in good order takes each, or fails by it as at any time.
    for (const Role role : {Role::kServer, Role::kClient}) {
      SessionHarness leaving(role);
      leaving.Handshake();
      if (role == Role::kServer)
        leaving.Request(1);
      else
        leaving.Open();
      leaving.session->GoawayNow(ErrorCode::kNoError, "");
      leaving.Frames();
      leaving.Feed(frame);
      leaving.Frames();
      EXPECT_EQ(leaving.streams.size(), 1u);  // nothing new is taken
    }
  }
}

// Go CVE-2026-33814: SETTINGS of a backend that let no frame be sent.
TEST(KnownAttack, MaxFrameSizeThatNoFrameFits) {
  for (const uint32_t size : {0u, 1u, 16383u, 1u << 24, UINT32_MAX}) {
    SessionHarness client(Role::kClient);
    client.Handshake();
    client.Open();
    EXPECT_FALSE(client.Feed(h2::Settings({{5, size}}))) << size;
    EXPECT_THAT(client.error, HasSubstr("PROTOCOL_ERROR: invalid MAX_FRAME_SIZE"));
    EXPECT_TRUE(client.Heard(1).reset);
  }
  for (const uint32_t size : {16384u, (1u << 24) - 1}) {
    SessionHarness client(Role::kClient);
    client.Handshake({{5, size}, {4, 1 << 20}});
    Stream& stream = client.Open();
    stream.SendData(base::Slice::Copy(std::string(50'000, 'x')), true);
    EXPECT_TRUE(client.Feed(h2::WindowUpdate(0, 1 << 20)));
    size_t sent = 0;
    for (const h2::Frame& frame : client.Frames()) sent += frame.type == h2::kData ? frame.payload.size() : 0;
    EXPECT_EQ(sent, 50'000u);
  }
}

// HAProxy CVE-2024-45506: an endless loop of sending where the window is too small for what waits.
TEST(KnownAttack, BulkThroughWindowsOfZeroAndOneInTurn) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 0}});
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(base::Slice::Copy(std::string(100'000, 'x')), false);
  server.Frames();
  size_t sent = 0, frames = 0;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(server.Feed(i % 2 == 0 ? h2::WindowUpdate(1, 1) : h2::Settings({{4, 0}})));
    // A turn ends, whatever the windows are: Frames asks until there is nothing more to say.
    for (const h2::Frame& frame : server.Frames()) {
      if (frame.type != h2::kData) continue;
      sent += frame.payload.size();
      ++frames;
    }
    EXPECT_FALSE(server.session->HasOutput());
  }
  EXPECT_EQ(sent, 500u);
  EXPECT_EQ(frames, 500u);
  // The initial window goes below zero and comes back: nothing is sent meanwhile.
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(server.Feed(h2::Settings({{4, i % 2 == 0 ? 1u : 0u}})));
    for (const h2::Frame& frame : server.Frames()) sent += frame.type == h2::kData ? frame.payload.size() : 0;
  }
  EXPECT_LE(sent, 501u);
}

// CVE-2026-49975, the "HTTP/2 bomb": references of a byte to a tiny field, in many streams that are held. What is held
// is bounded by the fields' number; each is a pointer to one interned field.
TEST(KnownAttack, BombOfTinyReferencesThatIsHeld) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 0}});
  const std::string first = Block(h2::GrpcRequest()) + std::string("\x40\x01\x61\x00", 4);
  const size_t own = h2::GrpcRequest().size();
  EXPECT_TRUE(server.Feed(h2::Headers(1, first)));
  const std::string fits(256 - own, '\xbe'), above(257 - own, '\xbe');
  EXPECT_TRUE(server.Feed(h2::Headers(3, Block(h2::GrpcRequest()) + fits)));
  EXPECT_TRUE(server.streams.contains(3));
  EXPECT_TRUE(server.Feed(h2::Headers(5, Block(h2::GrpcRequest()) + above)));
  EXPECT_FALSE(server.streams.contains(5));  // refused, and the connection goes on
  // Crumbs of a cookie count as fields do (RFC 9113 8.2.3 lets them be many).
  EXPECT_TRUE(server.Feed(h2::Headers(7, Block(h2::GrpcRequest()) + std::string("\x60\x01\x61", 3) + above)));
  EXPECT_FALSE(server.streams.contains(7));
  // As trailers.
  EXPECT_TRUE(server.Feed(h2::Headers(1, std::string(257, '\xbe'), h2::kEndHeaders | h2::kEndStream)));
  EXPECT_TRUE(server.Heard(1).reset);
}

// ---- What a peer sends for streams that are gone ----

// DATA on a stream that we have reset: as much as the windows let through was on its way, more is not.
TEST(LateData, BeyondTheWindowsThatWereOpenIsAFlood) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  for (uint32_t id : {1u, 3u}) {
    server.Request(id);
    server.Release(id);  // reset: CANCEL
  }
  const std::string frame = h2::Data(1, std::string(16384, 'd'));
  uint64_t passed = 0;
  while (passed < 100'000 && server.Feed(frame)) {
    ++passed;
    server.Frames();
  }
  EXPECT_THAT(server.error, HasSubstr("closed_stream_frames"));
  const SessionOptions options;
  const uint64_t windows = 2 * options.stream_window_bytes / 16384;
  EXPECT_GE(passed, windows);
  EXPECT_LE(passed, windows + (options.useless_frames_per_second + 8 + windows) / 17 + 1);  // 17 units each
}

// Small frames are no way around it: late ones pay for nothing.
TEST(LateData, InSmallFramesIsAFloodToo) {
  for (const size_t size : {5u, 100u, 1023u}) {
    SessionHarness server(Role::kServer);
    server.Handshake();
    server.Request(1);
    server.Release(1);
    const std::string frame = h2::Data(1, std::string(size, 'd'));
    uint64_t bytes = 0;
    while (bytes < (64u << 20) && server.Feed(frame)) {
      bytes += size;
      if (bytes / size % 64 == 0) server.Frames();
    }
    EXPECT_THAT(server.error, HasSubstr("closed_stream_frames")) << size;
    EXPECT_GE(bytes, 256u * 1024 - size);
  }
}

// An honest client's uploads are reset, all at once, with their windows full and on their way: nothing is charged.
TEST(LateData, OnItsWayWhenWeResetIsNoFault) {
  SessionOptions options;
  options.useless_frames_per_second = 16;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  for (uint32_t round = 0; round < 20; ++round) {
    std::string late;
    for (uint32_t i = 0; i < 16; ++i) {  // 16 windows of 256 KiB are the connection's 4 MiB
      const uint32_t id = Odd(round * 20 + i);
      server.Request(id);
      server.Release(id);
      for (int part = 0; part < 16; ++part) late += h2::Data(id, std::string(16384, 'd'));
    }
    ASSERT_TRUE(server.Feed(late)) << round << server.error;
    server.Frames();
    // Refused ones may have a window on their way, too.
    const uint32_t refused = Odd(round * 20 + 18);
    ASSERT_TRUE(server.Feed(h2::Headers(refused, Block({{"a", "b"}})) + h2::Data(refused, std::string(16384, 'd'))));
    server.Frames();
  }
}

// ---- Servers that are well ----

// What we do not take of a server's answers is its call's own: the other calls of the connection go on, at any rate.
TEST(ServerThatIsWell, IsNotEndedForAnswersThatWeDoNotTake) {
  const std::map<std::string, std::string> answers = {
      {"no :status", Block({{"content-type", "application/grpc"}})},
      {"a control character", Block({{":status", "200"},
                                     {"x",
                                      "a\x01"
                                      "b\n"}})},
      {"an upper-case name", Block({{":status", "200"}, {"X-Y", "z"}})},
      {"connection", Block({{":status", "200"}, {"connection", "close"}})},
  };
  for (const auto& [name, block] : answers) {
    SCOPED_TRACE(name);
    SessionOptions options;
    options.resets_per_second = options.useless_frames_per_second = 16;
    SessionHarness client(Role::kClient, options);
    client.Handshake();
    client.Open();  // another caller's
    for (uint32_t i = 1; i <= 500; ++i) {
      client.Open();
      client.Frames();
      ASSERT_TRUE(client.Feed(h2::Headers(Odd(i), block))) << i << client.error;
      ASSERT_TRUE(client.Heard(Odd(i)).reset) << i;
      client.Release(Odd(i));
    }
    EXPECT_FALSE(client.Heard(1).reset);
    EXPECT_TRUE(client.Feed(h2::Headers(1, Block(h2::GrpcResponse()))));
    EXPECT_EQ(client.Heard(1).headers.size(), 1u);
  }
}

// What TLS has to say for itself is charged as useless frames are.
TEST(TlsMessages, EndTheConnectionAtTheLimit) {
  SessionHarness server(Role::kServer);
  server.now = base::TimePoint(std::chrono::hours(1));
  server.Handshake();
  server.Request(1);  // pays for 4 of 25 units
  uint32_t passed = 0;
  while (passed < 10'000 && server.session->NoteTlsMessages(1, server.now).ok()) ++passed;
  EXPECT_EQ(passed, 200u);
  EXPECT_EQ(server.session->abuse(), FloodKind::kTlsMessages);
  EXPECT_TRUE(server.Heard(1).reset);
  EXPECT_THAT(server.Said().back(), ::testing::EndsWith("code=11"));
  // A few each second, as an honest peer may send, for ever; and after a pause a second's worth at once.
  SessionHarness other(Role::kServer);
  other.now = base::TimePoint(std::chrono::hours(1));
  other.Handshake();
  for (int second = 0; second < 100; ++second) {
    other.now += std::chrono::seconds(1);
    ASSERT_TRUE(other.session->NoteTlsMessages(100, other.now).ok()) << second;
  }
}

}  // namespace
}  // namespace sluice::http2
