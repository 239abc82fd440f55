// ProxyFixture: a whole proxy of one worker in one thread: clients and backends are FramePeers, time is by
// hand.
//
//   Start({"10.0.0.1:1"});
//   FramePeer& client = Client();
//   client.Send(h2::Headers(1, h2::Block(h2::GrpcRequest()), h2::kEndHeaders | h2::kEndStream));
//   Run();
//   Respond(Up(), 1, "hello");
//   Run();
//   EXPECT_EQ(client.streams[1].data, "hello");
//
// With SLUICE_TEST_MOVED in the environment it has two workers: client connections are on the second, and every call
// moves to the first, which has the upstreams. What a test sees must be the same.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "metrics/registry.h"
#include "proxy/call/access_gate.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/gate.h"
#include "proxy/call/hedge_delay.h"
#include "proxy/call/observer.h"
#include "proxy/downstream/listener.h"
#include "proxy/downstream/worker_front.h"
#include "proxy/handoff/handoff.h"
#include "support/fake_net.h"
#include "support/manual_worker.h"

namespace sluice::test {

inline constexpr uint8_t kLast = h2::kEndHeaders | h2::kEndStream;  // flags of a header block that ends the stream

class ProxyFixture : public ::testing::Test {
 public:
  // Change these before Start.
  upstream::ClusterOptions cluster;
  std::optional<upstream::ClusterOptions> other;  // a second cluster, for routes that fail over to it
  std::vector<std::string> other_addresses;       // its endpoints
  std::map<std::string, uint32_t> priorities;     // of addresses of the first cluster; 0 where there is none
  std::vector<proxy::RouteOptions> routes{1};
  proxy::ForwardingOptions forwarding;
  std::vector<std::string> claims;  // names of metadata that gates set; read by SetEndpoints
  proxy::AccessLogOptions access_log;
  proxy::ListenerOptions listener;
  limits::ConcurrencyOptions process;
  proxy::CacheOptions cache;
  proxy::GateList gates;                                        // of all routes; read by SetEndpoints
  bool key_has_credential = false;                              // of all routes; read by SetEndpoints
  std::shared_ptr<const proxy::Tracer> tracer;                  // read by SetEndpoints
  std::vector<std::shared_ptr<proxy::CallObserver>> observers;  // beside the access log; read by SetEndpoints
  std::shared_ptr<proxy::Insight> insight;                      // read by SetEndpoints

  explicit ProxyFixture(uint32_t worker_count = std::getenv("SLUICE_TEST_MOVED") != nullptr ? 2 : 1)
      : workers(worker_count) {
    cluster.name = "c";
    cluster.policy = upstream::Policy::kRoundRobin;
    routes[0].name = "r";
    routes[0].cluster = "c";
  }

  void Start(const std::vector<std::string>& addresses) {
    worker.emplace(time.worker, snapshots, metrics);
    worker->context.connection.dial = net.Dial();
    if (workers == 2) {
      home.emplace(time.runtime.worker(1), snapshots, metrics);
      const std::array<proxy::WorkerFront*, 2> both{&*worker, &*home};
      proxy::WorkerFront::Connect(both);
      home->handoff->SetModeForTest(proxy::Handoff::Mode::kAlways);
    }
    auto log = proxy::AccessLog::Open(access_log, workers);
    ASSERT_TRUE(log.ok());
    log_ = *log;
    SetEndpoints(addresses);
  }
  // Publishes a new list, as the server does: what has left is drained.
  void SetEndpoints(const std::vector<std::string>& addresses) {
    std::vector<upstream::WantedEndpoint> wanted;
    for (const std::string& address : addresses) {
      wanted.push_back({address, *net::Address::Parse(address), 1, false});
      if (priorities.contains(address)) wanted.back().standing.priority = priorities[address];
    }
    if (!options_) options_ = std::make_shared<upstream::ClusterOptions>(cluster);
    auto built = upstream::BuildClusterState(options_, wanted, state_.get(), upstream::ListSource::kConfig, workers,
                                             registry, std::exchange(next_cluster_limits, nullptr));
    ASSERT_TRUE(built.ok()) << built.error().detail;
    auto snapshot = std::make_shared<proxy::Snapshot>();
    std::vector<proxy::Route> table;
    MakeLimits();
    for (const proxy::RouteOptions& route : routes) {
      proxy::GateList all = gates;
      if (const auto own = proxy::GatesOf(route, nullptr)) all.insert(all.end(), own->begin(), own->end());
      table.push_back({route, 0, RouteMetrics(route.name), route_limits[route.name],
                       all.empty() ? nullptr : std::make_shared<const proxy::GateList>(all)});
      table.back().key_has_credential = key_has_credential;
      if (route.mirror.enabled()) {
        auto mirror = std::make_shared<proxy::RouteMirror>();
        mirror->cluster = 1;
        for (size_t i = 0; i < mirror->results.size(); ++i) {
          mirror->results[i] = registry.AddCounter("mirrored_calls_total", "Mirrored calls.",
                                                   {{"result", std::string(proxy::kMirrorResults[i])}});
        }
        mirror->under_way = mirrored_calls;
        table.back().mirror = std::move(mirror);
      }
      if (!route.clusters.empty()) {
        std::vector<uint32_t> places;
        std::vector<proxy::RouteMetrics> split_metrics;
        for (const proxy::WeightedCluster& part : route.clusters) {
          places.push_back(part.name == cluster.name ? 0 : 1);
          split_metrics.push_back(RouteMetrics(route.name + "/" + part.name));
        }
        table.back().split = std::make_shared<proxy::ClusterSplit>(route, places, std::move(split_metrics));
      }
      if (!route.failover.empty()) {
        table.back().failover = 1;
        table.back().metrics.failovers = registry.AddCounter("failovers_total", "Failovers.", {{"route", route.name}});
      }
      if (!route.hedge.automatic()) continue;
      std::shared_ptr<proxy::HedgeDelay>& delay = hedge_delays[route.name];
      if (delay == nullptr) delay = std::make_shared<proxy::HedgeDelay>(workers);
      table.back().hedge_delay = delay;
    }
    auto told = observers;
    if (log_->enabled()) told.push_back(std::make_shared<proxy::AccessLogObserver>(log_));
    snapshot->config = std::make_shared<proxy::RouteConfig>(
        proxy::RouteConfig{proxy::RouteTable(std::move(table)), forwarding, log_, 0, process_limits, response_cache,
                           told, insight, tracer, proxy::MakeFieldGuard(forwarding, routes, claims)});
    snapshot->clusters = {*built};
    if (other) {
      other_state_ = BuildOther();
      snapshot->clusters.push_back(other_state_);
    }
    snapshots.Publish(std::shared_ptr<const proxy::Snapshot>(std::move(snapshot)));
    if (state_ != nullptr) {
      for (const auto& endpoint : upstream::Removed(*state_, built->get())) {
        endpoint->MarkRemoved();
        time.worker.Post([this, endpoint] { worker->context.pools.Drain(*endpoint); });
      }
    }
    state_ = *built;
  }

  // A client whose connection has been set up.
  FramePeer& Client(const std::vector<std::pair<uint16_t, uint32_t>>& settings = {}) {
    return ClientOf(front(), "192.0.2.7:40000", settings);
  }
  FramePeer& ClientOf(proxy::WorkerFront& on, const std::string& peer_name,
                      const std::vector<std::pair<uint16_t, uint32_t>>& settings = {},
                      const net::TlsPeer* tls = nullptr) {
    auto pair = net::MemoryStream::Make(on.worker(), "proxy", peer_name);
    clients_.push_back(std::make_unique<FramePeer>(FramePeer::Role::kClient, std::move(pair.far)));
    ++*open_;
    on.connections.fetch_add(1, std::memory_order_relaxed);
    auto* connection = new proxy::DownstreamConnection(on, std::move(pair.near), listener, open_, tls);
    on.downstream.PushBack(*connection);
    connection->Start();
    clients_.back()->Send(h2::Preface() + h2::Settings(settings));
    Run();
    return *clients_.back();
  }
  // Turns everything until nothing moves.
  void Run() {
    do {
      time.Run();
      bool moved = net.Pump();
      for (auto& client : clients_) moved |= client->Pump();
      if (!moved) break;
    } while (true);
  }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    Run();
  }
  // The newest connection to a host.
  FramePeer& Up(const std::string& address = "10.0.0.1:1") { return net.host(address).last(); }
  bool Connected(const std::string& address) { return !net.host(address).connections.empty(); }
  // Addresses whose newest connection has heard of that stream's headers.
  std::vector<std::string> Holders(const std::vector<std::string>& addresses, uint32_t id = 1) {
    std::vector<std::string> out;
    for (const std::string& address : addresses) {
      if (Connected(address) && !Up(address).streams[id].headers.empty()) out.push_back(address);
    }
    return out;
  }
  static void Respond(FramePeer& up, uint32_t id, const std::string& body) {
    up.Send(h2::Headers(id, h2::Block(h2::GrpcResponse())) + h2::Data(id, body) +
            h2::Headers(id, h2::Block(h2::GrpcTrailers()), kLast));
  }

  void TearDown() override {
    if (!worker) return;
    worker->EndCalls();
    if (home) home->EndCalls();
    time.Run();
    if (home) home->CloseAll();
    worker->CloseAll();
    time.Run();
    if (home) {
      EXPECT_FALSE(home->HasCalls());
      EXPECT_EQ(home->handoff->stats().moved, worker->handoff->stats().taken);
      RecordProperty("moved", static_cast<int>(home->handoff->stats().moved));
    }
    EXPECT_EQ(worker->context.pools.size(), 0u);
    EXPECT_EQ(time.runtime.LiveTasks(), 0u);
    EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
    EXPECT_EQ(mirrored_calls->load(), 0u);
    EXPECT_EQ(metrics.downstream_connections->Value(), 0);
    EXPECT_EQ(*open_, 0);
    time.runtime.Shutdown();
    home.reset();
    worker.reset();
  }

  // The worker with the client connections.
  proxy::WorkerFront& front() { return home ? *home : *worker; }

  const uint32_t workers;
  ManualWorker time{workers};
  metrics::Registry registry{workers};
  proxy::ProxyMetrics metrics{registry};
  proxy::SnapshotData snapshots{workers};
  FakeNet net{time.worker};
  std::optional<proxy::WorkerFront> worker;  // where calls run
  std::optional<proxy::WorkerFront> home;    // of two workers: where they come from
  // Made by the first SetEndpoints.
  std::map<std::string, std::shared_ptr<const proxy::RouteLimits>> route_limits;
  std::map<std::string, std::shared_ptr<proxy::HedgeDelay>> hedge_delays;
  std::shared_ptr<const proxy::ProcessLimits> process_limits;
  std::shared_ptr<proxy::ResponseCache> response_cache;  // if a route caches
  std::shared_ptr<std::atomic<uint32_t>> mirrored_calls = std::make_shared<std::atomic<uint32_t>>(0);
  std::shared_ptr<const upstream::ClusterLimits> next_cluster_limits;  // for the next SetEndpoints; null: as before
  const upstream::ClusterState& state() const { return *state_; }
  const upstream::ClusterState& other_state() const { return *other_state_; }

 private:
  void MakeLimits() {
    if (process_limits != nullptr) return;
    process_limits =
        std::make_shared<proxy::ProcessLimits>(std::make_shared<limits::ConcurrencyLimiter>(process), registry);
    for (const proxy::RouteOptions& route : routes) {
      const base::TimePoint now = time.clock.Now();
      const proxy::ClientRateOptions& client = route.client_rate_limit;
      route_limits[route.name] = std::make_shared<proxy::RouteLimits>(
          std::make_shared<limits::RateLimiter>(route.rate_limit, now),
          std::make_shared<limits::KeyedRateLimiter>(client.rate, client.clients_max), route.name, registry);
      if (route.cache.enabled() && response_cache == nullptr) {
        response_cache = std::make_shared<proxy::ResponseCache>(cache, registry);
      }
    }
  }
  std::shared_ptr<const upstream::ClusterState> BuildOther() {
    std::vector<upstream::WantedEndpoint> wanted;
    for (const std::string& address : other_addresses) wanted.push_back({address, *net::Address::Parse(address)});
    return *upstream::BuildClusterState(std::make_shared<upstream::ClusterOptions>(*other), wanted, other_state_.get(),
                                        upstream::ListSource::kConfig, workers, registry);
  }
  proxy::RouteMetrics RouteMetrics(const std::string& name) {
    proxy::RouteMetrics out;
    for (size_t code = 0; code < proxy::kGrpcCodes; ++code) {
      out.calls[code] = registry.AddCounter("calls_total", "Calls.", {{"route", name}, {"code", std::to_string(code)}});
    }
    out.duration = registry.AddHistogram("duration_seconds", "Duration.", 1e-9, {{"route", name}});
    return out;
  }

  std::shared_ptr<proxy::AccessLog> log_;
  std::shared_ptr<const upstream::ClusterOptions> options_;
  std::shared_ptr<const upstream::ClusterState> state_, other_state_;
  std::shared_ptr<std::atomic<int64_t>> open_ = std::make_shared<std::atomic<int64_t>>(0);
  std::vector<std::unique_ptr<FramePeer>> clients_;
};

}  // namespace sluice::test
