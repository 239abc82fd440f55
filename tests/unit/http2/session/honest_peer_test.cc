// Peers that are within their rights, at the default limits: the busiest honest traffic that we know of for each budget
// (docs/http2.md, "Floods"). Time stands still where a test does not say otherwise, so that a budget holds a second's
// worth and what useful work pays for, and nothing else: the traffic is as fast as can be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/session/session.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using std::chrono::milliseconds;

constexpr int kMany = 30000;

std::string Repeat(int count, const std::string& frames) {
  std::string out;
  for (int i = 0; i < count; ++i) out += frames;
  return out;
}
std::string Padded(uint32_t id, const h2::Fields& fields, uint8_t flags) {
  return h2::RawFrame(h2::kHeaders, flags | h2::kPadded, id, "\xff" + Block(fields) + std::string(255, '\0'));
}

// ---- Clients ----

class HonestClient : public ::testing::Test {
 public:
  HonestClient() {
    server.now = base::TimePoint(std::chrono::hours(1));
    server.Handshake();
  }
  // A unary call of gRPC's: answered, and all of it read.
  void Call() {
    const uint32_t id = Next();
    ASSERT_TRUE(
        server.Feed(h2::Headers(id, Block(h2::GrpcRequest())) + h2::Data(id, h2::Message("hi"), h2::kEndStream)));
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
  // A call that streams in both directions: all that comes is taken.
  Stream& Streaming() {
    Stream& stream = *server.streams.at(Begin());
    server.Heard(stream.id()).on_data = [&stream](const base::Slice& bytes) { stream.Consume(bytes.size()); };
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
    return stream;
  }
  // Opens a call; Cancel ends it. False: the connection has ended.
  uint32_t Begin() {
    const uint32_t id = Next();
    EXPECT_TRUE(server.Feed(h2::Headers(id, Block(h2::GrpcRequest()))));
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

TEST_F(HonestClient, MayCancelEveryCallAtAThousandASecond) {
  for (int i = 0; i < 20000; ++i) {
    server.now += milliseconds(1);
    ASSERT_TRUE(Cancel(Begin())) << i;
  }
}

// A client that has the answer may say so with a reset: gRPC's clients do where they have not ended their request.
TEST_F(HonestClient, MayResetEachCallThatIsAnswered) {
  for (int i = 0; i < 20000; ++i) {
    const uint32_t id = Begin();
    server.streams.at(id)->SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
    server.Frames();
    ASSERT_TRUE(Cancel(id)) << i;
  }
}

TEST_F(HonestClient, MayHedgeEveryCallAtAnyRate) {
  for (int i = 0; i < 20000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Call());
    ASSERT_TRUE(Cancel(Begin())) << i;
  }
}

TEST_F(HonestClient, MayCancelAThousandAtOnceAfterManyCalls) {
  for (int i = 0; i < 10000; ++i) ASSERT_NO_FATAL_FAILURE(Call());
  std::vector<uint32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
  for (uint32_t id : ids) ASSERT_TRUE(Cancel(id));
}

// Deadlines of 50 ms and a backend that hangs: 20,000 resets a second, of calls that concurrent_streams_max has
// bounded.
TEST_F(HonestClient, MayCancelAllItsCallsAgainAndAgainAtTheirDeadline) {
  for (int round = 0; round < 20; ++round) {
    std::vector<uint32_t> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
    server.now += milliseconds(50);
    for (uint32_t id : ids) ASSERT_TRUE(Cancel(id)) << round;
  }
}

// What it opened a moment before streams grow older all at once is young all the same.
TEST_F(HonestClient, IsNoneIfItOpensThemJustBeforeItsAgeIsLookedAt) {
  bool ok = true;
  for (int round = 0; round < 20 && ok; ++round) {
    server.now += milliseconds(24);
    std::vector<uint32_t> ids;
    for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
    server.now += milliseconds(1);
    for (uint32_t id : ids) ok = ok && Cancel(id);
  }
  EXPECT_EQ(server.session->abuse(), FloodKind::kRapidReset);
}

TEST_F(HonestClient, IsNoneIfItCancelsThousandsAsFastAsItMakesThem) {
  uint32_t made = 0;
  while (made < 10000) {
    if (made % 20 == 0) server.now += milliseconds(1);  // 20,000 a second
    ++made;
    if (!Cancel(Begin())) break;
  }
  EXPECT_EQ(server.session->abuse(), FloodKind::kRapidReset);
  EXPECT_NEAR(made, 2000 * 20000 / 18000, 25);  // the budget lasts 1/9 s
}

// As grpc-go does: a PING for each message that comes, and both windows opened.
TEST_F(HonestClient, MayMeasureThePathWithEachCall) {
  for (int i = 0; i < 20000; ++i) {
    ASSERT_NO_FATAL_FAILURE(Call());
    ASSERT_TRUE(server.Feed(h2::Ping(2) + h2::WindowUpdate(0, 7) + h2::WindowUpdate(0, 7))) << i;
  }
}

TEST_F(HonestClient, MayOpenItsWindowWithEachFrame) {
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

TEST_F(HonestClient, MayMoveItsWindowsTenTimesASecondWithAThousandStreams) {
  std::vector<uint32_t> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(Begin());
  for (int i = 0; i < 200; ++i) {
    server.now += milliseconds(100);
    ASSERT_TRUE(server.Feed(h2::Settings({{4, static_cast<uint32_t>(65535 + i)}}) + h2::Ping(1)));
    server.Frames();
  }
  for (uint32_t id : ids) Forget(id);
}

// The first message of a stream is all that it wanted.
TEST_F(HonestClient, MayCancelEachCallAfterItsFirstMessage) {
  for (int i = 0; i < kMany; ++i) {
    const uint32_t id = Streaming().id();
    server.streams.at(id)->SendData(base::Slice::Copy(h2::Message("x")), false);
    server.Frames();
    ASSERT_TRUE(Cancel(id)) << i;
  }
}

// gRPC's C++ client resets also what has ended, where it has not ended its request.
TEST_F(HonestClient, MayResetEachCallThatIsOver) {
  for (int i = 0; i < kMany; ++i) {
    ASSERT_NO_FATAL_FAILURE(Call());
    server.now += milliseconds(i % 64 == 0 ? 1 : 0);
    const uint32_t id = Begin();
    Stream& stream = *server.streams.at(id);
    stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
    Forget(id);  // we reset it: NO_ERROR
    ASSERT_TRUE(server.Feed(h2::Data(id, "", h2::kEndStream) + h2::RstStream(id, 8))) << i;
  }
}

// Before it has read our SETTINGS it knows no limit.
TEST_F(HonestClient, MayOpenTwiceTheStreamsThatWeTakeAtOnce) {
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(server.Feed(h2::Headers(Next(), Block(h2::GrpcRequest())))) << i;
  EXPECT_EQ(server.session->stats().streams_refused, 1000u);
}

TEST_F(HonestClient, MayPadItsHeadersAndItsMessages) {
  for (int i = 0; i < kMany; ++i) {
    const uint32_t id = Next();
    ASSERT_TRUE(server.Feed(Padded(id, h2::GrpcRequest(), h2::kEndHeaders) +
                            h2::PaddedData(id, h2::Message(""), 255, h2::kEndStream) + h2::WindowUpdate(0, 10)))
        << i;
    Answer(id);
  }
}

TEST_F(HonestClient, MayPrioritiseEachCall) {
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(server.Feed(Repeat(4, h2::RawFrame(h2::kPriority, 0, 2 * i + 1, "12345")))) << i;
    ASSERT_NO_FATAL_FAILURE(Call());
  }
}

// A PING for each message, to see how long the path is: what it sends, and what it gets.
TEST_F(HonestClient, MayMeasureThePathWithEachMessage) {
  Stream& stream = Streaming();
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(server.Feed(h2::Data(stream.id(), h2::Message("x")) + h2::Ping(2))) << i;
    if (i % 64 == 0) server.Frames();
  }
  for (int i = 0; i < kMany; ++i) {
    stream.SendData(base::Slice::Copy(h2::Message("x")), false);
    server.Frames();
    ASSERT_TRUE(server.Feed(h2::Ping(2) + h2::WindowUpdate(0, 6) + h2::WindowUpdate(stream.id(), 6))) << i;
  }
  Forget(stream.id());
}

// The length of a message and its only byte in frames of their own, and a flush that has nothing to say.
TEST_F(HonestClient, MaySendTheByteOfEachMessageApart) {
  const uint32_t id = Streaming().id();
  const std::string message = h2::Message("x");
  const std::string apart = h2::Data(id, message.substr(0, 5)) + h2::Data(id, message.substr(5));
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(server.Feed(apart)) << i;
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(server.Feed(h2::Data(id, message) + h2::Data(id, ""))) << i;
  Forget(id);
}

// A slow reader of a stream of small messages: it takes one at a time out of a window that is full, and says so at once
// for both windows. Each acknowledgment lets us send the next message.
TEST_F(HonestClient, MayAcknowledgeEachMessageThatItTakesOutOfAFullWindow) {
  Stream& stream = Streaming();
  const base::Slice message = base::Slice::Copy(h2::Message("x"));
  for (int i = 0; i < 65535 / 6 + kMany; ++i) stream.SendData(message, false);
  server.Frames();
  ASSERT_GT(stream.queued_bytes(), 0u);
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(server.Feed(h2::WindowUpdate(0, 6) + h2::WindowUpdate(stream.id(), 6))) << i;
    ASSERT_EQ(server.Frames().size(), 1u);
  }
  Forget(stream.id());
}

// The same where the messages that had to wait come to it many in a frame.
TEST_F(HonestClient, MayAcknowledgeEachOfTheMessagesInAFrame) {
  Stream& stream = Streaming();
  const base::Slice message = base::Slice::Copy(h2::Message("x"));
  for (int i = 0; i < kMany * 2; ++i) stream.SendData(message, false);
  int left = kMany * 2;
  while (left > 0) {
    int messages = 0;
    for (const h2::Frame& frame : server.Frames()) messages += static_cast<int>(frame.payload.size()) / 6;
    left -= messages;
    ASSERT_TRUE(server.Feed(Repeat(messages, h2::WindowUpdate(0, 6) + h2::WindowUpdate(stream.id(), 6)))) << left;
    if (messages == 0) break;
  }
  Forget(stream.id());
}

// Little memory: a window of 512 bytes, opened again and again for a large message.
TEST_F(HonestClient, MayHaveASmallWindow) {
  ASSERT_TRUE(server.Feed(h2::Settings({{4, 512}}) + h2::WindowUpdate(0, 1 << 30)));
  Stream& stream = Streaming();
  const base::Slice piece = base::Slice::Copy(std::string(16384, 'x'));
  for (int i = 0; i < kMany; ++i) {
    if (i % 32 == 0) stream.SendData(piece, false);
    server.Frames();
    ASSERT_TRUE(server.Feed(h2::WindowUpdate(stream.id(), 512))) << i;
  }
  Forget(stream.id());
}

// Go's net/http acknowledged each Read of a body for both windows; io.ReadAll begins with 512 bytes.
TEST_F(HonestClient, MayAcknowledgeEachReadOfALargeMessage) {
  Stream& stream = Streaming();
  const base::Slice piece = base::Slice::Copy(std::string(16384, 'x'));
  for (int i = 0; i < 2000; ++i) {
    stream.SendData(piece, false);
    server.Frames();
    ASSERT_TRUE(server.Feed(Repeat(32, h2::WindowUpdate(0, 512) + h2::WindowUpdate(stream.id(), 512)))) << i;
  }
  Forget(stream.id());
}

// All of it at once after a pause of its own: what we must answer, and it has not read yet.
TEST_F(HonestClient, MayLeaveASecondsWorthOfAnswersUnread) {
  for (int i = 0; i < 900; ++i) ASSERT_TRUE(server.Feed(h2::Settings({{4, 65535}}) + h2::Ping(1) + h2::Ping(2))) << i;
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(server.Feed(h2::Headers(Next(), Block(h2::GrpcRequest())))) << i;
}

// A slow reader of many calls, each as full as a backend may make it.
TEST_F(HonestClient, MayLeaveAWindowOfEachOfFiveHundredCallsUnread) {
  const base::Slice window = base::Slice::Copy(std::string(256 * 1024, 'x'));
  for (int i = 0; i < 500; ++i) Streaming().SendData(window, false);
  EXPECT_GT(server.session->buffered_bytes(), 120'000'000u);
  EXPECT_FALSE(server.session->has_too_much_queued());
}

// ---- Backends ----

class HonestBackend : public ::testing::Test {
 public:
  HonestBackend() {
    client.now = base::TimePoint(std::chrono::hours(1));
    client.Handshake();
    client.Feed(h2::WindowUpdate(0, 1 << 30));
  }
  // A call whose response has begun. All that comes is taken.
  Stream& Streaming(const std::string& headers = "") {
    Stream& stream = client.Open();
    client.Heard(stream.id()).on_data = [&stream](const base::Slice& bytes) { stream.Consume(bytes.size()); };
    EXPECT_TRUE(client.Feed(headers.empty() ? h2::Headers(stream.id(), Block(h2::GrpcResponse())) : headers));
    return stream;
  }
  void Forget(uint32_t id) {
    client.Release(id);
    client.recorders.erase(id);
    client.log.clear();
    if (id % 64 == 1) client.Frames();
  }

  SessionHarness client{Role::kClient};
};

// What grpc's own interop server does in `data_frame_padding`: a message of 314,000 bytes in frames of five.
TEST_F(HonestBackend, MayPadEachFiveBytesOfALargeMessage) {
  const uint32_t id = Streaming().id();
  const std::string frame = h2::PaddedData(id, "fives", 255);
  for (int i = 0; i < 62800; ++i) {
    ASSERT_TRUE(client.Feed(frame)) << i;
    if (i % 64 == 0) client.Frames();
  }
  EXPECT_EQ(client.Heard(id).data.size(), 62800u * 5);
  Forget(id);
}

TEST_F(HonestBackend, MayStreamMessagesOfAByte) {
  const uint32_t id = Streaming().id();
  const std::string message = h2::Message("x");
  for (int i = 0; i < 2 * kMany; ++i) ASSERT_TRUE(client.Feed(h2::Data(id, message))) << i;
  Forget(id);
}

TEST_F(HonestBackend, MaySendTheByteOfEachMessageApart) {
  const uint32_t id = Streaming().id();
  const std::string message = h2::Message("x");
  const std::string apart = h2::Data(id, message.substr(0, 5)) + h2::Data(id, message.substr(5));
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(client.Feed(apart)) << i;
  for (int i = 0; i < kMany; ++i) ASSERT_TRUE(client.Feed(h2::Data(id, message) + h2::Data(id, ""))) << i;
  Forget(id);
}

// A window full of it may be on its way when we cancel.
TEST_F(HonestBackend, MayHaveAWindowOfSmallFramesUnderWayWhenWeCancel) {
  const uint32_t id = Streaming().id();
  const std::string message = h2::Message("x");
  const std::string apart = h2::Data(id, message.substr(0, 5)) + h2::Data(id, message.substr(5));
  Forget(id);
  for (int i = 0; i < 256 * 1024 / 6; ++i) ASSERT_TRUE(client.Feed(apart)) << i;
}

TEST_F(HonestBackend, MayMeasureThePathWithEachMessage) {
  Stream& stream = Streaming();
  for (int i = 0; i < kMany; ++i) {
    stream.SendData(base::Slice::Copy(h2::Message("x")), false);
    client.Frames();
    ASSERT_TRUE(client.Feed(h2::Ping(2) + h2::WindowUpdate(0, 6) + h2::WindowUpdate(stream.id(), 6))) << i;
  }
  for (int i = 0; i < kMany; ++i) {
    ASSERT_TRUE(client.Feed(h2::Data(stream.id(), h2::Message("x")) + h2::Ping(2))) << i;
    if (i % 64 == 0) client.Frames();
  }
  Forget(stream.id());
}

// An interim response, padding wherever it may stand, a PING and both windows, and a reset behind the end, which gRPC's
// C++ server sends where the request has not ended.
TEST_F(HonestBackend, MaySayMuchWithEachCall) {
  for (int i = 0; i < kMany; ++i) {
    Stream& stream = client.Open();
    const uint32_t id = stream.id();
    stream.SendData(base::Slice::Copy(h2::Message("x")), true);
    ASSERT_TRUE(client.Feed(
        h2::Ping(1) + h2::WindowUpdate(0, 6) + h2::WindowUpdate(id, 6) + h2::Headers(id, Block({{":status", "103"}})) +
        Padded(id, h2::GrpcResponse(), h2::kEndHeaders) + h2::PaddedData(id, h2::Message("x"), 255) +
        Padded(id, h2::GrpcTrailers(), 5) + h2::RstStream(id, 0)))
        << i;
    Forget(id);
  }
}

// It goes: every call is refused, at any rate, until we stop.
TEST_F(HonestBackend, MayRefuseEveryCall) {
  for (int i = 0; i < kMany; ++i) {
    const uint32_t id = client.Open().id();
    ASSERT_TRUE(client.Feed(h2::RstStream(id, 7))) << i;
    Forget(id);
  }
}

}  // namespace
}  // namespace sluice::http2
