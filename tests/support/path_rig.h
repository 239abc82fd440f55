// PathRig: the whole path of a call, Session -> Call -> Session, in one thread and without sockets, for exact counts:
// instructions, heap allocations, atomic operations. One worker, time by hand, neighbours that cost next to nothing.
//
//   PathRig rig({.full_limits = true});
//   for (int i = 0; i < 100; ++i) rig.Batch();  // 100 calls each
//
// All code of the proxy runs inside ProxyTurn(), so a counter is switched on and off around that one function
// (before_turn, after_turn), or callgrind told to collect in it alone (--toggle-collect).
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/socket_stream.h"
#include "proxy/access_log/access_log.h"
#include "proxy/downstream/listener.h"
#include "proxy/downstream/worker_front.h"
#include "support/manual_worker.h"
#include "support/path_peers.h"
#include "support/path_socket.h"

namespace sluice::test {

struct PathOptions {
  size_t connections = 1;
  size_t streams = 100;       // calls under way on each connection
  size_t message_bytes = 32;  // of request and response alike
  bool full_limits = false;   // the cluster's capped rate and the permits of process, cluster and endpoint
  bool cache = false;         // all calls but the first are hits
  bool verify = false;        // decode and compare everything
  bool literals = false;      // requests without a header that any table remembers
  bool sockets = false;       // connections are TCP over loopback instead of memory
};

// While it lives the process has a second thread, which sleeps. The C++ library counts its shared pointers without
// atomic operations in a process that has none, and the daemon has some.
class SecondThread {
 public:
  ~SecondThread() {
    end_.set_value();
    thread_.join();
  }

 private:
  std::promise<void> end_;
  std::thread thread_{[end = end_.get_future()] { end.wait(); }};
};

// What the workers of a proxy share: the configuration, the limits, the cache, the metrics.
class PathWorld {
 public:
  PathWorld(const PathOptions& options, uint32_t workers)
      : workers_(workers),
        runtime_(Runtime(workers), clock_),
        registry_(workers),
        metrics_(registry_),
        snapshots_(workers) {
    cluster_->name = "c";
    proxy::RouteOptions route;
    route.name = "r";
    route.cluster = "c";
    route.hash_by = {.kind = proxy::HashBy::Kind::kMetadata, .metadata = "x-key"};
    limits::ConcurrencyOptions process;
    if (options.full_limits) {
      process.max = cluster_->concurrency.max = cluster_->endpoint_concurrency.max = 100'000;
      cluster_->rate_limit = {.rate = 1e7, .burst = 1'000'000, .capped = true};
    }
    if (options.cache) route.cache.methods = {{"/pkg.Service/Method", std::chrono::hours(1)}};
    Publish(route, process, options.cache);
  }
  ~PathWorld() { runtime_.Shutdown(); }

  base::ManualClock& clock() { return clock_; }
  runtime::Runtime& runtime() { return runtime_; }
  const proxy::SnapshotData& snapshots() const { return snapshots_; }
  proxy::ProxyMetrics& metrics() { return metrics_; }

 private:
  static runtime::RuntimeOptions Runtime(uint32_t workers) {
    runtime::RuntimeOptions options = OneWorker();
    options.workers = workers;
    return options;
  }
  void Publish(const proxy::RouteOptions& route, const limits::ConcurrencyOptions& process, bool caches) {
    std::vector<upstream::WantedEndpoint> wanted;
    for (const char* address : {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}) {
      wanted.push_back({address, *net::Address::Parse(address), 1, false});
    }
    auto state =
        upstream::BuildClusterState(cluster_, wanted, nullptr, upstream::ListSource::kConfig, workers_, registry_);
    SLUICE_CHECK(state.ok());
    const base::TimePoint now = clock_.Now();
    auto limits = std::make_shared<proxy::RouteLimits>(
        std::make_shared<limits::RateLimiter>(route.rate_limit, now),
        std::make_shared<limits::KeyedRateLimiter>(route.client_rate_limit.rate, route.client_rate_limit.clients_max),
        route.name, registry_);
    proxy::RouteMetrics metrics;
    for (size_t code = 0; code < proxy::kGrpcCodes; ++code) {
      metrics.calls[code] =
          registry_.AddCounter("calls_total", "Calls.", {{"route", "r"}, {"code", std::to_string(code)}});
    }
    metrics.duration = registry_.AddHistogram("duration_seconds", "Duration.", 1e-9, {{"route", "r"}});
    std::vector<proxy::Route> table;
    table.push_back({route, 0, metrics, limits});
    auto process_limits =
        std::make_shared<proxy::ProcessLimits>(std::make_shared<limits::ConcurrencyLimiter>(process), registry_);
    std::shared_ptr<proxy::ResponseCache> cache;
    if (caches) cache = std::make_shared<proxy::ResponseCache>(proxy::CacheOptions(), registry_);
    auto log = proxy::AccessLog::Open({}, workers_);
    SLUICE_CHECK(log.ok());
    auto snapshot = std::make_shared<proxy::Snapshot>();
    snapshot->config = std::make_shared<proxy::RouteConfig>(
        proxy::RouteConfig{proxy::RouteTable(std::move(table)), {}, *log, 0, process_limits, cache});
    snapshot->clusters = {*state};
    snapshots_.Publish(std::shared_ptr<const proxy::Snapshot>(std::move(snapshot)));
  }

  const uint32_t workers_;
  base::ManualClock clock_;
  runtime::Runtime runtime_;
  metrics::Registry registry_;
  proxy::ProxyMetrics metrics_;
  proxy::SnapshotData snapshots_;
  std::shared_ptr<upstream::ClusterOptions> cluster_ = std::make_shared<upstream::ClusterOptions>();
};

class PathRig {
 public:
  explicit PathRig(const PathOptions& options) : PathRig(options, std::make_shared<PathWorld>(options, 1), 0) {}
  // Of a worker among others, in their world. Everything about the rig happens on the thread that makes it.
  PathRig(const PathOptions& options, std::shared_ptr<PathWorld> world, uint32_t worker)
      : options_(options), world_(std::move(world)), worker_(world_->runtime().worker(worker)) {
    message_ = h2::Message(std::string(options.message_bytes, 'm'));
    front_.context.connection.dial = [this](runtime::Worker&, const net::Address& address, base::TimePoint,
                                            net::Dialer::OnDone done) {
      return std::unique_ptr<net::Attempt>(new Attempt(*this, address.ToString(), std::move(done)));
    };
    for (size_t i = 0; i < options.connections; ++i) Connect();
    // A first call fills the tables; with a cache, the second is a hit.
    for (auto& client : clients_) RunCalls(*client, 1);
    for (int i = 0; i < 20; ++i) Batch();
  }
  ~PathRig() {
    for (auto& client : clients_) client->closing = true;
    for (auto& backend : backends_) backend->closing = true;
    front_.EndCalls();
    worker_.RunUntilIdleForTest();
    front_.CloseAll();
    worker_.RunUntilIdleForTest();
    SLUICE_CHECK(front_.context.calls.empty());
  }

  // One round on every connection: `streams` calls start together and end. Returns how many.
  size_t Batch() {
    world_->clock().Advance(std::chrono::microseconds(100));  // a million calls a second
    const uint64_t before = finished();
    for (size_t left = options_.streams; left > 0;) {
      size_t most = 0;
      for (auto& client : clients_) most = std::max(most, client->Start(left));
      SLUICE_CHECK(most > 0);
      left -= most;
      Run(before + (options_.streams - left) * clients_.size());
    }
    const size_t calls = finished() - before;
    SLUICE_CHECK(calls == options_.streams * clients_.size());
    return calls;
  }

  // So many calls more on every connection, which have only begun; they end in FinishCalls.
  void OpenCalls(size_t calls) {
    for (auto& client : clients_) client->Open(calls);
    Run(0);
  }
  void FinishCalls() {
    for (auto& client : clients_) client->FinishOpen();
    Run(0);
  }

  // The proxy's part of what is going on, and nothing else. Not inlined: tools find it by its name.
  [[gnu::noinline]] void ProxyTurn() {
    runtime::Worker::ScopedCurrentForTest current(worker_);
    for (PathWire* wire : wires_) wire->Deliver();
    worker_.RunUntilIdleForTest();
  }
  // Called around each ProxyTurn, if set.
  std::function<void()> before_turn, after_turn;

  uint64_t finished() const {
    uint64_t sum = 0;
    for (const auto& client : clients_) sum += client->finished();
    return sum;
  }
  // Calls that reached a backend.
  uint64_t answered() const {
    uint64_t sum = 0;
    for (const auto& backend : backends_) sum += backend->answered();
    return sum;
  }
  uint64_t turns() const { return turns_; }  // calls of ProxyTurn
  // Reads and writes of all connections in memory: each is a system call where there are sockets.
  uint64_t transfers() const {
    uint64_t sum = 0;
    for (const PathWire* wire : wires_) sum += wire->reads + wire->writes;
    return sum;
  }

 private:
  // A connection made at once, told of in the worker's next turn.
  struct Attempt final : net::Attempt {
    Attempt(PathRig& r, std::string a, net::Dialer::OnDone d) : rig(r), address(std::move(a)), done(std::move(d)) {
      rig.worker_.Post([this, gone = std::weak_ptr<bool>(alive)] {
        if (gone.expired()) return;
        auto wire = std::make_shared<PathWire>();
        auto stream = rig.MakeStream(wire, address);
        rig.backends_.push_back(std::make_unique<PathBackend>(wire, rig.message_, rig.options_.verify));
        rig.wires_.push_back(wire.get());
        auto callback = std::move(done);  // it destroys this
        callback(std::move(stream));
      });
    }
    PathRig& rig;
    const std::string address;
    net::Dialer::OnDone done;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  };

  std::unique_ptr<net::Stream> MakeStream(const std::shared_ptr<PathWire>& wire, const std::string& peer) {
    if (!options_.sockets) return std::make_unique<PathStream>(wire, peer);
    auto [near, far] = TcpPair();
    sockets_.push_back(std::make_unique<PathSocket>(wire, far));
    return net::MakeSocketStream(worker_, near, peer);
  }
  void Connect() {
    auto wire = std::make_shared<PathWire>();
    auto stream = MakeStream(wire, "192.0.2.7:40000");
    clients_.push_back(std::make_unique<PathClient>(wire, message_, options_.verify, options_.literals));
    wires_.push_back(wire.get());
    ++*open_;
    front_.connections.fetch_add(1, std::memory_order_relaxed);
    auto* connection = new proxy::DownstreamConnection(front_, std::move(stream), listener_, open_);
    front_.downstream.PushBack(*connection);
    connection->Start();
    Run(0);
  }
  // Until nothing moves and, with sockets, whose bytes may be under way, until so many calls have finished.
  void Run(uint64_t finished_min) {
    for (bool moved = true; moved || (options_.sockets && finished() < finished_min);) {
      if (!moved) std::this_thread::yield();
      for (auto& socket : sockets_) socket->Send();
      if (before_turn) before_turn();
      ProxyTurn();
      if (after_turn) after_turn();
      ++turns_;
      moved = false;
      for (auto& socket : sockets_) moved |= socket->Receive();
      for (auto& backend : backends_) moved |= backend->Hear();
      for (auto& client : clients_) moved |= client->Hear();
      for (PathWire* wire : wires_) moved |= wire->Due();
      for (auto& socket : sockets_) moved |= socket->Due();
    }
  }
  void RunCalls(PathClient& client, size_t calls) {
    const uint64_t before = finished();
    SLUICE_CHECK(client.Start(calls) == calls);
    Run(before + calls);
  }

  SecondThread second_thread_;
  const PathOptions options_;
  const std::shared_ptr<PathWorld> world_;
  runtime::Worker& worker_;
  std::string message_;
  proxy::ListenerOptions listener_;
  uint64_t turns_ = 0;
  std::vector<std::unique_ptr<PathSocket>> sockets_;
  std::vector<PathWire*> wires_;  // their peers and streams own them
  std::vector<std::unique_ptr<PathClient>> clients_;
  std::vector<std::unique_ptr<PathBackend>> backends_;
  std::shared_ptr<std::atomic<int64_t>> open_ = std::make_shared<std::atomic<int64_t>>(0);
  proxy::WorkerFront front_{worker_, world_->snapshots(), world_->metrics()};
};

}  // namespace sluice::test
