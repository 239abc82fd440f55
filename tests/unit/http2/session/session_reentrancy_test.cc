// Handlers that act from inside events: on their own stream, on others, across sessions. And what is left at the end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.h"
#include "support/h2_harness.h"
#include "unit/http2/allocation_counter.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint8_t kEnd = h2::kEndHeaders | h2::kEndStream;
const std::string kRequest = Block(h2::GrpcRequest());

TEST(Reentrancy, ReleaseInsideOnRequest) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    server.Release(stream.id());
    return nullptr;
  };
  EXPECT_TRUE(server.Feed(h2::Headers(1, kRequest) + h2::Data(1, "x") + h2::Headers(3, kRequest, kEnd)));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 8", "RST_STREAM[3] 8"));
}

TEST(Reentrancy, RequestWithoutAListenerIsReset) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    server.streams.erase(stream.id());
    return nullptr;
  };
  server.Feed(h2::Headers(1, kRequest));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 8"));
}

TEST(Reentrancy, AnswerInFullAndReleaseInsideOnRequest) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), true);
    server.Release(stream.id());
    return nullptr;
  };
  server.Feed(h2::Headers(1, kRequest, kEnd) + h2::Headers(3, kRequest) + h2::Data(3, "x"));
  EXPECT_THAT(server.Said(), ElementsAre(HasSubstr("HEADERS[1]"), HasSubstr("HEADERS[3]"), "RST_STREAM[3] 0"));
}

TEST(Reentrancy, ReleaseInsideOnDataInTheMiddleOfAFrame) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Request(1);
  server.Heard(1).on_data = [&](const base::Slice&) {
    if (server.streams.count(1)) server.Release(1);
  };
  std::string frame = h2::PaddedData(1, std::string(1000, 'x'), 50, h2::kEndStream);
  EXPECT_TRUE(server.Feed(frame.substr(0, 300)));
  EXPECT_TRUE(server.Feed(frame.substr(300) + h2::Ping(1)));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 8", "PING ack"));
}

TEST(Reentrancy, ReleaseInsideOnHeadersOnResetAndOnSent) {
  SessionHarness client(Role::kClient);
  client.Handshake({{4, 5}});
  for (int i = 0; i < 3; ++i) client.Open();
  client.Heard(1).on_headers = [&] { client.Release(1); };
  client.Heard(3).on_reset = [&] { client.Release(3); };
  client.Heard(5).on_sent = [&](size_t) { client.Release(5); };
  client.Feed(h2::Headers(1, Block(h2::GrpcResponse())) + h2::Data(1, "x") + h2::RstStream(3, 8));
  client.streams.at(5)->SendData(base::Slice::Copy("0123456789"), false);
  EXPECT_THAT(client.Said(), Contains("RST_STREAM[5] 8"));
  EXPECT_EQ(client.session->open_streams(), 0u);
}

TEST(Reentrancy, ReleaseInsideTheDirectOnSent) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  client.Heard(1).on_sent = [&](size_t) { client.Release(1); };
  stream.SendData(base::Slice::Copy("x"), true);
  EXPECT_THAT(client.Said(), Contains("RST_STREAM[1] 8"));
}

TEST(Reentrancy, SendMoreInsideOnSent) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  int left = 5;
  client.Heard(1).on_sent = [&](size_t) {
    if (left-- > 0) stream.SendData(base::Slice::Copy("more"), left == 0);
  };
  stream.SendData(base::Slice::Copy("first"), false);
  EXPECT_EQ(client.Heard(1).sent, 25u);
  EXPECT_TRUE(stream.send_complete());
}

TEST(Reentrancy, HandlersReleaseEachOthersStreamsWhenAllAreLost) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  for (int i = 0; i < 10; ++i) client.Open();
  for (uint32_t id = 1; id < 20; id += 2) {
    client.Heard(id).on_reset = [&] {
      while (!client.streams.empty()) client.Release(client.streams.begin()->first);
    };
  }
  client.session->TransportClosed("gone");
  EXPECT_EQ(client.log.size(), 1u);
}

// The second stream is closed already, but has not been told: after its Reset there is nothing to tell.
TEST(Reentrancy, ResetOfAStreamThatWasLostAndNotToldYetEndsItsEvents) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& first = client.Open();
  client.Open();
  client.Heard(3).on_reset = [&] { first.Reset(ErrorCode::kCancel); };
  client.session->TransportClosed("gone");
  EXPECT_TRUE(client.Heard(3).reset) << "the youngest hears of it first";
  EXPECT_FALSE(client.Heard(1).reset);
}

// A call spliced through two sessions: bytes that arrive at the server leave through the client, and credits come back.
TEST(Reentrancy, SplicedSessionsCreditEachOther) {
  SessionHarness down(Role::kServer), up(Role::kClient);
  down.Handshake();
  up.Handshake({{4, 1 << 20}});
  up.Feed(h2::WindowUpdate(0, 1 << 30));
  Stream& in = down.Request(1);
  Stream& out = up.Open();
  down.Heard(1).on_data = [&](const base::Slice& bytes) { out.SendData(bytes, false); };
  up.Heard(1).on_sent = [&](size_t bytes) { in.Consume(bytes); };
  size_t total = 0;
  for (int i = 0; i < 60; ++i, total += 16384) {
    ASSERT_TRUE(down.Feed(h2::Data(1, std::string(16384, 'x'))));
    up.Frames();
  }
  EXPECT_EQ(up.Heard(1).sent, total);
  EXPECT_GT(down.Frames().size(), 2u);
}

// Random actions from inside every event of two connected sessions: nothing crashes, no rule is broken.
TEST(Reentrancy, RandomActionsInsideEventsSurvive) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    base::Random random(seed);
    SessionHarness client(Role::kClient), server(Role::kServer);
    client.session->Start();
    server.session->Start();
    auto act = [&](SessionHarness& side) {
      if (side.streams.empty()) return;
      auto it = side.streams.begin();
      std::advance(it, random.Below(side.streams.size()));
      Stream& stream = *it->second;
      switch (random.Below(8)) {
        case 0:
          side.Release(it->first);
          break;
        case 1:
          stream.Reset(ErrorCode::kCancel);
          break;
        case 2:
          stream.SendData(base::Slice(), true);
          break;
        default:
          stream.SendData(base::Slice::Copy(std::string(random.Below(30000), 'd')), false);
          break;
      }
    };
    auto hook = [&](SessionHarness& side, uint32_t id) {
      h2::Recorder& recorder = side.Heard(id);
      recorder.on_data = [&](const base::Slice&) { act(side); };
      recorder.on_headers = recorder.on_reset = [&] { act(side); };
      recorder.on_sent = [&](size_t) {
        if (random.Below(2)) act(side);
      };
    };
    server.on_request = [&](Stream& stream) -> StreamEvents* {
      uint32_t id = stream.id();
      hook(server, id);
      stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
      act(server);
      return server.streams.count(id) ? &server.Heard(id) : nullptr;
    };
    for (int round = 0; round < 200; ++round) {
      if (client.session->CanOpen() && random.Below(3) == 0) hook(client, client.Open(random.Below(4) == 0).id());
      act(random.Below(2) ? client : server);
      for (auto& [id, stream] : client.streams) stream->Consume(random.Below(50000));
      for (auto& [id, stream] : server.streams) stream->Consume(random.Below(50000));
      ASSERT_TRUE(server.Feed(client.Written())) << server.error;
      ASSERT_TRUE(client.Feed(server.Written())) << client.error;
    }
  }
}

TEST(Memory, EverythingIsGivenBack) {
  size_t blocks = base::Block::LiveBytes();
  {
    SessionHarness server(Role::kServer);
    server.Handshake({{4, 1000}});
    for (uint32_t id = 1; id < 200; id += 2) {
      server.Feed(h2::Headers(id, kRequest) + h2::Data(id, std::string(5000, 'x'), id % 4 == 1 ? 0 : h2::kEndStream));
      Stream& stream = *server.streams.at(id);
      stream.SendHeaders(h2::List(server.interns, h2::GrpcResponse()), false);
      stream.SendData(base::Slice::Copy(std::string(2000, 'y')), false);
      stream.SendHeaders(h2::List(server.interns, h2::GrpcTrailers()), true);
      if (id % 3 == 0) server.Release(id);
    }
    server.Feed(h2::Headers(201, kRequest.substr(0, 20), 0));
  }
  EXPECT_EQ(base::Block::LiveBytes(), blocks);  // ~InternTable has checked itself
}

TEST(Memory, ReleasedStreamsOfOneReadAreFreedAsItIsRead) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  std::vector<Stream*> seen;
  server.on_request = [&](Stream& stream) -> StreamEvents* {
    seen.push_back(&stream);
    server.Release(stream.id());
    return nullptr;
  };
  server.Feed(h2::Headers(1, kRequest) + h2::Headers(3, kRequest) + h2::Headers(5, kRequest));
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[1], seen[2]);
}

class UnaryServer final : public SessionEvents, public StreamEvents {
 public:
  UnaryServer() : response_(&interns_), trailers_(&interns_), session_(Role::kServer, {}, interns_, *this) {
    response_.AddInterned(InternTable::Static(8));
    response_.AddInterned(interns_.Intern("content-type", "application/grpc"));
    trailers_.AddInterned(interns_.Intern("grpc-status", "0"));
    session_.Start();
  }
  bool Feed(base::Slice bytes) {
    bool ok = session_.Feed(std::move(bytes)).ok();
    session_.FrameOutput();
    session_.output().Consume(session_.output().size());
    return ok;
  }
  StreamEvents* OnRequest(Stream& stream, HeaderList&&, bool) override {
    stream_ = &stream;
    return this;
  }
  void OnHeaders(HeaderList&&, bool) override {}
  void OnData(const base::Slice& bytes, bool end_stream) override {
    stream_->Consume(bytes.size());
    if (!end_stream) return;
    stream_->SendHeaders(response_, false);
    stream_->SendData(bytes, false);
    stream_->SendHeaders(trailers_, true);
    stream_->Release();
    ++answered;
  }
  void OnReset(ErrorCode, ResetCause) override {}
  void OnSent(size_t) override {}
  void OnCapacity() override {}
  void OnGoaway(ErrorCode, uint32_t, std::string_view) override {}
  void OnPingAck(uint64_t) override {}
  void OnOutput() override {}

  int answered = 0;

 private:
  InternTable interns_;
  HeaderList response_, trailers_;
  Stream* stream_ = nullptr;
  Session session_;
};

#ifndef SLUICE_SANITIZED  // sanitizers bring their own operator new
TEST(Memory, SteadyUnaryCallsThroughAServerAllocateNothing) {
  UnaryServer server;
  ASSERT_TRUE(
      server.Feed(base::Slice::Copy(h2::Preface() + h2::Settings({{4, 1 << 20}}) + h2::WindowUpdate(0, 1 << 30))));
  std::vector<base::Slice> calls;
  for (uint32_t id = 1; id < 4000; id += 2) {
    calls.push_back(base::Slice::Copy(h2::Headers(id, kRequest) + h2::Data(id, std::string(100, 'm'), h2::kEndStream)));
  }
  for (size_t i = 0; i < 1000; ++i) ASSERT_TRUE(server.Feed(calls[i]));
  uint64_t before = AllocationsForTest();
  for (size_t i = 1000; i < 2000; ++i) ASSERT_TRUE(server.Feed(calls[i]));
  EXPECT_EQ(AllocationsForTest() - before, 0u);
  EXPECT_EQ(server.answered, 2000);
}
#endif

}  // namespace
}  // namespace sluice::http2
