// Flow control in both directions, turns between streams, and the order of what one stream sends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using h2::With;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

base::Slice Bytes(size_t n, char c = 'x') { return base::Slice::Copy(std::string(n, c)); }
uint32_t Increment(const std::vector<h2::Frame>& frames, uint32_t stream) {
  uint32_t sum = 0;
  for (const h2::Frame& frame : frames) {
    if (frame.type == h2::kWindowUpdate && frame.stream == stream) sum += frame.Word();
  }
  return sum;
}
std::string DataOf(const std::vector<h2::Frame>& frames, uint32_t stream) {
  std::string out;
  for (const h2::Frame& frame : frames) {
    if (frame.type == h2::kData && frame.stream == stream) out += frame.payload;
  }
  return out;
}

SessionOptions SmallWindows() {
  SessionOptions options;
  options.stream_window_bytes = 65536;
  options.connection_window_bytes = 131072;
  return options;
}

TEST(ReceiveFlow, SmallCreditSendsNoWindowUpdate) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  Stream& stream = server.Request(1);
  server.Feed(h2::Data(1, std::string(16384, 'x')));
  stream.Consume(16384);
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(ReceiveFlow, HalfAWindowOwedIsAnnouncedOnce) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  Stream& stream = server.Request(1);
  for (int i = 0; i < 4; ++i) server.Feed(h2::Data(1, std::string(16384, 'x')));
  EXPECT_THAT(server.Said(), ElementsAre("WINDOW_UPDATE[0] +65536"));
  stream.Consume(32767);
  EXPECT_THAT(server.Said(), IsEmpty());
  stream.Consume(1);
  EXPECT_THAT(server.Said(), ElementsAre("WINDOW_UPDATE[1] +32768"));
  stream.Consume(32768);
  EXPECT_THAT(server.Said(), ElementsAre("WINDOW_UPDATE[1] +32768"));
}

TEST(ReceiveFlow, EndedStreamIsCreditedOnTheConnectionOnly) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  Stream& stream = server.Request(1);
  for (int i = 0; i < 3; ++i) server.Feed(h2::Data(1, std::string(16384, 'x')));
  server.Feed(h2::Data(1, std::string(16384, 'x'), h2::kEndStream));
  stream.Consume(65536);
  EXPECT_THAT(server.Said(), ElementsAre("WINDOW_UPDATE[0] +65536"));
}

TEST(ReceiveFlow, NoMoreIsCreditedThanCame) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  Stream& stream = server.Request(1);
  server.Feed(h2::Data(1, "x"));
  stream.Consume(1'000'000);
  EXPECT_THAT(server.Said(), IsEmpty());
}

TEST(ReceiveFlow, DataBeyondTheStreamWindowIsAStreamError) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  server.Request(1);
  for (int i = 0; i < 4; ++i) server.Feed(h2::Data(1, std::string(16384, 'x')));
  EXPECT_TRUE(server.Feed(h2::Data(1, "x")));
  // What has no consumer any more is credited to the connection.
  EXPECT_THAT(server.Said(), ::testing::UnorderedElementsAre("RST_STREAM[1] 3", "WINDOW_UPDATE[0] +65536"));
  EXPECT_THAT(server.log.back(), "1: reset FLOW_CONTROL_ERROR protocol");
}

TEST(ReceiveFlow, DataBeyondTheConnectionWindowEndsIt) {
  SessionOptions options = SmallWindows();
  options.stream_window_bytes = options.frame_bytes_max = 1 << 20;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  server.Request(1);
  EXPECT_FALSE(server.Feed(h2::Data(1, std::string(131073, 'x'))));
  EXPECT_THAT(server.Said().back(), "GOAWAY last=1 code=3");
}

TEST(ReceiveFlow, StreamsThatAreNotReadLeaveTheConnectionOpenForTheOthers) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  for (uint32_t id = 1; id < 41; id += 2) {  // ten times the connection's window, nothing consumed
    server.Request(id);
    for (int i = 0; i < 4; ++i) ASSERT_TRUE(server.Feed(h2::Data(id, std::string(16384, 'x'))));
  }
  server.Request(41);
  EXPECT_TRUE(server.Feed(h2::Data(41, "y")));
  EXPECT_EQ(server.Heard(41).data, "y");
}

TEST(ReceiveFlow, PaddingIsCreditedWithoutTheConsumer) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  Stream& stream = server.Request(1);
  size_t data = 0;
  for (int i = 0; i < 2000; ++i) {  // 2000 * 256 of padding, far beyond both windows
    ASSERT_TRUE(server.Feed(h2::PaddedData(1, "y", 255)));
    ++data;
  }
  EXPECT_EQ(server.Heard(1).data.size(), data);
  stream.Consume(data);
  EXPECT_FALSE(server.Heard(1).reset);
}

TEST(ReceiveFlow, DataOnStreamsWeHaveResetIsCreditedToTheConnection) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  server.Request(1).Reset(ErrorCode::kCancel);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(server.Feed(h2::Data(1, std::string(16384, 'x'))));
  EXPECT_GE(Increment(server.Frames(), 0), 100u * 16384 - 65536);
}

TEST(ReceiveFlow, StreamReleasedInTheMiddleOfAFrameIsCreditedInFull) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  uint32_t id = 1;
  uint64_t credited = 0;
  for (; id < 200; id += 2) {
    server.Request(id);
    std::string frame = h2::Data(id, std::string(16384, 'x'));
    ASSERT_TRUE(server.Feed(frame.substr(0, 5000)));
    server.Release(id);
    ASSERT_TRUE(server.Feed(frame.substr(5000)));
    credited += Increment(server.Frames(), 0);
  }
  EXPECT_GE(credited, 100u * 16384 - 65536);
}

TEST(ReceiveFlow, EndedStreamReleasedUnreadIsCreditedInFull) {
  SessionHarness server(Role::kServer, SmallWindows());
  server.Handshake();
  uint64_t credited = 0;
  for (uint32_t id = 1; id < 200; id += 2) {
    server.Request(id).SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
    ASSERT_TRUE(server.Feed(h2::Data(id, std::string(16384, 'x'), h2::kEndStream)));
    server.Release(id);  // closed already: no reset
    credited += Increment(server.Frames(), 0);
  }
  EXPECT_GE(credited, 100u * 16384 - 65536);
}

TEST(ReceiveFlow, RestOfAFrameDoesNotReachAStreamMadeOfAReleasedOne) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  std::string frame = h2::Headers(1, Block(h2::GrpcResponse())) + h2::Data(1, "half and half");
  client.Feed(frame.substr(0, frame.size() - 4));
  client.Release(1);
  Stream& second = client.Open();
  client.Feed(frame.substr(frame.size() - 4));
  EXPECT_EQ(client.Heard(second.id()).data, "");
}

TEST(SendFlow, DataWaitsForTheStreamWindow) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 10}});
  Stream& stream = server.Request(1);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
  stream.SendData(Bytes(25), false);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("HEADERS[1] flags=4"), "DATA[1] flags=0 len=10"));
  EXPECT_EQ(stream.queued_bytes(), 15u);
  EXPECT_EQ(server.Heard(1).sent, 10u);
  EXPECT_EQ(server.session->buffered_bytes(), 15u);
  server.Feed(h2::WindowUpdate(1, 10));
  EXPECT_THAT(server.Said(), ElementsAre("DATA[1] flags=0 len=10"));
  server.Feed(h2::WindowUpdate(1, 10));
  EXPECT_THAT(server.Said(), ElementsAre("DATA[1] flags=0 len=5", HasSubstr("HEADERS[1] flags=5")));
  EXPECT_TRUE(stream.send_complete());
  EXPECT_EQ(server.Heard(1).sent, 25u);
}

TEST(SendFlow, TrailersAreWrittenBeforeTheLastBytesAreReported) {
  SessionHarness server(Role::kServer);
  server.Handshake({{4, 10}});
  Stream& stream = server.Request(1, h2::kEndHeaders | h2::kEndStream);
  stream.SendData(Bytes(15), false);
  stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
  server.Heard(1).on_sent = [&](size_t) {
    if (server.Heard(1).sent == 15) server.Release(1);
  };
  server.Frames();
  server.Feed(h2::WindowUpdate(1, 10));
  EXPECT_THAT(server.Said(), ElementsAre("DATA[1] flags=0 len=5", HasSubstr("HEADERS[1] flags=5")));
}

TEST(SendFlow, EndOfStreamGoesOnTheLastQueuedBytes) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 10}});
  Stream& stream = client.Open();
  stream.SendData(Bytes(15), false);
  stream.SendData(base::Slice(), true);
  client.Frames();
  client.Feed(h2::WindowUpdate(1, 100));
  EXPECT_THAT(client.Said(), ElementsAre("DATA[1] flags=1 len=5"));
}

TEST(SendFlow, EmptyEndOfStreamNeedsNoWindow) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 0}});
  client.Open().SendData(base::Slice(), true);
  EXPECT_THAT(client.Said(), ElementsAre(HasSubstr("HEADERS[1]"), "DATA[1] flags=1 len=0"));
}

TEST(SendFlow, ConnectionWindowHoldsAllStreams) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& one = client.Open();
  Stream& two = client.Open();
  one.SendData(Bytes(65535), false);
  two.SendData(Bytes(65535, 'y'), false);
  const std::vector<h2::Frame> sent = client.Frames();
  EXPECT_LE(DataOf(sent, 1).size() + DataOf(sent, 3).size(), 65535u);
  EXPECT_FALSE(client.session->HasOutput());
  client.output_signals = 0;
  client.Feed(h2::WindowUpdate(0, 3 * 65535));
  EXPECT_EQ(client.output_signals, 1);
  client.Frames();
  EXPECT_EQ(one.queued_bytes() + two.queued_bytes(), 0u);
}

// RFC 9113 5.2.1: the connection's window is for all its streams. A peer may return it only as its consumers read.
TEST(SendFlow, StreamsThatAreNotReadLeaveAPartOfTheConnectionsWindowToTheOthers) {
  constexpr int64_t kWindow = 1 << 20;
  SessionHarness client(Role::kClient);
  client.Handshake({{4, kWindow}});
  client.Feed(h2::WindowUpdate(0, kWindow - 65535));
  int64_t left = kWindow;
  for (int unread = 1; unread <= 3; ++unread) {
    client.Open().SendData(Bytes(kWindow), false);
    client.Frames();
    left /= 5;
    EXPECT_GE(client.session->send_window(), left) << unread;
    EXPECT_EQ(client.session->window_is_low(), unread > 2) << unread;
    Stream& other = client.Open();
    const uint32_t id = other.id();
    other.SendData(Bytes(500), true);
    EXPECT_EQ(DataOf(client.Frames(), id).size(), 500u) << unread;
    client.Feed(h2::WindowUpdate(0, 500));
  }
}

// nghttp2 and Netty return the window when half of it is consumed.
TEST(SendFlow, BesideAStreamThatIsNotReadAnotherHasHalfOfTheWindow) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 1 << 20}});
  client.Open().SendData(Bytes(28000), false);  // not read
  Stream& read = client.Open();
  read.SendData(Bytes(200000), true);
  EXPECT_GE(DataOf(client.Frames(), read.id()).size(), 32768u);
}

// The half that it may hold is there again before its share is.
TEST(SendFlow, AStreamBelowHalfGoesOnWhenMoreThanTheReserveIsLeft) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 1 << 20}});
  client.Open().SendData(Bytes(31000), false);  // not read
  Stream& read = client.Open();
  read.SendData(Bytes(29000), false);
  read.SendData(Bytes(200000), true);
  client.Frames();
  const size_t queued = read.queued_bytes();
  ASSERT_GT(queued, 0u);
  client.Feed(h2::WindowUpdate(0, 1500));
  client.Frames();
  EXPECT_LT(read.queued_bytes(), queued);
}

TEST(SendFlow, AStreamAtItsShareGoesOnWhenTheWindowComesBack) {
  constexpr uint32_t kWindow = 1 << 20;
  SessionHarness client(Role::kClient);
  client.Handshake({{4, kWindow}});
  client.Feed(h2::WindowUpdate(0, kWindow - 65535));
  Stream& stream = client.Open();
  stream.SendData(Bytes(4 * kWindow), true);
  client.Open();
  size_t sent = DataOf(client.Frames(), 1).size();
  EXPECT_GT(sent, size_t{kWindow} * 3 / 4) << "peers return a window when half or three quarters of it are read";
  for (int round = 0; round < 6 && !stream.send_complete(); ++round) {
    const uint32_t read = static_cast<uint32_t>(sent);
    client.Feed(h2::WindowUpdate(1, read) + h2::WindowUpdate(0, read));
    sent = DataOf(client.Frames(), 1).size();
  }
  EXPECT_TRUE(stream.send_complete()) << "four fifths of the window a round trip";
}

// Not all peers return both windows at once.
TEST(SendFlow, AStreamAtItsShareGoesOnWhenItsOwnWindowComesBack) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  stream.SendData(Bytes(60000), false);
  const size_t sent = DataOf(client.Frames(), 1).size();
  EXPECT_EQ(sent, 65535u * 4 / 5);
  client.Feed(h2::WindowUpdate(1, 65000));
  EXPECT_EQ(DataOf(client.Frames(), 1).size(), 60000 - sent);
}

TEST(SendFlow, LoweredInitialWindowMakesWindowsNegative) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  stream.SendData(Bytes(1000), false);
  client.Frames();
  client.Feed(h2::Settings({{4, 500}}));  // 65535 - 1000 moves by -65035: -500
  stream.SendData(Bytes(10), false);
  EXPECT_THAT(client.Said(), ElementsAre("SETTINGS ack"));
  client.Feed(h2::WindowUpdate(1, 500));
  EXPECT_THAT(client.Said(), IsEmpty());
  client.Feed(h2::WindowUpdate(1, 1));
  EXPECT_THAT(client.Said(), ElementsAre("DATA[1] flags=0 len=1"));
  client.Feed(h2::Settings({{4, 1000}}));
  EXPECT_THAT(client.Said(), ElementsAre("SETTINGS ack", "DATA[1] flags=0 len=9"));
}

TEST(SendFlow, WindowTakenBackStopsAQueuedStream) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 20000}});
  Stream& stream = client.Open();
  stream.SendData(Bytes(20000), false);  // above a frame: queued until FrameOutput
  client.Feed(h2::Settings({{4, 0}}));
  EXPECT_THAT(client.Said(), ElementsAre(HasSubstr("HEADERS[1]"), "SETTINGS ack"));
  EXPECT_EQ(stream.queued_bytes(), 20000u);
}

TEST(SendFlow, StreamsHaveTheirTurns) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 1 << 20}});
  client.Feed(h2::WindowUpdate(0, 1 << 20));
  Stream& one = client.Open();
  Stream& two = client.Open();
  one.SendData(Bytes(40000), true);
  two.SendData(Bytes(40000), true);
  std::vector<h2::Frame> frames = client.Frames();
  std::vector<uint32_t> order;
  for (const h2::Frame& frame : frames) {
    if (frame.type == h2::kData) order.push_back(frame.stream);
  }
  EXPECT_THAT(order, ElementsAre(1, 3, 1, 3, 1, 3));
}

TEST(SendFlow, SmallDataMayNotOvertakeTheTurnsOfOthers) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& one = client.Open();
  Stream& two = client.Open();
  client.Frames();
  one.SendData(Bytes(20000), false);
  two.SendData(Bytes(5), false);
  EXPECT_THAT(client.Said(),
              ElementsAre("DATA[1] flags=0 len=16384", "DATA[3] flags=0 len=5", "DATA[1] flags=0 len=3616"));
}

TEST(SendFlow, OutputAboveItsBoundKeepsDataInTheStream) {
  SessionOptions options;
  options.output_bytes_max = 16384;
  SessionHarness client(Role::kClient, options);
  client.Handshake({{4, 1 << 20}});
  client.Feed(h2::WindowUpdate(0, 1 << 20));
  client.Frames();
  Stream& stream = client.Open();
  for (int i = 0; i < 50; ++i) stream.SendData(Bytes(1000), false);
  EXPECT_LT(client.session->output().size(), 16384u + 2000);
  client.session->FrameOutput();
  EXPECT_LT(client.session->output().size(), 2 * 16384u + 2000);
  EXPECT_GT(stream.queued_bytes(), 10000u);
  EXPECT_EQ(DataOf(client.Frames(), 1).size(), 50000u);
}

TEST(SendFlow, FramesAreNoLargerThanThePeerAccepts) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 1 << 20}});
  client.Feed(h2::WindowUpdate(0, 1 << 20));
  client.Open().SendData(Bytes(100000), true);
  for (const h2::Frame& frame : client.Frames()) EXPECT_LE(frame.payload.size(), 16384u);
}

TEST(SendFlow, ManyTinyPiecesKeepTheirOrder) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 0}});
  Stream& stream = client.Open();
  std::string expected;
  for (int i = 0; i < 20000; ++i) {
    std::string piece(i % 7 == 0 ? 600 : static_cast<size_t>(i % 5), static_cast<char>('a' + i % 26));
    expected += piece;
    stream.SendData(base::Slice::Copy(piece), false);
  }
  client.Feed(h2::WindowUpdate(0, 1 << 30));
  std::string got;
  for (size_t step = 1; got.size() < expected.size(); step = step * 3 % 5000 + 1) {
    client.Feed(h2::WindowUpdate(1, static_cast<uint32_t>(step)));
    got += DataOf(client.Frames(), 1);
    ASSERT_EQ(got, expected.substr(0, got.size()));
  }
}

TEST(SendFlow, LargeHeaderListIsSplitIntoContinuations) {
  SessionHarness client(Role::kClient);
  SessionOptions roomy;
  roomy.header_list_bytes_max = 200000;
  roomy.header_block_bytes_max = 200000;
  SessionHarness server(Role::kServer, roomy);
  client.session->Start();
  server.session->Start();
  server.Feed(client.Written());
  client.Open(true, With(h2::GrpcRequest(), {{"large", std::string(50000, 'v')}}));
  server.Feed(client.Written());
  EXPECT_EQ(server.error, "");
  EXPECT_THAT(server.log.at(0), HasSubstr("large=" + std::string(50000, 'v') + " END"));
}

TEST(SendFlow, AfterAResetNothingIsSent) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 0}});
  Stream& stream = client.Open();
  stream.SendData(Bytes(100), false);
  client.Frames();
  stream.Reset(ErrorCode::kCancel);
  stream.SendData(Bytes(10), true);
  stream.SendHeaders(h2::List(client.interns, h2::GrpcTrailers()), true);
  client.Feed(h2::WindowUpdate(1, 1000));
  EXPECT_THAT(client.Said(), ElementsAre("RST_STREAM[1] 8"));
  EXPECT_EQ(client.session->buffered_bytes(), 0u);
}

}  // namespace
}  // namespace sluice::http2
