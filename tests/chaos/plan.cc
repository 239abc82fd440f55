#include "chaos/plan.h"

#include <algorithm>

#include "chaos/call.h"

namespace sluice::chaos {
namespace {

using std::chrono::milliseconds;

// Where all calls must succeed none is refused because it has waited.
milliseconds DrawQueueTime(const Plan& plan, Dice& dice) {
  if (!plan.tight) return milliseconds(0);
  return dice.Of<milliseconds>({milliseconds(0), milliseconds(1), milliseconds(50), limits::kQueueTime});
}

limits::RateOptions DrawRate(const Plan& plan, Dice& dice) {
  limits::RateOptions rate;
  if (!dice.OneIn(3)) {
    if (!plan.tight) rate.queue_time = milliseconds(0);  // for the limit that the script may set
    return rate;
  }
  rate.rate = dice.Of<double>({30, 100, 1000, 50000});
  rate.capped = dice.OneIn(2);
  rate.burst = static_cast<uint32_t>(dice.In(rate.capped ? 2 : 1, 20));
  rate.queue_max = plan.tight ? static_cast<uint32_t>(dice.Below(5)) : 1000;
  rate.queue_time = DrawQueueTime(plan, dice);
  return rate;
}

limits::ConcurrencyOptions DrawConcurrency(const Plan& plan, Dice& dice) {
  if (!dice.OneIn(3)) {
    limits::ConcurrencyOptions none;
    if (!plan.tight) none.queue_time = milliseconds(0);  // the same
    return none;
  }
  return {static_cast<uint32_t>(dice.In(1, 12)), plan.tight ? static_cast<uint32_t>(dice.Below(5)) : 1000,
          DrawQueueTime(plan, dice)};
}

http2::SessionOptions DrawSession(const Plan& plan, Dice& dice) {
  http2::SessionOptions options;
  options.stream_window_bytes = dice.Of<uint32_t>({65535, 65535, 256 * 1024});
  options.connection_window_bytes = dice.Of<uint32_t>({65535, 200000, 4 * 1024 * 1024});
  options.header_table_bytes = dice.Of<uint32_t>({4096, 4096, 0, 300, 65536});
  options.output_bytes_max = dice.Of<uint32_t>({16 * 1024, 512 * 1024});
  options.concurrent_streams_max = dice.OneIn(2) ? 1000 : static_cast<uint32_t>(dice.In(1, 10));
  options.frame_bytes_max = dice.Of<uint32_t>({16384, 16384, 1 << 20});
  // Peers here open windows and send DATA a byte at a time, thousands in one moment of the manual clock; in true time
  // that is slow, and no flood.
  options.window_updates_per_second = options.useless_frames_per_second = 100'000'000;
  if (plan.tight) {
    options.control_frames_max = dice.Of<uint32_t>({16, 10000});
    options.header_list_bytes_max = dice.Of<uint32_t>({1024, 64 * 1024});
  }
  if (plan.impatient) options.queued_bytes_max = dice.Of<uint64_t>({4096, 100'000, 128 << 20});
  return options;
}

// Idleness and age end connections in good order. What else there is to run out of loses calls.
http2::LifeOptions DrawLife(const Plan& plan, Dice& dice) {
  http2::LifeOptions life;
  life.idle_timeout = milliseconds(dice.Of({0, 300000, 500, 50}));
  if (dice.OneIn(3)) life.age_max = milliseconds(dice.In(20, 3000));
  life.age_grace = milliseconds(plan.impatient ? dice.In(1, 3000) : 600000);
  if (!plan.impatient) return life;
  const auto bound = [&dice] { return milliseconds(dice.OneIn(3) ? 0 : dice.In(5, 5000)); };
  life.headers_timeout = bound();
  life.send_timeout = bound();
  life.stall_timeout = bound();
  life.body_timeout = bound();
  return life;
}

http2::KeepaliveOptions DrawKeepalive(const Plan& plan, Dice& dice) {
  if (!dice.OneIn(3)) return {};
  return {milliseconds(dice.In(5000, 20000)), milliseconds(plan.tight ? dice.In(10, 3000) : 20000)};
}

void DrawHealth(upstream::ClusterOptions& cluster, Dice& dice) {
  upstream::EjectionOptions& ejection = cluster.ejection;
  ejection.enabled = !dice.OneIn(4);
  ejection.consecutive = static_cast<uint32_t>(dice.Of({5, 5, 1, 2, 0}));
  ejection.error_rate = dice.Of({0.1, 0.1, 0.0});
  ejection.stuck = milliseconds(dice.Of({50, 20, 0}));
  ejection.min_available = dice.Of({0.5, 0.5, 0.0, 0.9});
  ejection.base = milliseconds(dice.In(100, 2000));
  ejection.max = milliseconds(dice.In(2000, 10000));
  cluster.slow_start = {milliseconds(dice.Of({30000, 1000, 0})), dice.Of({0.05, 0.01, 0.5})};
  cluster.spill.headroom = dice.Of({0.4, 0.0, 2.0});
  if (!dice.OneIn(3)) return;
  cluster.health.mode = dice.OneIn(2) ? upstream::HealthMode::kWatch : upstream::HealthMode::kCheck;
  cluster.health.interval = milliseconds(dice.In(200, 5000));
  cluster.health.timeout = milliseconds(dice.In(100, 2000));
  cluster.health.fall = static_cast<uint32_t>(dice.In(1, 3));
  cluster.health.rise = static_cast<uint32_t>(dice.In(1, 3));
}

upstream::ClusterOptions DrawCluster(const std::string& name, const Plan& plan, Dice& dice) {
  upstream::ClusterOptions cluster;
  cluster.name = name;
  cluster.policy =
      dice.Of({upstream::Policy::kRingHash, upstream::Policy::kRoundRobin, upstream::Policy::kLeastRequest});
  cluster.ring_points = dice.Of<uint32_t>({1, 20, 160});
  const bool tiers = dice.OneIn(3);
  if (tiers && dice.OneIn(2)) cluster.locality = "here";
  for (uint32_t i = 0; i < plan.backends; ++i) {
    if (i > 0 && dice.OneIn(4)) continue;
    const std::string address = BackendAddress(i);
    cluster.endpoints.push_back({address, *net::Address::Parse(address), dice.Of({1.0, 1.0, 0.3, 5.0})});
    if (!tiers) continue;
    cluster.endpoints.back().priority = static_cast<uint32_t>(dice.Of({0, 0, 1, 3}));
    cluster.endpoints.back().locality = dice.Of({"here", "there", ""});
  }
  cluster.connect_timeout = milliseconds(plan.bad_backends ? dice.In(5, 2000) : 5000);
  cluster.backoff_base = milliseconds(dice.In(1, 200));
  cluster.backoff_max = milliseconds(dice.In(200, 3000));
  cluster.connections_max = static_cast<uint32_t>(dice.In(1, 4));
  if (plan.tight && dice.OneIn(3)) cluster.pending_calls_max = static_cast<uint32_t>(dice.In(1, 4));
  cluster.drain_timeout = milliseconds(plan.tight ? dice.In(0, 2000) : 600000);
  cluster.life = DrawLife(plan, dice);
  cluster.keepalive = DrawKeepalive(plan, dice);
  cluster.http2 = DrawSession(plan, dice);
  cluster.rate_limit = DrawRate(plan, dice);
  cluster.concurrency = DrawConcurrency(plan, dice);
  cluster.endpoint_concurrency = DrawConcurrency(plan, dice);
  cluster.bounded_load = dice.Of({0.0, 0.0, 1.25});
  DrawHealth(cluster, dice);
  cluster.retry_budget = {dice.Of({0.2, 0.0, 2.0}), static_cast<uint32_t>(dice.Of({3, 3, 0, 100}))};
  return cluster;
}

// Of the methods that may be repeated; see MayRepeat.
void DrawRetry(proxy::RouteOptions& route, const Plan& plan, Dice& dice) {
  proxy::RetryOptions& retry = route.retry;
  if (dice.OneIn(3)) return;
  retry.methods = dice.OneIn(8) ? proxy::RetryOptions::Methods::kNone : proxy::RetryOptions::Methods::kListed;
  for (const Method method : {Method::kCached, Method::kServer, Method::kStream}) {  // sorted
    if (!dice.OneIn(3)) retry.paths.push_back(kPaths[static_cast<size_t>(method)]);
  }
  if (dice.OneIn(2)) retry.on = static_cast<uint32_t>(dice.Below(1 << 17)) & ~1u;
  retry.backoff_base = milliseconds(dice.In(1, 300));
  retry.backoff_max = milliseconds(dice.In(300, 2000));
  // Attempts that are given up count: where the last one is refused by a connection that ends, the call fails.
  if (!plan.CallsMustSucceed() && dice.OneIn(3)) retry.per_try_timeout = milliseconds(dice.In(1, 1000));
  if (dice.OneIn(2)) route.hedge = {milliseconds(dice.OneIn(3) ? 0 : dice.In(1, 300)), 1};
}

proxy::RouteOptions DrawRoute(const std::string& name, const Plan& plan, Dice& dice) {
  using Kind = proxy::HashBy::Kind;
  proxy::RouteOptions route;
  route.name = name;
  route.cluster = dice.OneIn(4) ? "b" : "a";
  if (dice.OneIn(3)) route.failover = route.cluster == "a" ? "b" : "a";
  route.hash_by.kind = dice.Of({Kind::kRandom, Kind::kMethod, Kind::kPeer, Kind::kMetadata, Kind::kField});
  if (route.hash_by.kind == Kind::kMetadata) route.hash_by.metadata = "x-key";
  if (route.hash_by.kind == Kind::kField) route.hash_by.fields = {{"", {1}}};
  if (plan.tight && dice.OneIn(3)) route.timeout = milliseconds(dice.In(1, 3000));
  route.retry.attempts_max = plan.bad_backends ? static_cast<uint32_t>(dice.In(1, 5)) : 3;
  route.retry.buffer_bytes_max = plan.bad_backends ? static_cast<uint32_t>(dice.Size(100000)) : 16 * 1024 * 1024;
  DrawRetry(route, plan, dice);
  route.rate_limit = DrawRate(plan, dice);
  if (dice.OneIn(3)) {
    route.client_rate_limit.rate = DrawRate(plan, dice);
    if (dice.OneIn(2)) route.client_rate_limit.metadata = "x-key";
    if (plan.tight && dice.OneIn(2)) route.client_rate_limit.clients_max = 16;
  }
  return route;
}

void DrawCache(proxy::RouteOptions& route, Dice& dice) {
  proxy::CacheRule& rule = route.cache;
  rule.methods = {{"/chaos.Echo/Cached", milliseconds(dice.In(1, 3000))}};
  rule.shared = dice.OneIn(2);
  if (dice.OneIn(3)) rule.vary = {"x-key"};
  if (dice.OneIn(3)) rule.errors = {5, 14};
  rule.stale_while_revalidate = milliseconds(dice.Of({0, 500, 5000}));
  rule.stale_if_unavailable = milliseconds(dice.Of({0, 5000}));
  rule.fetch_timeout = milliseconds(dice.Of({60000, 60000, 2000}));
}

}  // namespace

std::string BackendAddress(uint32_t index) { return "10.0.0." + std::to_string(index + 1) + ":1"; }

Plan DrawPlan(Dice& dice) {
  Plan plan;
  if (!dice.OneIn(4)) {
    plan.bad_clients = dice.OneIn(2);
    plan.bad_backends = dice.OneIn(2);
    plan.tight = dice.OneIn(2);
    plan.impatient = plan.tight && dice.OneIn(2);
    if (dice.OneIn(4)) plan.stop = dice.OneIn(2) ? Plan::Stop::kDrain : Plan::Stop::kStop;
  }
  plan.hasty = dice.OneIn(5);
  plan.clients = static_cast<uint32_t>(dice.In(1, 4));
  plan.backends = static_cast<uint32_t>(dice.In(1, 5));
  plan.calls = static_cast<uint32_t>(1 + dice.Size(59));
  plan.changes = dice.OneIn(2) ? 0 : static_cast<uint32_t>(dice.In(1, 6));
  plan.body_max =
      dice.Of<size_t>({50, 50, Plan::kSmall, Plan::kSmall, 5000, 5000, 5000, 70000, plan.calls < 10 ? 300000u : 2000u});
  if (plan.tight && dice.OneIn(2)) {
    // Each worker's read buffer alone is 256 KiB: below 350,000 the level never falls again, above it does.
    plan.buffered_bytes_max = dice.Of({290'000, 360'000, 400'000, 400'000, 600'000});
    plan.body_max = dice.Of<size_t>({5000, 70000, 70000, 200'000});
  }
  plan.span = dice.Of({Micros(0), Micros(2000), Micros(100'000), Micros(3'000'000)});
  const auto piece = [&]() -> size_t {
    if (dice.OneIn(2)) return 0;
    return plan.small() && dice.OneIn(3) ? dice.In(1, 12) : dice.In(30, 9000);
  };
  plan.proxy_read_max = piece();
  plan.proxy_write_max = piece();
  plan.wire_bytes = dice.Of<size_t>({65536, 65536, 3000, plan.small() ? 100u : 20000u});
  config::Config& config = plan.config;
  config.hash_seed = "chaos";
  config.clusters = {DrawCluster("a", plan, dice), DrawCluster("b", plan, dice)};
  config.routes = {DrawRoute("cached", plan, dice), DrawRoute("rest", plan, dice)};
  config.routes[0].service = "chaos.Echo";
  config.routes[0].method = "Cached";
  if (!dice.OneIn(4)) DrawCache(config.routes[0], dice);
  config.concurrency = DrawConcurrency(plan, dice);
  config.cache.capacity_bytes = 1 << 20;
  config.cache.entry_bytes_max = dice.Of<size_t>({1024, 1 << 18});
  config.cache.strict = dice.OneIn(3);
  config.cache.doorkeeper = dice.OneIn(4);
  config.cache.fetches_max = dice.Of<uint32_t>({10000, 1, 2});
  config.forwarding.x_forwarded = dice.OneIn(3);
  config.forwarding.via = dice.OneIn(3);
  proxy::ListenerOptions listener;
  listener.http2 = DrawSession(plan, dice);
  listener.keepalive = DrawKeepalive(plan, dice);
  listener.life = DrawLife(plan, dice);
  config.listeners = {listener};
  return plan;
}

config::Config Mutated(const config::Config& config, const Plan& plan, Dice& dice) {
  config::Config next = config;
  for (upstream::ClusterOptions& cluster : next.clusters) {
    if (dice.OneIn(3)) cluster = DrawCluster(cluster.name, plan, dice);
  }
  for (proxy::RouteOptions& route : next.routes) {
    if (!dice.OneIn(3)) continue;
    proxy::RouteOptions drawn = DrawRoute(route.name, plan, dice);
    drawn.service = route.service;
    drawn.method = route.method;
    if (!route.service.empty() && !dice.OneIn(4)) DrawCache(drawn, dice);
    route = std::move(drawn);
  }
  if (dice.OneIn(4)) next.concurrency = DrawConcurrency(plan, dice);
  if (dice.OneIn(4)) next.cache.entry_bytes_max = dice.Of<size_t>({1024, 1 << 18});
  return next;
}

}  // namespace sluice::chaos
