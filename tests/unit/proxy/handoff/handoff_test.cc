// Calls that run on another worker than their client's connection, each step by hand: `home` has the connections,
// `worker` (away) the calls and the upstreams.
#include "proxy/handoff/handoff.h"

#include "http2/session/stream.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

class HandoffTest : public test::ProxyFixture {
 public:
  HandoffTest() : ProxyFixture(2) {}

  // The runtime may have ended before the contexts do.
  void End() {
    time.runtime.Shutdown();
    EXPECT_EQ(time.runtime.LiveTasks(), 0u);
    EXPECT_EQ(InFlight(), 0);
    home.reset();
    worker.reset();
  }
  // One worker's turns only; nothing passes between the workers' peers.
  void RunHome() { time.runtime.worker(1).RunUntilIdleForTest(); }
  void RunAway() { time.runtime.worker(0).RunUntilIdleForTest(); }
  uint64_t Moved() { return home->handoff->stats().moved; }
  uint64_t Taken() { return worker->handoff->stats().taken; }
  int64_t InFlight() { return metrics.calls_in_flight->Value(); }
  struct Reader final : BatchReader {
    void OnBatch(WorkerChannel&, Batch& batch) override {
      ++batches;
      batch.DropItems();
    }
    int batches = 0;
  };
  Reader reader_;
  FramePeer& ClientWithUpstream() {
    FramePeer& client = Client();
    client.Send(Headers(1, Block(GrpcRequest()), kLast));
    Run();
    Respond(Up(), 1, "warm");
    Run();
    EXPECT_EQ(client.streams[1].data, "warm");
    return client;
  }
};

TEST_F(HandoffTest, ACallMovesWithItsFramesSoFarAndItsResponseComesBack) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  const Fields request = With(GrpcRequest(), {{"x-a", "1"}, {"key-bin", "AAEC"}});
  client.Send(Headers(3, Block(request)) + Data(3, "part") + Data(3, "rest", h2::kEndStream));
  RunHome();
  EXPECT_EQ(Moved(), 2u);
  EXPECT_EQ(InFlight(), 0);  // under way
  EXPECT_TRUE(home->HasCalls());
  EXPECT_TRUE(home->context.calls.empty());
  RunAway();
  EXPECT_EQ(Taken(), 2u);
  EXPECT_FALSE(worker->context.calls.empty());
  Run();
  EXPECT_EQ(Up().streams[3].headers[0], request);
  EXPECT_EQ(Up().streams[3].data, "partrest");
  EXPECT_TRUE(Up().streams[3].end);
  Respond(Up(), 3, "answer");
  Run();
  EXPECT_EQ(client.streams[3].headers, (std::vector<Fields>{h2::GrpcResponse(), h2::GrpcTrailers()}));
  EXPECT_EQ(client.streams[3].data, "answer");
  EXPECT_TRUE(client.streams[3].end);
  EXPECT_FALSE(home->HasCalls());
}

TEST_F(HandoffTest, LaterFramesFollowTheCallInOrder) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest())));
  RunHome();
  client.Send(Data(3, "a"));
  RunHome();
  client.Send(Data(3, "b"));
  RunHome();
  client.Send(Headers(3, Block({{"late", "1"}}), kLast));
  RunHome();
  RunAway();
  Run();
  EXPECT_EQ(Up().streams[3].data, "ab");
  EXPECT_EQ(Up().streams[3].headers.back(), (Fields{{"late", "1"}}));
  EXPECT_TRUE(Up().streams[3].end);
}

TEST_F(HandoffTest, AResetBeforeTheMoveKeepsTheCallAtHome) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest())) + Data(3, "x") + h2::RstStream(3, 8));
  RunHome();
  EXPECT_EQ(Moved(), 1u);
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kCancelled)]->Value(), 1u);  // as if nothing moved
  EXPECT_FALSE(home->HasCalls());
}

TEST_F(HandoffTest, AResetOnItsHeelsEndsTheCallBeforeItRuns) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest())));
  RunHome();
  client.Send(h2::RstStream(3, 8));
  RunHome();
  RunAway();
  EXPECT_TRUE(worker->context.calls.empty());
  EXPECT_TRUE(home->HasCalls());  // until the last word is back
  Run();
  EXPECT_FALSE(home->HasCalls());
  EXPECT_TRUE(Up().streams[3].headers.empty());
}

TEST_F(HandoffTest, AResetAndAnAnswerMayCrossOnTheirWay) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), 3, "answer");
  client.Send(h2::RstStream(3, 8));
  RunHome();  // the stream is gone, and the word of it on its way
  RunAway();
  Run();
  EXPECT_EQ(InFlight(), 0);
  EXPECT_FALSE(home->HasCalls());

  client.Send(Headers(5, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), 5, "answer");
  RunAway();  // the answer is on its way
  client.Send(h2::RstStream(5, 8));
  // The inbox comes after the socket in a turn: the stream is gone when the answer is read.
  RunHome();
  Run();
  EXPECT_EQ(InFlight(), 0);
  EXPECT_FALSE(home->HasCalls());
  // The objects are used again, and whole.
  client.Send(Headers(7, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), 7, "fresh");
  Run();
  EXPECT_EQ(client.streams[7].data, "fresh");
}

// The client's connection is lost in each state of a call.
TEST_F(HandoffTest, ALostConnectionEndsItsCallsWhereverTheyAre) {
  Start({"10.0.0.1:1"});
  for (int state = 0; state < 6; ++state) {
    FramePeer& client = Client();
    client.Send(Headers(1, Block(GrpcRequest())) + Data(1, "x"));
    if (state >= 1) RunHome();  // in the lane
    if (state >= 2) RunAway();  // begun
    if (state >= 3) Run();      // at the upstream
    const uint32_t id = state >= 3 ? Up().streams.rbegin()->first : 0;
    if (state >= 4) {
      Up().Send(Headers(id, Block(h2::GrpcResponse())) + Data(id, "part"));
      Run();
    }
    if (state == 5) {
      Up().Send(Data(id, "more") + Headers(id, Block(h2::GrpcTrailers()), kLast));
      RunAway();  // the answer is in the lane
    }
    client.wire().Break(ECONNRESET);
    Run();
    EXPECT_EQ(InFlight(), 0) << state;
    EXPECT_FALSE(home->HasCalls()) << state;
    EXPECT_EQ(metrics.downstream_connections->Value(), 0) << state;
    if (state == 3 || state == 4) {
      EXPECT_EQ(Up().streams[id].reset, 8u) << state;
    }
  }
}

TEST_F(HandoffTest, TimeInTheLaneCountsInTheDeadline) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "50m"}})), kLast));
  RunHome();
  time.clock.Advance(milliseconds(51));
  RunAway();
  Run();
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_TRUE(Up().streams[3].headers.empty());
}

TEST_F(HandoffTest, ALargeRequestIsHeldBackByASlowUpstream) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").settings = {{4, 0}};  // SETTINGS_INITIAL_WINDOW_SIZE 0
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Up().credit = false;
  const uint64_t window = listener.http2.stream_window_bytes;
  uint64_t sent = 0;
  for (; sent + 16384 <= window; sent += 16384) {
    client.Send(Data(1, std::string(16384, 'd')));
    Run();
  }
  EXPECT_EQ(client.Credited(1), 0u);
  Up().credit = true;
  Up().Send(h2::WindowUpdate(1, 1 << 20) + h2::WindowUpdate(0, 1 << 20));
  Run();
  EXPECT_EQ(Up().streams[1].data, std::string(sent, 'd'));
  EXPECT_GE(client.Credited(1), window / 2);
  for (int i = 0; i < 100; ++i) {
    client.Send(Data(1, std::string(16384, 'e'), i == 99 ? h2::kEndStream : 0));
    Run();
  }
  EXPECT_EQ(Up().streams[1].data.size(), sent + 100 * 16384);
  EXPECT_TRUE(Up().streams[1].end);
}

TEST_F(HandoffTest, ASlowClientHoldsBackTheUpstreamAndNothingPilesUpInTheLane) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client({{4, 0}});
  client.credit = false;
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  Up().Send(Headers(1, Block(h2::GrpcResponse())));
  const uint64_t window = cluster.http2.stream_window_bytes;
  const uint64_t given = Up().Credited(1);
  uint64_t sent = 0;
  for (; sent + 16384 <= window; sent += 16384) {
    Up().Send(Data(1, std::string(16384, 'd')));
    RunAway();
  }
  Run();
  EXPECT_EQ(Up().Credited(1), given);
  EXPECT_EQ(client.streams[1].data.size(), 0u);
  client.credit = true;
  client.Send(h2::WindowUpdate(1, 1 << 20) + h2::WindowUpdate(0, 1 << 20));
  Run();
  EXPECT_EQ(client.streams[1].data, std::string(sent, 'd'));
  EXPECT_GE(Up().Credited(1) - given, window / 2);
  for (int i = 0; i < 100; ++i) {
    Up().Send(Data(1, std::string(16384, 'e')));
    Run();
  }
  Up().Send(Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(client.streams[1].data.size(), sent + 100 * 16384);
  EXPECT_TRUE(client.streams[1].end);
}

TEST_F(HandoffTest, HeadersLargerThanABatchArriveWhole) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  Fields request = GrpcRequest();
  for (int i = 0; i < 40; ++i) request.push_back({"x-" + std::to_string(i), std::string(1000, 'v')});
  std::string block = Block(request), wire;
  wire = Headers(3, block.substr(0, 16000), h2::kEndStream);
  for (size_t at = 16000; at < block.size(); at += 16000) {
    const bool last = at + 16000 >= block.size();
    wire += h2::Continuation(3, block.substr(at, 16000), last ? h2::kEndHeaders : 0);
  }
  client.Send(wire);
  Run();
  ASSERT_EQ(Up().streams[3].headers.size(), 1u);
  EXPECT_EQ(Up().streams[3].headers[0], request);
  Respond(Up(), 3, "ok");
  Run();
  EXPECT_EQ(client.streams[3].data, "ok");
}

// CVE-2023-44487: the lane and the other worker's tasks are bounded though their worker does not get to run.
TEST_F(HandoffTest, AClientThatResetsAsFastAsItAsksIsBounded) {
  listener.http2.concurrent_streams_max = 10;
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  for (uint32_t id = 3; id < 1003; id += 2) {
    client.Send(Headers(id, Block(GrpcRequest()), kLast));
    RunHome();
    client.Send(h2::RstStream(id, 8));
    RunHome();
  }
  EXPECT_LE(Moved(), 22u);
  Run();
  EXPECT_GT(client.Count(h2::kRstStream), 400u);  // refused
  EXPECT_FALSE(home->HasCalls());
  EXPECT_EQ(InFlight(), 0);
  client.Send(Headers(1003, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), Up().streams.rbegin()->first, "again");
  Run();
  EXPECT_EQ(client.streams[1003].data, "again");
}

// Home hears that calls have ended while what their client said meanwhile is on its way to them: their memory stays
// until that has been read. More calls than are kept for later, so that some are freed.
TEST_F(HandoffTest, MailToCallsThatHaveEndedFindsTheirMemory) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  constexpr uint32_t kCalls = RemoteCalls::kFreeMax + 20;
  uint32_t first = 3;
  for (int round = 0; round < 3; ++round) {
    std::string asks, late;
    for (uint32_t i = 0; i < kCalls; ++i) {
      const uint32_t id = first + 2 * i;
      asks += Headers(id, Block(With(GrpcRequest(), {{"grpc-timeout", "50m"}})));
      late += i % 2 == 0 ? Data(id, "late") : h2::RstStream(id, 8);
    }
    client.Send(asks);
    Run();
    time.clock.Advance(milliseconds(51));
    RunAway();  // all meet their deadline; the word of it is on its way home
    client.Send(late);
    RunHome();  // reads the socket, writes to away, then hears of the ends
    EXPECT_FALSE(home->HasCalls());
    RunAway();
    Run();
    EXPECT_EQ(InFlight(), 0);
    first += 2 * kCalls;
  }
  EXPECT_EQ(client.streams[first - 2 * kCalls].Value("grpc-status"), "4");
  // The objects are used again, and whole.
  client.Send(Headers(first, Block(GrpcRequest()), kLast));
  Run();
  Respond(Up(), Up().streams.rbegin()->first, "fresh");
  Run();
  EXPECT_EQ(client.streams[first].data, "fresh");
}

// Batches come back in the order they were sent; what the last item named is free only then.
TEST_F(HandoffTest, ABatchCountsAsReadWhenItHasComeBack) {
  Start({"10.0.0.1:1"});
  RemoteCalls calls(home->worker(), worker->worker(), reader_);
  WorkerChannel& channel = calls.channel();
  EXPECT_TRUE(channel.HasRead(channel.LastWritten()));
  RemoteCall& call = calls.New();
  call.home_use.Next();
  home->worker().Post([&] { channel.Number(ItemKind::kSent, call.home().name(), 1); });
  RunHome();
  const uint64_t first = channel.LastWritten();
  EXPECT_EQ(first, 1u);
  EXPECT_FALSE(channel.HasRead(first));
  home->worker().Post([&] { channel.Number(ItemKind::kSent, call.home().name(), 2); });
  RunHome();
  EXPECT_EQ(channel.LastWritten(), 2u);
  RunAway();
  EXPECT_EQ(reader_.batches, 2);
  EXPECT_TRUE(channel.HasRead(2));
}

TEST_F(HandoffTest, MailAboutAnotherUseOfACallEndsTheProcess) {
  if (!runtime::kMailIsChecked) GTEST_SKIP() << "mail is not checked in this build";
  RemoteCall call;
  call.home_use.Next();
  Item item;
  item.call = call.home().name();
  item.call.Begin(&RemoteCall::away_use);
  EXPECT_EQ(&AtAway(item), &call.away());
  call.home_use.Next();
  Item later;
  later.call = call.home().name();
  EXPECT_DEATH(AtAway(later), "mail names an object that has been freed");
  later.call.Begin(&RemoteCall::away_use);
  EXPECT_DEATH(AtAway(item), "mail names an object that has been freed");
}

TEST_F(HandoffTest, ADrainWaitsForCallsThatLiveElsewhere) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest()), kLast));
  Run();
  int drained = 0;
  home->on_drained = [&drained] { ++drained; };
  home->DrainDownstream();
  Run();
  EXPECT_EQ(drained, 0);
  EXPECT_FALSE(client.end);
  Respond(Up(), 3, "ok");
  Run();
  EXPECT_EQ(client.streams[3].data, "ok");
  EXPECT_TRUE(client.end);
  client.wire().Close();
  Run();
  EXPECT_EQ(drained, 1);
}

TEST_F(HandoffTest, AStopAnswersCallsInEveryState) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest()), kLast));
  Run();  // at the upstream
  client.Send(Headers(5, Block(GrpcRequest()), kLast));
  RunHome();  // in the lane
  for (int round = 0; round < 3; ++round) {
    home->EndCalls();
    worker->EndCalls();
    Run();
  }
  EXPECT_FALSE(home->HasCalls() || worker->HasCalls());
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "14");
  // From here on calls stay.
  client.Send(Headers(7, Block(GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(Moved(), 3u);
}

TEST_F(HandoffTest, AWorkerThatHasClosedRefusesCallsThatStillArrive) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest()), kLast));
  RunHome();
  worker->CloseAll();
  Run();
  EXPECT_EQ(client.streams[3].reset, 7u);
  EXPECT_FALSE(home->HasCalls());
}

// The runtime ends with items in both lanes and calls begun: the fixture looks at what is left, sanitizers at the
// memory.
TEST_F(HandoffTest, ARuntimeThatEndsDropsCallsUnderWay) {
  Start({"10.0.0.1:1"});
  FramePeer& client = ClientWithUpstream();
  client.Send(Headers(3, Block(GrpcRequest())) + Data(3, std::string(5000, 'x')));
  Run();
  Up().Send(Headers(3, Block(h2::GrpcResponse())) + Data(3, std::string(5000, 'x')));
  RunAway();
  client.Send(Data(3, std::string(5000, 'x')) + Headers(5, Block(GrpcRequest())) + Data(5, std::string(5000, 'x')));
  RunHome();
  home->CloseAll();
  worker->CloseAll();
  End();
}

TEST_F(HandoffTest, ARequestBufferedWhenAllEndsIsReleased) {
  Start({"10.0.0.1:1"});
  AwayClients clients;
  {
    // Read by a message between two tasks, so that the hook is for the next turn, which does not come.
    runtime::Worker::ScopedCurrentForTest current(home->worker());
    home->handoff->Buffer(*http2::StreamPool::New(), std::make_shared<const proxy::Client>(), clients, 10,
                          Canonicalize(http2::HeaderList(), PathRule::kGrpc), true);
  }
  EXPECT_TRUE(home->HasCalls());
  End();  // the stream is given back, or a sanitizer says so
}

// Two workers' calls of one key: one fetch, on one worker, for all.
TEST_F(HandoffTest, ACallThatMovedSharesAFetchWithOneThatStayed) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(1000)}};
  Start({"10.0.0.1:1"});
  const std::string message = std::string("\0\0\0\0\1k", 6);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, message, h2::kEndStream));
  Run();
  home->handoff->SetModeForTest(Handoff::Mode::kNever);
  client.Send(Headers(3, Block(GrpcRequest())) + Data(3, message, h2::kEndStream));
  Run();
  EXPECT_FALSE(home->context.calls.empty());
  EXPECT_TRUE(Up().streams[3].headers.empty());
  Respond(Up(), 1, std::string("\0\0\0\0\1v", 6));
  Run();
  EXPECT_EQ(client.streams[1].data, std::string("\0\0\0\0\1v", 6));
  EXPECT_EQ(client.streams[3].data, client.streams[1].data);
  home->handoff->SetModeForTest(Handoff::Mode::kAlways);
  client.Send(Headers(5, Block(GrpcRequest())) + Data(5, message, h2::kEndStream));
  Run();
  EXPECT_EQ(client.streams[5].data, client.streams[1].data);
  EXPECT_TRUE(Up().streams[3].headers.empty() && Up().streams[5].headers.empty());
}

// Home's own calls beside those that moved, each with its own upstream connection.
TEST_F(HandoffTest, CallsOfOneConnectionRunOnBothWorkers) {
  Start({"10.0.0.1:1"});
  test::FakeNet home_net(home->worker());
  home->context.connection.dial = home_net.Dial();
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 41; id += 2) {
    home->handoff->SetModeForTest(id % 4 == 1 ? Handoff::Mode::kAlways : Handoff::Mode::kNever);
    client.Send(Headers(id, Block(GrpcRequest()), kLast));
    do Run();
    while (home_net.Pump());
  }
  EXPECT_EQ(Moved(), 10u);
  for (FramePeer* up : {&Up(), &home_net.host("10.0.0.1:1").last()}) {
    EXPECT_EQ(up->streams.size(), 10u + up->streams.count(0));
    for (uint32_t id = 1; id < 21; id += 2) Respond(*up, id, "x");
  }
  do Run();
  while (home_net.Pump());
  for (uint32_t id = 1; id < 41; id += 2) EXPECT_TRUE(client.streams[id].end) << id;
  home->EndCalls();
  Run();
  home->CloseAll();
  Run();
}

}  // namespace
}  // namespace sluice::proxy
