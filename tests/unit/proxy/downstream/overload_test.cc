// Too much memory buffered: slow clients are closed, reading stops, calls are refused; and all of it ends again.
#include "proxy/downstream/overload.h"

#include "base/memory_budget.h"
#include "runtime/frame_pool.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using base::MemoryBudget;
using base::MemoryLevel;
using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

constexpr int64_t kMiB = 1024 * 1024;

class OverloadTest : public test::ProxyFixture {
 public:
  using ProxyFixture::ProxyFixture;
  // Counts memory that is not there, up to `share` of a limit that is far above what the test really uses.
  void Pretend(double share) { Hold(static_cast<int64_t>(share * 1024 * kMiB), 1024 * kMiB); }
  void Hold(int64_t bytes, int64_t limit) {
    MemoryBudget::SetLimit(limit);
    pretended_ += bytes - MemoryBudget::held();
    MemoryBudget::Add(bytes - MemoryBudget::held());
  }
  void TearDown() override {
    MemoryBudget::Add(-std::exchange(pretended_, 0));
    MemoryBudget::SetLimit(0);
    ProxyFixture::TearDown();
  }
  uint32_t Call(FramePeer& client) {
    next_ += 2;
    client.Send(Headers(next_, Block(GrpcRequest()), kLast));
    Run();
    return next_;
  }
  void Tick() { Advance(OverloadManager::kTick); }
  void Pass(milliseconds by) {
    for (; by.count() > 0; by -= OverloadManager::kTick) Tick();
  }
  // A client with a window of 0, and `bytes` of a response buffered for it.
  FramePeer& Waiting(size_t bytes) { return Waiting(bytes, Client({{4, 0}})); }  // INITIAL_WINDOW_SIZE
  FramePeer& Waiting(size_t bytes, FramePeer& client) {
    client.credit = false;
    client.Send(Headers(1, Block(GrpcRequest()), kLast));
    Run();
    const uint32_t id = Up().streams.rbegin()->first;
    std::string all = Headers(id, Block(h2::GrpcResponse()));
    for (size_t sent = 0; sent < bytes; sent += 10'000)
      all += Data(id, std::string(std::min<size_t>(bytes - sent, 10'000), 'z'));
    Up().Send(all);
    Run();
    return client;
  }
  // A client with calls on which nothing is sent.
  FramePeer& Idle(int calls, FramePeer& client) {
    for (int i = 0; i < calls; ++i) client.Send(Headers(2 * i + 1, Block(GrpcRequest()), kLast));
    Run();
    return client;
  }
  uint64_t Refused() { return metrics.errors[static_cast<size_t>(base::ErrorKind::kMemoryLimited)]->Value(); }
  uint64_t Ended() { return metrics.memory_connections_closed->Value(); }

 private:
  int64_t pretended_ = 0;
  uint32_t next_ = 99;
};

TEST_F(OverloadTest, NewCallsAreRefusedAboveTheLimitAndAcceptedAgainLater) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));  // under way before
  Run();
  Pretend(0.99);
  uint32_t id = Call(client);
  Tick();
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "<none>");  // its bytes wait to be read; it is not refused
  Pretend(1.01);
  id = Call(client);
  Tick();
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "8");
  EXPECT_EQ(client.streams[id].Value("sluice-reason"), "memory_limited");
  EXPECT_EQ(client.streams[id].Value("grpc-retry-pushback-ms"), "1000");
  Pretend(0.9);  // not low enough
  id = Call(client);
  Tick();
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "8");
  client.Send(Data(1, "the rest", h2::kEndStream));  // what is under way goes on
  Tick();
  Respond(Up(), 1, "answer");
  Tick();
  EXPECT_EQ(client.streams[1].data, "answer");
  Pretend(0.87);
  id = Call(client);
  Tick();
  EXPECT_FALSE(client.streams[id].end);
  EXPECT_EQ(Up().streams.rbegin()->second.headers.size(), 1u);
  EXPECT_EQ(Refused(), 2u);
  EXPECT_EQ(Ended(), 0u);
}

TEST_F(OverloadTest, MessagesKeptForARetryAreReleased) {
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, std::string(1000, 'k')));
  Run();
  Pretend(0.9);
  Call(client);  // wakes the worker
  Pass(OverloadManager::kPatience + OverloadManager::kTick);
  for (const char* address : {"10.0.0.1:1", "10.0.0.2:1"}) {
    if (Connected(address)) Up(address).Send(h2::RstStream(1, 7));  // REFUSED_STREAM: safe to try again, if it could
  }
  Tick();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
}

// While it is collected, it is buffered for no client that could be closed, and the backend decides how long.
TEST_F(OverloadTest, AResponseCollectedForTheCacheGoesOnToItsClient) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())) + Data(1, h2::Message("q"), h2::kEndStream));
  Run();
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, std::string(10'000, 'c')));
  Run();
  EXPECT_EQ(client.streams[1].data.size(), 0u);
  Pretend(0.9);
  Call(client);  // wakes the worker
  Pass(OverloadManager::kPatience + OverloadManager::kTick);
  EXPECT_EQ(client.streams[1].data.size(), 10'000u);
  EXPECT_EQ(response_cache->stats().not_cached[static_cast<size_t>(NotCached::kFull)], 1u);
  Up().Send(Headers(1, Block(h2::GrpcTrailers()), kLast));
  Tick();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(OverloadTest, BelowTheLimitReadingStopsButForSmallBites) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Pretend(0.88);
  client.Send(Data(1, std::string(10'000, 'a')));
  Run();
  EXPECT_EQ(Up().streams[1].data.size(), 0u);
  EXPECT_GT(metrics.memory_read_pauses->Value(), 0u);
  Tick();
  EXPECT_GT(Up().streams[1].data.size(), 0u);
  EXPECT_LE(Up().streams[1].data.size(), http2::PausedReads::kBiteBytes);
  Pretend(0.76);  // not low enough
  Tick();
  EXPECT_LT(Up().streams[1].data.size(), 10'000u);
  Pretend(0.74);
  Tick();
  EXPECT_EQ(Up().streams[1].data.size(), 10'000u);
}

TEST_F(OverloadTest, TimeoutsDoNotEndAClientThatIsNotRead) {
  listener.keepalive = {milliseconds(100), milliseconds(50)};
  listener.life.body_timeout = milliseconds(100);
  listener.life.headers_timeout = milliseconds(100);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest())));
  Run();
  Pretend(0.9);
  // More than the bites below take, with a frame cut at every bite.
  for (int i = 0; i < 13; ++i) client.Send(Data(1, std::string(16'000, 'a')));
  client.Send(Headers(3, Block(GrpcRequest()), kLast).substr(0, 12));
  Pass(milliseconds(400));
  Pretend(0.1);
  client.Send(Headers(3, Block(GrpcRequest()), kLast).substr(12));
  Tick();
  EXPECT_EQ(client.Count(h2::kGoaway), 0u);
  EXPECT_FALSE(client.streams[1].reset);
}

// Four clients: one takes nothing, one a little now and then, two have little waiting.
TEST_F(OverloadTest, StuckClientsAreClosedFirstThenSlowOnesAndSmallOnesStay) {
  Start({"10.0.0.1:1"});
  FramePeer& stuck = Waiting(200'000);
  FramePeer& slow = Waiting(300'000);
  FramePeer& little = Waiting(40'000);
  FramePeer& least = Waiting(10'000);
  const auto pass = [&](milliseconds by) {
    for (; by.count() > 0; by -= milliseconds(100)) {
      slow.Send(h2::WindowUpdate(1, 2'000));
      Pass(milliseconds(100));
    }
  };
  Pretend(0.8);
  pass(milliseconds(400));
  EXPECT_EQ(Ended(), 0u);  // no client has been watched for long enough
  pass(milliseconds(1100));
  EXPECT_TRUE(stuck.Count(h2::kGoaway));
  EXPECT_EQ(stuck.Last(h2::kGoaway)->Word(4), 11u);  // ENHANCE_YOUR_CALM
  EXPECT_FALSE(slow.Count(h2::kGoaway));
  EXPECT_EQ(Ended(), 1u);
  Pretend(0.9);
  pass(milliseconds(1100));
  EXPECT_TRUE(slow.Count(h2::kGoaway));
  EXPECT_FALSE(little.Count(h2::kGoaway));
  EXPECT_EQ(Ended(), 2u);
  EXPECT_EQ(Refused(), 0u);
  Pretend(1.1);
  pass(milliseconds(600));
  EXPECT_TRUE(little.Count(h2::kGoaway));  // now size is all that counts
  EXPECT_FALSE(least.Count(h2::kGoaway));
}

TEST_F(OverloadTest, ANewClientIsNotSlowYet) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Pretend(0.8);
  client.Send(h2::Ping(1));
  Pass(milliseconds(480));
  FramePeer& late = Waiting(200'000);
  Pass(milliseconds(100));
  EXPECT_FALSE(late.Count(h2::kGoaway));
  Pass(milliseconds(500));
  EXPECT_TRUE(late.Count(h2::kGoaway));
}

// Bytes that wait make a client slow. Calls without any do not, until reading has to stop.
TEST_F(OverloadTest, SubscriptionsAreNotSlow) {
  Start({"10.0.0.1:1"});
  FramePeer& subscriber = Idle(60, Client());
  FramePeer& stuck = Waiting(100'000);
  Pretend(0.8);
  stuck.Send(h2::Ping(1));
  Pass(milliseconds(2000));
  EXPECT_TRUE(stuck.Count(h2::kGoaway));
  EXPECT_FALSE(subscriber.Count(h2::kGoaway));
  EXPECT_EQ(Ended(), 1u);
}

// Else idle calls could keep reading stopped for ever.
TEST_F(OverloadTest, IdleCallsCountWhereReadingHasStopped) {
  Start({"10.0.0.1:1"});
  FramePeer& idle = Idle(100, Client());
  FramePeer& few = Idle(20, Client());
  Pretend(0.9);
  few.Send(h2::Ping(1));
  Pass(OverloadManager::kPatience + 3 * OverloadManager::kTick);
  EXPECT_TRUE(idle.Count(h2::kGoaway));
  EXPECT_FALSE(few.Count(h2::kGoaway));
}

TEST_F(OverloadTest, AClientThatReadsMoreThanStillWaitsForItStays) {
  Start({"10.0.0.1:1"});
  FramePeer& quick = Waiting(300'000);
  quick.Send(h2::WindowUpdate(0, 1 << 20));
  Run();
  Pretend(1.01);
  for (int i = 0; i < 5; ++i) {
    quick.Send(h2::WindowUpdate(1, 40'000));
    Pass(milliseconds(100));
  }
  Pass(2 * OverloadManager::kTick);
  EXPECT_EQ(quick.streams[1].data.size(), 200'000u);
  EXPECT_FALSE(quick.Count(h2::kGoaway));
}

// One address with many connections, each with less buffered than the single connection of another address.
TEST_F(OverloadTest, BytesAreSummedByAddressNotByConnection) {
  Start({"10.0.0.1:1"});
  FramePeer& single = Waiting(200'000);
  std::vector<FramePeer*> many;
  for (int i = 0; i < 10; ++i) {
    many.push_back(&Waiting(60'000, ClientOf(front(), "198.51.100.9:" + std::to_string(1000 + i), {{4, 0}})));
  }
  Pretend(1.01);
  single.Send(h2::Ping(1));
  Pass(OverloadManager::kPatience + 3 * OverloadManager::kTick);
  for (FramePeer* one : many) EXPECT_TRUE(one->Count(h2::kGoaway));
  EXPECT_FALSE(single.Count(h2::kGoaway));
}

// Else they could keep reading stopped for ever.
TEST_F(OverloadTest, ManyClientsWithLittleBufferedAreClosedInTheEnd) {
  Start({"10.0.0.1:1"});
  std::vector<FramePeer*> many;
  for (int i = 0; i < 10; ++i) many.push_back(&Waiting(30'000));
  FramePeer& least = Waiting(1'000);
  Pretend(0.9);
  least.Send(h2::Ping(1));
  Pass(milliseconds(1500));
  EXPECT_EQ(Ended(), 0u);
  Pass(milliseconds(16'000));
  EXPECT_EQ(Ended(), 10u);
  EXPECT_FALSE(least.Count(h2::kGoaway));
}

// A client that does not read does not read its GOAWAY either, for which it has a second. Its bytes count as freed at
// once: no other client is closed for them meanwhile.
class OverloadGoawayTest : public OverloadTest, public ::testing::WithParamInterface<bool> {
 public:
  OverloadGoawayTest() : OverloadTest(GetParam() ? 2 : 1) {}
};
INSTANTIATE_TEST_SUITE_P(OnOneWorkerOrTwo, OverloadGoawayTest, ::testing::Bool());

TEST_P(OverloadGoawayTest, ClientsThatWereToldToGoCountAsFreed) {
  // Tests before this one leave spare pieces, whose return alone would free enough.
  base::Block::TrimSpares();
  http2::StreamPool::TrimSpares();
  http2::HeaderList::TrimSpares();
  runtime::TrimFrames();
  Start({"10.0.0.1:1"});
  FramePeer& honest = Waiting(100'000, ClientOf(*worker, "198.51.100.9:1", {{4, 0}}));
  std::vector<FramePeer*> deaf;
  for (int i = 0; i < 8; ++i) {
    FramePeer& client = Client({{4, 1 << 20}});
    client.Send(h2::WindowUpdate(0, 1 << 20));
    Run();
    client.reading = false;
    deaf.push_back(&Waiting(400'000, client));
  }
  // The level is kOver, and free without them.
  constexpr int64_t kLimit = 6 * kMiB;
  Hold(kLimit + MemoryBudget::kStepBytes, kLimit);
  honest.Send(h2::Ping(1));
  Pass(milliseconds(1400));
  // Each of them holds 337,245 bytes; the level is free again at 3/4 of the limit, which takes 1,638,400 bytes less.
  // Spare pieces that tests before this one have left, or that no list gives back, may ask for more of them.
  EXPECT_GE(Ended(), 5u);
  EXPECT_FALSE(honest.Count(h2::kGoaway));
  Pass(milliseconds(1000));
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kFree);
  EXPECT_FALSE(honest.Count(h2::kGoaway));
}

class OverloadTwoWorkersTest : public OverloadTest {
 public:
  OverloadTwoWorkersTest() : OverloadTest(2) {}
};

// The worker that reads need not be the worker of the slow clients, which may have gone to sleep just before.
TEST_F(OverloadTwoWorkersTest, AWorkerThatSleptThroughTheRiseIsWoken) {
  Start({"10.0.0.1:1"});
  FramePeer& stuck = Waiting(200'000);  // of worker 1
  Pretend(0.8);
  Up().Send(h2::Ping(1));  // worker 0 reads it
  Run();
  Pretend(0.1);
  time.clock.Advance(OverloadManager::kTick);
  time.runtime.worker(1).RunUntilIdleForTest();
  Pretend(0.8);
  Pass(milliseconds(1700));
  EXPECT_TRUE(stuck.Count(h2::kGoaway));
}

// The clients with most of the bytes are on one worker: the other worker closes none of its own for that.
TEST_F(OverloadTwoWorkersTest, AWorkerClosesNoClientMuchSmallerThanTheLargest) {
  Start({"10.0.0.1:1"});
  FramePeer& less = Idle(60, ClientOf(*worker, "198.51.100.9:1"));
  for (double share : {0.9, 1.01}) {
    Pretend(0.1);
    Tick();
    FramePeer& much = Waiting(400'000);
    Pretend(share);
    less.Send(h2::Ping(1));
    Pass(OverloadManager::kPatience + 3 * OverloadManager::kTick);
    EXPECT_TRUE(much.Count(h2::kGoaway));
    EXPECT_FALSE(less.Count(h2::kGoaway));
  }
}

// Free lists count as used, so they must not keep the level up when nothing else is.
TEST_F(OverloadTest, SpareMemoryIsReleasedAndNoClientClosed) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  std::vector<base::Block*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(base::Block::New(kMiB / 4));
  for (base::Block* block : blocks) block->Unref();
  MemoryBudget::SetLimit(MemoryBudget::held() + kMiB / 8);
  client.Send(h2::Ping(1));
  Run();
  EXPECT_NE(MemoryBudget::level(), MemoryLevel::kFree);
  Pass(OverloadManager::kPatience + 2 * OverloadManager::kTick);
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kFree);
  EXPECT_EQ(Ended(), 0u);
}

TEST_F(OverloadTest, MemoryOfCallsIsCountedAndComesBack) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const auto trimmed = [] {
    base::Block::TrimSpares();
    http2::HeaderList::TrimSpares();
    runtime::TrimFrames();
    return MemoryBudget::held();
  };
  h2::Fields request = GrpcRequest();
  request.emplace_back("x-long", std::string(3000, 'm'));
  constexpr int kCalls = 500;
  // Each thread's three pools tell what they hold in steps.
  constexpr int64_t kOff = 3 * MemoryBudget::kStepBytes;
  const int64_t before = trimmed();
  for (int round = 0; round < 2; ++round) {
    std::vector<uint32_t> ids;
    for (int i = 0; i < kCalls; ++i) {
      ids.push_back(2 * (round * kCalls + i) + 1);
      client.Send(Headers(ids.back(), Block(request), kLast));
    }
    Run();
    EXPECT_GT(MemoryBudget::held() - before, kCalls * 4000 - kOff);
    for (uint32_t id : ids) client.Send(h2::RstStream(id, 8));
    Run();
    EXPECT_LT(trimmed() - before, kOff + kMiB / 2);  // and a read block or two
  }
}

// The real thing: clients that do not read, responses that fill what they may, and an honest client beside them.
TEST_F(OverloadTest, SlowReadersAreEndedBeforeAnHonestCallIsRefused) {
  Start({"10.0.0.1:1"});
  constexpr int kSlow = 24;
  constexpr size_t kEach = 450'000;  // within the upstream's window
  std::vector<FramePeer*> slow;
  for (int i = 0; i < kSlow; ++i) {
    slow.push_back(&Client());
    slow.back()->Send(Headers(1, Block(GrpcRequest()), kLast));
  }
  FramePeer& honest = Client();
  honest.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  const int64_t limit = MemoryBudget::held() + 5 * kMiB;
  MemoryBudget::SetLimit(limit);
  for (FramePeer* client : slow) client->reading = false;
  std::vector<uint32_t> ids;
  for (auto& [id, heard] : Up().streams) {
    if (!heard.headers.empty()) ids.push_back(id);
  }
  ASSERT_EQ(ids.size(), size_t{kSlow} + 1);
  uint32_t honest_id = ids.back();
  std::string all;
  for (uint32_t id : ids) {
    if (id == honest_id) continue;
    all += Headers(id, Block(h2::GrpcResponse()));
    for (size_t sent = 0; sent < kEach; sent += 15'000) all += Data(id, std::string(15'000, 'z'));
  }
  Up().Send(all);
  int64_t most = 0;
  bool full = false;
  for (int i = 0; i < 1000; ++i) {
    Advance(milliseconds(10));
    if (i % 10 == 0) Call(honest);
    most = std::max(most, MemoryBudget::held());
    full |= MemoryBudget::level() == MemoryLevel::kFull;
  }
  EXPECT_TRUE(full);
  // Reading stops an eighth before it, 640 KiB; until the slow ones go, at the second look from there, come a read that
  // had begun (256 KiB) and 50 bites of the one endpoint (200 KiB).
  EXPECT_LT(most, limit);
  EXPECT_EQ(Refused(), 0u);
  EXPECT_GT(Ended(), 0u);
  EXPECT_LT(Ended(), uint64_t{kSlow});
  EXPECT_EQ(MemoryBudget::level(), MemoryLevel::kFree);
  EXPECT_FALSE(honest.end);
  Respond(Up(), honest_id, "still served");
  Run();
  EXPECT_EQ(honest.streams[1].data, "still served");
}

// The same the other way round: requests that an endpoint does not read.
TEST_F(OverloadTest, UnreadRequestsAreBoundedToo) {
  listener.http2.stream_window_bytes = 1024 * 1024;
  routes[0].retry.buffer_bytes_max = 0;
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").settings = {{4, 0}};  // no window for any stream
  std::vector<FramePeer*> clients;
  for (int i = 0; i < 24; ++i) {
    clients.push_back(&Client());
    clients.back()->Send(Headers(1, Block(GrpcRequest())));
  }
  Run();
  const int64_t limit = MemoryBudget::held() + 16 * kMiB;
  MemoryBudget::SetLimit(limit);
  int64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    if (i < 60) {
      for (FramePeer* client : clients) client->Send(Data(1, std::string(15'000, 'z')));
    }
    Advance(milliseconds(10));
    most = std::max(most, MemoryBudget::held());
  }
  // Reading stops 2 MiB before it. Clients that filled their windows until then are slow at the second look from there:
  // a read that had begun (256 KiB) and 50 times kBitesPerTick of 4 KiB (1.6 MiB).
  EXPECT_LT(most, limit);
  EXPECT_GT(Ended(), 0u);
  EXPECT_LT(MemoryBudget::level(), MemoryLevel::kFull);
}

}  // namespace
}  // namespace sluice::proxy
