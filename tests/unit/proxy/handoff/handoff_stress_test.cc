// Real threads: clients on every worker, each of whose connections ends on another, backends that echo, reset or hang
// up, and every call moved once more. For TSan, and for what only a race finds.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <latch>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "net/socket_stream.h"
#include "proxy/access_log/access_log.h"
#include "proxy/downstream/listener.h"
#include "proxy/downstream/worker_front.h"
#include "proxy/handoff/handoff.h"
#include "runtime/runtime.h"

namespace sluice::proxy {
namespace {

using http2::Connection;
using http2::HeaderList;

constexpr uint32_t kWorkers = 3;
constexpr int kClientsPerWorker = 2;
constexpr int kAtOnce = 20;
#ifdef SLUICE_SANITIZED
constexpr int kCallsPerClient = 600;
#else
constexpr int kCallsPerClient = 3000;
#endif

std::pair<int, int> Pipe() {
  int fds[2];
  SLUICE_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
  return {fds[0], fds[1]};
}

// A backend's connection: echoes each request's bytes as they come; now and then resets a stream or ends the
// connection.
class Backend final : private http2::ConnectionEvents {
 public:
  // `alive`: how many there are. They end themselves, after the proxy has closed.
  Backend(http2::ConnectionContext& context, int fd, std::atomic<int>& alive)
      : context_(context),
        alive_(alive),
        connection_(context, net::MakeSocketStream(context.worker, fd, "proxy"), http2::Role::kServer, {}, *this) {
    ++alive_;
    connection_.Start();
  }
  ~Backend() { --alive_; }

 private:
  struct Echo final : http2::StreamEvents {
    void OnHeaders(HeaderList&&, bool) override { End(); }
    void OnData(const base::Slice& bytes, bool end) override {
      io->SendData(bytes, false);
      if (end) End();
    }
    void OnSent(size_t bytes) override {
      if (io != nullptr) io->Consume(bytes);
    }
    void OnReset(http2::ErrorCode, http2::ResetCause) override { Gone(); }
    void End() {
      HeaderList trailers;
      trailers.Add("grpc-status", "0");
      io->SendHeaders(trailers, true);
      Gone();
    }
    void Gone() {
      std::exchange(io, nullptr)->Release();
      delete this;
    }
    http2::StreamIo* io;
  };

  http2::StreamEvents* OnRequest(Connection&, http2::Stream& stream, HeaderList&&, bool end) override {
    const uint64_t dice = context_.worker.random().Below(200);
    if (dice == 0) {  // the whole connection, from outside of its callback
      context_.worker.Post([this] { connection_.Close(http2::ErrorCode::kNoError, "enough"); });
    }
    if (dice < 4) {
      stream.Reset(dice < 2 ? http2::ErrorCode::kRefusedStream : http2::ErrorCode::kInternalError);
      stream.Release();
      return nullptr;
    }
    HeaderList headers;
    headers.Add(":status", "200", http2::Indexing::kIndexed);
    headers.Add("content-type", "application/grpc", http2::Indexing::kIndexed);
    stream.SendHeaders(headers, false);
    auto* echo = new Echo;
    echo->io = &stream;
    if (!end) return echo;
    echo->End();
    return nullptr;
  }
  void OnCapacity(Connection&) override {}
  void OnGoaway(Connection&) override {}
  void OnClosed(Connection&, std::string_view) override {
    context_.worker.Post([dead = std::shared_ptr<Backend>(this)] {});
  }

  http2::ConnectionContext& context_;
  std::atomic<int>& alive_;
  Connection connection_;
};

struct Dialled final : net::Attempt {
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
};

struct Totals {
  std::atomic<uint64_t> good{0}, refused{0}, cancelled{0}, wrong{0};
  std::latch done{kWorkers * kClientsPerWorker};
};

// A client on a worker: calls in a loop, some of them cancelled; after a while it hangs up and comes again.
class LoadClient final : private http2::ConnectionEvents {
 public:
  LoadClient(http2::ConnectionContext& context, WorkerFront& front, Totals& totals)
      : context_(context), front_(front), totals_(totals) {
    Connect();
  }

 private:
  struct OneCall final : http2::StreamEvents {
    void OnHeaders(HeaderList&& fields, bool end) override {
      if (const http2::Field* status = fields.Find(http2::Token::kGrpcStatus)) ok = status->value() == "0";
      if (end) Finish();
    }
    void OnData(const base::Slice& bytes, bool end) override {
      received += bytes.size();
      io->Consume(bytes.size());
      if (cancel_at != 0 && received >= cancel_at) {
        io->Reset(http2::ErrorCode::kCancel);
        ++client->totals_.cancelled;
        return Leave();
      }
      if (end) Finish();
    }
    void OnSent(size_t) override {}
    void OnReset(http2::ErrorCode, http2::ResetCause) override {
      ++client->totals_.refused;
      Leave();
    }
    void Finish() {
      if (!ok) {
        ++client->totals_.refused;  // the backend's doing, told by the proxy
      } else if (received == size) {
        ++client->totals_.good;
      } else {
        ++client->totals_.wrong;
      }
      Leave();
    }
    void Leave() {
      std::exchange(io, nullptr)->Release();
      LoadClient* c = client;
      delete this;
      c->Ended();
    }
    LoadClient* client;
    http2::StreamIo* io = nullptr;
    size_t size = 0, received = 0, cancel_at = 0;
    bool ok = false;
  };

  void Connect() {
    auto [mine, theirs] = Pipe();
    connection_.reset(new Connection(context_, net::MakeSocketStream(context_.worker, mine, "proxy"),
                                     http2::Role::kClient, http2::ConnectionOptions{}, *this));
    connection_->Start();
    left_on_connection_ = 50 + static_cast<int>(context_.worker.random().Below(400));
    front_.connections.fetch_add(1, std::memory_order_relaxed);
    front_.worker().Post([fd = theirs, front = &front_] {
      static auto open = std::make_shared<std::atomic<int64_t>>(0);
      open->fetch_add(1, std::memory_order_relaxed);
      auto* down =
          new DownstreamConnection(*front, net::MakeSocketStream(front->worker(), fd, "192.0.2.1:1"), {}, open);
      front->downstream.PushBack(*down);
      down->Start();
    });
    Fill();
  }
  void Fill() {
    while (!over_ && connection_ != nullptr && running_ < kAtOnce && begun_ < kCallsPerClient && connection_->CanOpen())
      Begin();
  }
  void Begin() {
    base::Random& random = context_.worker.random();
    ++begun_;
    ++running_;
    HeaderList fields(&context_.interns);
    for (auto [name, value] : {std::pair{":method", "POST"},
                               {":scheme", "http"},
                               {":path", "/s.S/M"},
                               {":authority", "a"},
                               {"te", "trailers"},
                               {"content-type", "application/grpc"}}) {
      fields.AddInterned(context_.interns.Intern(name, value));
    }
    fields.AddInterned(context_.interns.Intern("x-some", std::to_string(random.Below(400))));
    fields.Add("x-id", std::to_string(begun_));
    auto* call = new OneCall;
    call->client = this;
    static constexpr size_t kSizes[] = {0, 1, 100, 1023, 1024, 5000, 60000, 300000};
    call->size = kSizes[random.Below(random.Below(10) == 0 ? 8 : 6)];
    const uint64_t dice = random.Below(20);
    if (dice == 0 && call->size > 0) call->cancel_at = 1 + random.Below(call->size);
    call->io = connection_->Open(fields, call->size == 0, *call);
    SLUICE_CHECK(call->io != nullptr);
    for (size_t at = 0; at < call->size; at += 16000) {
      const size_t part = std::min<size_t>(16000, call->size - at);
      call->io->SendData(base::Slice::Copy(std::string(part, 'x')), at + part == call->size);
    }
    if (dice == 1) {
      call->io->Reset(http2::ErrorCode::kCancel);
      ++totals_.cancelled;
      std::exchange(call->io, nullptr)->Release();
      delete call;
      --running_;
      ++ended_;
    }
  }
  void Ended() {
    --running_;
    ++ended_;
    if (--left_on_connection_ == 0) {
      context_.worker.Post([this] { HangUp(); });
      return;
    }
    // Not from inside the stream's event.
    if (!filling_) {
      filling_ = true;
      context_.worker.Post([this] {
        filling_ = false;
        Fill();
        LookForEnd();
      });
    }
  }
  void HangUp() {
    if (connection_ == nullptr) return;
    std::unique_ptr<Connection> old = std::move(connection_);
    old->CloseNow("another");  // what runs is told
    old.reset();
    if (begun_ < kCallsPerClient) Connect();
    LookForEnd();
  }
  void LookForEnd() {
    if (over_ || running_ > 0 || begun_ < kCallsPerClient) return;
    over_ = true;
    connection_.reset();
    totals_.done.count_down();
  }
  void OnCapacity(Connection&) override {}
  http2::StreamEvents* OnRequest(Connection&, http2::Stream&, HeaderList&&, bool) override { return nullptr; }
  void OnGoaway(Connection&) override {}
  void OnClosed(Connection&, std::string_view) override {
    context_.worker.Post([this] { HangUp(); });
  }

  http2::ConnectionContext& context_;
  WorkerFront& front_;
  Totals& totals_;
  std::unique_ptr<Connection> connection_;
  int begun_ = 0, running_ = 0, ended_ = 0, left_on_connection_ = 0;
  bool filling_ = false, over_ = false;
};

std::shared_ptr<Snapshot> MakeSnapshot(metrics::Registry& registry) {
  upstream::ClusterOptions cluster;
  cluster.name = "c";
  cluster.policy = upstream::Policy::kRoundRobin;
  cluster.backoff_base = cluster.backoff_max = std::chrono::milliseconds(1);
  auto built = upstream::BuildClusterState(std::make_shared<upstream::ClusterOptions>(cluster),
                                           {{"b", *net::Address::Parse("10.0.0.1:1"), 1, false}}, nullptr,
                                           upstream::ListSource::kConfig, kWorkers, registry);
  SLUICE_CHECK(built.ok());
  RouteOptions route;
  route.cluster = "c";
  RouteMetrics metrics;
  for (size_t code = 0; code < kGrpcCodes; ++code) {
    metrics.calls[code] = registry.AddCounter("calls_total", "Calls.", {{"code", std::to_string(code)}});
  }
  metrics.duration = registry.AddHistogram("duration_seconds", "Duration.", 1e-9, {});
  const base::TimePoint now = base::Clock::Steady().Now();
  auto limits = std::make_shared<RouteLimits>(std::make_shared<limits::RateLimiter>(limits::RateOptions{}, now),
                                              std::make_shared<limits::KeyedRateLimiter>(limits::RateOptions{}, 16),
                                              "r", registry);
  std::vector<Route> table;
  table.push_back({route, 0, metrics, limits});
  auto process = std::make_shared<ProcessLimits>(
      std::make_shared<limits::ConcurrencyLimiter>(limits::ConcurrencyOptions{}), registry);
  auto snapshot = std::make_shared<Snapshot>();
  snapshot->config = std::make_shared<RouteConfig>(
      RouteConfig{RouteTable(std::move(table)), {}, *AccessLog::Open({}, 1), 0, process, nullptr});
  snapshot->clusters = {*built};
  return snapshot;
}

class HandoffStressTest : public ::testing::TestWithParam<Handoff::Mode> {};

TEST_P(HandoffStressTest, EveryCallEndsOnceAndNothingStaysBehind) {
  runtime::RuntimeOptions options;
  options.workers = kWorkers;
  options.blocking_threshold = std::chrono::milliseconds(0);
  runtime::Runtime runtime(options);
  metrics::Registry registry(kWorkers);
  ProxyMetrics metrics(registry);
  SnapshotData snapshots(kWorkers);
  snapshots.Publish(std::shared_ptr<const Snapshot>(MakeSnapshot(registry)));
  std::vector<std::unique_ptr<WorkerFront>> fronts;
  std::vector<WorkerFront*> list;
  std::atomic<int> backends{0};
  // What clients and backends have of their own on each worker.
  std::vector<std::unique_ptr<http2::ConnectionContext>> peers;
  for (uint32_t i = 0; i < kWorkers; ++i) {
    fronts.push_back(std::make_unique<WorkerFront>(runtime.worker(i), snapshots, metrics));
    list.push_back(fronts.back().get());
    peers.push_back(
        std::unique_ptr<http2::ConnectionContext>(new http2::ConnectionContext{runtime.worker(i), {}, {}, nullptr}));
    fronts[i]->context.connection.dial = [peer = peers[i].get(), &backends](
                                             runtime::Worker& worker, const net::Address&, base::TimePoint,
                                             net::Dialer::OnDone done) -> std::unique_ptr<net::Attempt> {
      auto attempt = std::make_unique<Dialled>();
      worker.Post([&worker, peer, &backends, done, alive = std::weak_ptr<bool>(attempt->alive)] {
        if (alive.expired()) return;
        auto [mine, theirs] = Pipe();
        new Backend(*peer, theirs, backends);  // ends itself
        done(net::MakeSocketStream(worker, mine, "10.0.0.1:1"));
      });
      return attempt;
    };
  }
  WorkerFront::Connect(list);
  for (WorkerFront* front : list) front->handoff->SetModeForTest(GetParam());
  Totals totals;
  std::vector<std::unique_ptr<LoadClient>> clients(kWorkers * kClientsPerWorker);
  runtime.Start();
  for (size_t i = 0; i < clients.size(); ++i) {
    runtime.worker(i % kWorkers).Post([&, i] {
      clients[i] = std::make_unique<LoadClient>(*peers[i % kWorkers], *list[(i + 1) % kWorkers], totals);
    });
  }
  totals.done.wait();
  auto everywhere = [&](auto fn) {
    std::latch done(kWorkers);
    for (WorkerFront* front : list) {
      front->worker().Post([&, front] {
        fn(*front);
        done.count_down();
      });
    }
    done.wait();
  };
  for (std::atomic<bool> left{true}; left.load();) {
    left = false;
    everywhere([&](WorkerFront& front) {
      front.EndCalls();
      if (front.HasCalls()) left = true;
    });
  }
  everywhere([](WorkerFront& front) { front.CloseAll(); });
  // The backends see their sockets close and delete themselves, for which their workers must still run.
  while (backends.load() > 0) everywhere([](WorkerFront&) {});
  runtime.Shutdown();
  clients.clear();
  const uint64_t taken =
      list[0]->handoff->stats().taken + list[1]->handoff->stats().taken + list[2]->handoff->stats().taken;
  std::printf("good %llu, refused %llu, cancelled %llu, moved %llu\n", static_cast<unsigned long long>(totals.good),
              static_cast<unsigned long long>(totals.refused), static_cast<unsigned long long>(totals.cancelled),
              static_cast<unsigned long long>(taken));
  fronts.clear();
  EXPECT_EQ(totals.wrong, 0u);
  EXPECT_GT(totals.good, totals.refused);
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(metrics.downstream_connections->Value(), 0);
  if (GetParam() == Handoff::Mode::kAlways) {
    EXPECT_GT(taken, totals.good / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, HandoffStressTest, ::testing::Values(Handoff::Mode::kAlways, Handoff::Mode::kAuto));

}  // namespace
}  // namespace sluice::proxy
