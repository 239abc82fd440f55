#include "http2/connection/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "connection_fixture.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using std::chrono::milliseconds;

TEST_F(ConnectionTest, WhatIsReadIsFedAlsoInSmallPieces) {
  Start(Role::kServer);
  near->SetCallBytesMax(7);
  peer->Send(Headers(1, Block(GrpcRequest())) + Data(1, "hello", h2::kEndStream));
  Run();
  EXPECT_EQ(log, (Strings{"request 1", "1: data 5 END"}));
}

TEST_F(ConnectionTest, AllThatIsToBeSaidInATurnIsOneWrite) {
  Start(Role::kServer);
  on_request = [this](Stream& stream) { stream.SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true); };
  std::string calls;
  for (uint32_t id = 1; id < 41; id += 2) calls += Headers(id, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream);
  const uint64_t before = near->writes();
  peer->Send(calls + h2::Ping(5));
  time.Run();
  EXPECT_EQ(near->writes() - before, 1u);
  Run();
  for (uint32_t id = 1; id < 41; id += 2) EXPECT_TRUE(peer->streams[id].end);
}

TEST_F(ConnectionTest, PartialWritesGoOnWhenThereIsRoom) {
  buffer_bytes = 1000;
  Start(Role::kServer);
  near->SetCallBytesMax(333);
  peer->Send(Headers(1, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
  Run();
  std::string body;
  for (int i = 0; i < 50'000; ++i) body.push_back(static_cast<char>(i * 7 + i / 256));
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), false);
  streams[1]->SendData(base::Slice::Copy(body), true);
  time.Run();
  EXPECT_LE(peer->streams[1].data.size(), 1000u);
  Run();
  EXPECT_EQ(peer->streams[1].data, body);
  EXPECT_TRUE(peer->streams[1].end);
}

TEST_F(ConnectionTest, AFullSocketHoldsBackFramingOfData) {
  options.session.output_bytes_max = 16384;
  buffer_bytes = 4096;
  Start(Role::kServer);
  peer->reading = false;
  peer->Send(Headers(1, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream) + h2::WindowUpdate(1, 1 << 20) +
             h2::WindowUpdate(0, 1 << 20));
  Run();
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), false);
  for (int i = 0; i < 20; ++i) streams[1]->SendData(base::Slice::Copy(std::string(16384, 'x')), false);
  Run();
  EXPECT_LE(recorders[0]->sent, 4096u + 2 * 16384 + 16384);
  EXPECT_GT(recorders[0]->sent, 0u);
  peer->reading = true;
  Run();
  EXPECT_EQ(peer->streams[1].data.size(), 20u * 16384);
}

TEST_F(ConnectionTest, APeerThatSendsAndDoesNotReadIsNotReadEither) {
  options.session.output_bytes_max = 16384;
  options.session.pings_per_second = 10000;
  buffer_bytes = 4096;
  Start(Role::kServer);
  peer->reading = false;
  std::string pings;
  for (int i = 0; i < 9000; ++i) pings += h2::Ping(i);  // 153 KB of answers
  peer->Send(pings);
  Run();
  EXPECT_EQ(peer->wire().unread(), 4096u);  // what we do not take stays in its buffer
  EXPECT_LE(connection->session().buffered_bytes(), 3u * 16384 + 4096);
  EXPECT_FALSE(connection->closed());
  peer->reading = true;
  Run();
  EXPECT_EQ(peer->Count(h2::kPing), 9000u);
}

TEST_F(ConnectionTest, AFloodEndsItAndIsCountedByKindAndSide) {
  metrics::Registry registry(2);
  FloodRecord record(registry);
  context.abuse = FloodReports(&record);
  StartAndFlood();
  Advance(std::chrono::seconds(2));
  EXPECT_TRUE(connection->closed());
  EXPECT_EQ(log, Strings{"closed ENHANCE_YOUR_CALM: settings_flood: beyond 16 a second"});
  for (size_t kind = 1; kind < kFloodKinds; ++kind) {
    EXPECT_EQ(record.downstream[kind]->Value(), kind == static_cast<size_t>(FloodKind::kSettingsFlood) ? 1u : 0u);
    EXPECT_EQ(record.upstream[kind]->Value(), 0u);
  }
}

// A stream that says what its peer made TLS do.
struct BusyTls final : net::Stream {
  explicit BusyTls(std::unique_ptr<net::Stream> stream) : inner(std::move(stream)) {}
  net::IoResult Read(uint8_t* into, size_t capacity) override {
    net::IoResult result = inner->Read(into, capacity);
    result.useless = useless;
    return result;
  }
  net::IoResult Write(const iovec* parts, size_t count) override { return inner->Write(parts, count); }
  void WaitReadable(net::IoEvents& events) override { inner->WaitReadable(events); }
  void WaitWritable(net::IoEvents& events) override { inner->WaitWritable(events); }
  void ShutdownWrite() override { inner->ShutdownWrite(); }
  void Close() override { inner->Close(); }
  std::string PeerName() const override { return inner->PeerName(); }
  const std::unique_ptr<net::Stream> inner;
  uint32_t useless = 0;
};

TEST_F(ConnectionTest, MessagesOfTlsWithoutDataEndItAndAreCounted) {
  metrics::Registry registry(2);
  FloodRecord record(registry);
  context.abuse = FloodReports(&record);
  auto pair = net::MemoryStream::Make(time.worker, "us", "peer");
  peer = std::make_unique<test::FramePeer>(test::FramePeer::Role::kClient, std::move(pair.far));
  auto busy = std::make_unique<BusyTls>(std::move(pair.near));
  BusyTls& tls = *busy;
  connection = std::make_unique<Connection>(context, std::move(busy), Role::kServer, options, *this);
  connection->Start();
  tls.useless = 2;
  peer->Send(h2::Preface() + h2::Settings());
  Run();
  EXPECT_FALSE(connection->closed());
  tls.useless = 256;
  peer->Send(h2::Ping(1));
  Run();
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_EQ(record.downstream[static_cast<size_t>(FloodKind::kTlsMessages)]->Value(), 1u);
  peer->Send(h2::Ping(1));  // and goes on: it is not listened to for as long as others are
  Run();
  EXPECT_TRUE(connection->closed());
  EXPECT_EQ(log.back(), "closed ENHANCE_YOUR_CALM: tls_messages: beyond 5000 a second");
}

TEST_F(ConnectionTest, AfterItsLastWordItReadsOnlySoMuch) {
  options.session.connection_window_bytes = 65536;
  Start(Role::kServer);
  peer->Send(h2::Ping(1, h2::kAck) + h2::Data(0, "x"));  // a connection error
  Run();
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  const std::string more(65536, 'x');
  for (int i = 0; i < 5; ++i) {  // 256 KiB and the window
    peer->Send(more);
    Run();
  }
  EXPECT_FALSE(connection->closed());
  peer->Send(more);
  Run();
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionTest, AfterAFloodItReadsLess) {
  StartAndFlood();
  peer->Send(std::string(1 << 18, 'x'));
  Run();
  EXPECT_FALSE(connection->closed());
  peer->Send("x");
  Run();
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionTest, TimeMakesRoomForMoreOfWhatIsBounded) {
  options.session.settings_per_second = 16;
  Start(Role::kServer);
  for (int i = 0; i < 100; ++i) {
    Advance(milliseconds(70));
    peer->Send(h2::Settings());
  }
  Run();
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
}

TEST_F(ConnectionTest, FloodsAreLoggedOnceASecond) {
  Start(Role::kServer);
  FloodReports reports;
  auto report = [&] { return reports.Report(time.worker, true, "10.0.0.1:5", FloodKind::kPingFlood, "why"); };
  EXPECT_TRUE(report());
  EXPECT_FALSE(report());
  Advance(milliseconds(999));
  EXPECT_FALSE(report());
  Advance(milliseconds(1));
  EXPECT_TRUE(report());
  EXPECT_FALSE(report());
}

TEST_F(ConnectionTest, APeerThatClosesEndsTheStreams) {
  Start(Role::kServer);
  peer->Send(Headers(1, Block(GrpcRequest())));
  Run();
  peer->wire().ShutdownWrite();
  Run();
  EXPECT_EQ(log, (Strings{"request 1", "1: reset NO_ERROR lost", "closed closed by peer"}));
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionTest, AfterAFailedWriteWhatThePeerHasSaidIsStillHeard) {
  Start(Role::kClient);
  Stream& stream = Open();
  Run();
  peer->Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "the whole answer") +
             Headers(1, Block(h2::GrpcTrailers()), h2::kEndHeaders | h2::kEndStream));
  near->SetCallBytesMax(16);  // several turns of reading; the write comes in the first
  peer->wire().Close();
  stream.SendData(base::Slice::Copy("too late"), false);
  EXPECT_TRUE(connection->CanOpen());
  time.Run();
  ASSERT_FALSE(log.empty());
  EXPECT_THAT(log, ::testing::Contains(::testing::HasSubstr("grpc-status=0 END")));
  EXPECT_THAT(log.back(), ::testing::HasSubstr("closed"));
  EXPECT_FALSE(connection->CanOpen());
}

TEST_F(ConnectionTest, WithTooMuchOutputUnreadItTakesNoMoreStreamsUntilItHasDrained) {
  options.session.output_bytes_max = 16384;
  Start(Role::kClient);
  near->SetBufferBytes(0);  // the peer has stopped reading
  size_t opened = 0;
  while (connection->CanOpen() && opened < 10000) {
    Open().Reset(ErrorCode::kCancel);  // calls whose deadline passes
    ++opened;
    time.Run();
  }
  EXPECT_LT(opened, 1000u);
  EXPECT_GE(connection->session().buffered_bytes(), 16384u);
  const int before = capacity_signals;
  near->SetBufferBytes(net::MemoryStream::kBufferBytes);
  Run();
  EXPECT_GT(capacity_signals, before);
  EXPECT_TRUE(connection->CanOpen());
}

TEST_F(ConnectionTest, AResetSocketEndsTheStreams) {
  Start(Role::kClient);
  Open();
  Run();
  peer->wire().Break(ECONNRESET);
  Run();
  EXPECT_EQ(log, (Strings{"0: reset NO_ERROR lost", "closed Connection reset by peer"}));
}

TEST_F(ConnectionTest, ARequestThatNeverLeftIsRefusedNotLost) {
  buffer_bytes = 4096;
  Start(Role::kClient);
  Open();
  Run();
  near->SetBufferBytes(0);
  Open();
  Run();
  peer->wire().Break(ECONNRESET);
  Run();
  EXPECT_EQ(log, (Strings{"0: reset NO_ERROR refused", "0: reset NO_ERROR lost", "closed Connection reset by peer"}));
}

TEST_F(ConnectionTest, AProtocolErrorIsSaidBeforeTheEndAndWhatStillComesIsIgnored) {
  Start(Role::kServer);
  peer->Send(h2::WindowUpdate(0, 0));
  Run();
  ASSERT_NE(peer->Last(h2::kGoaway), nullptr);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(4), 1u);
  EXPECT_TRUE(peer->end);  // our side is shut, and the peer may say what it likes for a while
  peer->Send(Headers(1, Block(GrpcRequest())) + h2::Ping(1));
  Run();
  EXPECT_FALSE(connection->closed());
  EXPECT_EQ(log, Strings{});
  peer->wire().Close();
  Run();
  ASSERT_EQ(log.size(), 1u);
  EXPECT_TRUE(log[0].starts_with("closed ") && log[0] != "closed closed by peer") << log[0];
}

TEST_F(ConnectionTest, APeerThatLingersIsCutOffAfterASecond) {
  Start(Role::kServer);
  peer->Send(h2::WindowUpdate(0, 0));
  Run();
  Advance(milliseconds(999));
  EXPECT_FALSE(connection->closed());
  Advance(milliseconds(2));
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionTest, APeerThatDoesNotTakeOurLastWordIsCutOffAfterASecond) {
  Start(Role::kServer);
  near->SetBufferBytes(0);
  peer->Send(h2::WindowUpdate(0, 0));
  Run();
  Advance(milliseconds(999));
  EXPECT_FALSE(connection->closed());
  Advance(milliseconds(2));
  EXPECT_TRUE(connection->closed());
}

TEST_F(ConnectionTest, KeepalivePingsAfterSilenceAndEndsTheConnectionWithoutAnAnswer) {
  options.keepalive = {milliseconds(1000), milliseconds(300)};
  Start(Role::kServer);
  Advance(milliseconds(999));
  EXPECT_EQ(peer->Count(h2::kPing), 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(peer->Count(h2::kPing), 1u);  // answered: a second of silence again
  Advance(milliseconds(999));
  EXPECT_EQ(peer->Count(h2::kPing), 1u);
  peer->acknowledge = false;
  Advance(milliseconds(1000));
  EXPECT_EQ(peer->Count(h2::kPing), 2u);
  Advance(milliseconds(299));
  EXPECT_FALSE(connection->closed());
  Advance(milliseconds(1));  // at once: no peer is there to read a last word
  EXPECT_EQ(log, (Strings{"timeout keepalive", "closed keepalive timeout"}));
}

TEST_F(ConnectionTest, AnythingThePeerSaysIsASignOfLife) {
  options.keepalive = {milliseconds(1000), milliseconds(300)};
  Start(Role::kServer);
  peer->acknowledge = false;
  Advance(milliseconds(1000));
  EXPECT_EQ(peer->Count(h2::kPing), 1u);
  for (int i = 0; i < 20; ++i) {
    Advance(milliseconds(200));
    peer->Send(h2::WindowUpdate(0, 1));
    Run();
  }
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
}

TEST_F(ConnectionTest, AClientPingsOnlyWhileItWaitsForSomething) {
  options.keepalive = {milliseconds(1000), milliseconds(300)};
  Start(Role::kClient);
  Advance(milliseconds(1000));
  Advance(milliseconds(5000));
  EXPECT_EQ(peer->Count(h2::kPing), 0u);
  Open();
  Advance(milliseconds(1000));
  EXPECT_EQ(peer->Count(h2::kPing), 1u);
}

TEST_F(ConnectionTest, AConnectionWithoutStreamsClosesAfterIdleTimeout) {
  options.life.idle_timeout = milliseconds(1000);
  Start(Role::kClient);
  Open();
  Advance(milliseconds(5000));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Release(1);  // the clock starts here
  Advance(milliseconds(999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 0u);
  Advance(milliseconds(1));
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_FALSE(connection->CanOpen());
  peer->wire().Close();
  Run();
  EXPECT_EQ(log, (Strings{"timeout idle", "closed idle"}));
}

TEST_F(ConnectionTest, AServersDrainTakesRequestsThatWereOnTheirWayAndClosesAfterTheLast) {
  Start(Role::kServer);
  peer->Send(Headers(1, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
  Run();
  connection->Drain();
  peer->Send(Headers(3, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
  Run();
  ASSERT_EQ(peer->Count(h2::kGoaway), 2u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 3u);
  EXPECT_EQ(log, (Strings{"request 1", "request 3"}));
  peer->Send(Headers(5, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
  Run();
  EXPECT_EQ(log.size(), 2u);  // after the second GOAWAY
  for (uint32_t id : {1, 3}) {
    EXPECT_FALSE(peer->end);
    streams[id]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true);
    Release(id);
    Run();
  }
  EXPECT_TRUE(peer->streams[3].end);
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionTest, AnIdleServersDrainWaitsUntilTheClientHasSeenIt) {
  Start(Role::kServer);
  peer->acknowledge = false;
  connection->Drain();
  Run();
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_FALSE(peer->end);
  // This request had left before the client read the GOAWAY.
  peer->Send(Headers(1, Block(GrpcRequest())));
  peer->Send(h2::RawFrame(h2::kPing, h2::kAck, 0, peer->Last(h2::kPing)->payload));
  Run();
  EXPECT_EQ(log, (Strings{"request 1"}));
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 1u);
  EXPECT_FALSE(peer->end);
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true);
  Release(1);
  Run();
  EXPECT_TRUE(peer->end);
}

// Nor for ever: silence holds up no drain.
TEST_F(ConnectionTest, AServersDrainGoesOnWithoutAnAnswerAfterFiveSeconds) {
  Start(Role::kServer);
  peer->acknowledge = false;
  peer->Send(Headers(1, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
  Run();
  connection->Drain();
  Advance(milliseconds(4999));
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  Advance(milliseconds(1));
  ASSERT_EQ(peer->Count(h2::kGoaway), 2u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(), 1u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(4), 0u);  // NO_ERROR
  EXPECT_FALSE(peer->end);                          // a call is under way
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true);
  Release(1);
  Run();
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionTest, AnIdleServersDrainEndsWithoutAnAnswer) {
  Start(Role::kServer);
  peer->acknowledge = false;
  connection->Drain();
  Advance(milliseconds(4999));
  EXPECT_FALSE(peer->end);
  Advance(milliseconds(1));
  EXPECT_TRUE(peer->end);
  peer->wire().Close();
  Run();
  EXPECT_EQ(log, (Strings{"closed drained"}));
}

TEST_F(ConnectionTest, AClientsDrainClosesWhenItsStreamsHaveEnded) {
  Start(Role::kClient);
  Open();
  connection->Drain();
  Run();
  EXPECT_FALSE(connection->CanOpen());
  EXPECT_FALSE(peer->end);
  peer->Send(Headers(1, Block(h2::GrpcResponse())) +
             Headers(1, Block(h2::GrpcTrailers()), h2::kEndHeaders | h2::kEndStream));
  Run();
  Release(1);
  Run();
  EXPECT_TRUE(peer->end);
  peer->wire().Close();
  Run();
  EXPECT_EQ(log.back(), "closed drained");
}

TEST_F(ConnectionTest, AGoawayOfThePeerClosesWhenTheStreamsItCoversHaveEnded) {
  Start(Role::kClient);
  Open();
  Open();
  Run();
  peer->Send(h2::Goaway(1, 0));
  Run();
  EXPECT_EQ(log, (Strings{"0: reset REFUSED_STREAM refused", "goaway"}));
  EXPECT_FALSE(peer->end);
  Release(1);
  Run();
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionTest, AResetOfAnIdleStreamClosesWhenTheOpenStreamsHaveEnded) {
  Start(Role::kServer);
  peer->Send(Headers(1, Block(GrpcRequest()), h2::kEndHeaders | h2::kEndStream) + h2::RstStream(3, 8));
  Run();
  ASSERT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_EQ(peer->Last(h2::kGoaway)->Word(4), 1u);
  EXPECT_FALSE(peer->end);
  connection->Drain();  // changes nothing any more
  streams[1]->SendHeaders(h2::List(context.interns, h2::GrpcResponse()), true);
  Release(1);
  Run();
  EXPECT_TRUE(peer->streams[1].end);
  EXPECT_EQ(peer->Count(h2::kGoaway), 1u);
  EXPECT_TRUE(peer->end);
}

TEST_F(ConnectionTest, DestroyedWithStreamsOpenItTellsThemAndNothingMore) {
  Start(Role::kServer);
  peer->Send(Headers(1, Block(GrpcRequest())));
  Run();
  connection.reset();
  EXPECT_EQ(log, (Strings{"request 1", "1: reset NO_ERROR lost"}));
  Run();
  EXPECT_TRUE(peer->end);
}

TEST(ReadBuffer, RoomIsUsedAgainWhenWhatWasReadHasNoHolder) {
  ReadBuffer buffer;
  ReadBuffer::Room first = buffer.Acquire();
  { base::Slice slice = buffer.Take(100'000); }
  EXPECT_EQ(buffer.Acquire().data, first.data);
  base::Slice held = buffer.Take(100'000);
  ReadBuffer::Room second = buffer.Acquire();
  EXPECT_EQ(second.data, first.data + 100'000);
  base::Slice more = buffer.Take(second.size - ReadBuffer::kReadBytesMin + 1);
  EXPECT_GE(buffer.Acquire().size, ReadBuffer::kReadBytesMin);
}

}  // namespace
}  // namespace sluice::http2
