#include "chaos/proxy.h"

#include <algorithm>

#include "base/check.h"
#include "base/hash.h"
#include "chaos/plan.h"
#include "proxy/call/call.h"
#include "proxy/grpc_status.h"
#include "proxy/handoff/handoff.h"

namespace sluice::chaos {
namespace {

runtime::RuntimeOptions Workers(uint32_t count) {
  runtime::RuntimeOptions options;
  options.workers = count;
  options.blocking_threshold = std::chrono::milliseconds(0);
  options.blocking_threads = 1;
  return options;
}

// The cache's own hash has a secret of the process's.
cache::Key128 CacheHash(std::string_view key) { return {base::Hash64(key, 1), base::Hash64(key, 2)}; }

// Whether the cluster's connections live long enough for an answer of the health service, which a wire of chance brings
// late.
bool CanBeHeard(const upstream::ClusterOptions& options) {
  constexpr std::chrono::milliseconds kLong(500);
  const http2::LifeOptions& life = options.life;
  for (const auto bound : {life.idle_timeout, life.age_max, life.headers_timeout, life.send_timeout, life.stall_timeout,
                           life.body_timeout, options.connect_timeout, options.health.timeout}) {
    if (bound.count() > 0 && bound < kLong) return false;
  }
  return true;
}

}  // namespace

Proxy::Proxy(base::ManualClock& clock, const config::Config& config, uint64_t seed, bool moved, net::DialFunction dial)
    : clock_(clock),
      config_(config),
      runtime_(Workers(moved ? 2 : 1), clock),
      registry_(runtime_.size()),
      limits_(clock),
      clusters_(registry_, runtime_.size(), {}, &limits_),
      late_(~seed) {
  limits_.Apply(config_);
  limits_.SetHooks({[this](const std::string& cluster) { return clusters_.UseOfEndpoints(cluster); },
                    [this](const std::string& cluster) { clusters_.ConfigureEndpoints(cluster); }});
  cache_ = CacheFor(config_);
  const server::LimitTable limits = limits_.MakePlan(config_);
  SLUICE_CHECK(clusters_.Init(config_, {&limits, cache_}).ok());
  for (const auto& state : clusters_.States()) state->health->SetSeedForTest(seed ^ base::Hash64(state->name()));
  std::vector<proxy::WorkerFront*> fronts;
  std::vector<proxy::CallContext*> contexts;
  for (uint32_t i = 0; i < runtime_.size(); ++i) {
    runtime_.worker(i).random() = base::Random(seed + i);
    fronts_.push_back(std::make_unique<proxy::WorkerFront>(runtime_.worker(i), clusters_.snapshots(), metrics_));
    fronts_.back()->context.connection.dial = dial;
    fronts.push_back(fronts_.back().get());
    contexts.push_back(&fronts_.back()->context);
  }
  if (moved) {
    proxy::WorkerFront::Connect(fronts);
    fronts.back()->handoff->SetModeForTest(proxy::Handoff::Mode::kAlways);
  }
  clusters_.SetWorkers(contexts);
  health_ = std::make_unique<server::HealthTask>(runtime_, clusters_.snapshots(), contexts);
}

Proxy::~Proxy() {
  runtime_.Shutdown();
  clusters_.SetWorkers({});
  fronts_.clear();
}

void Proxy::Turn() {
  for (bool busy = true; busy;) {
    busy = false;
    for (uint32_t i = 0; i < runtime_.size(); ++i) {
      const uint64_t turns = runtime_.worker(i).stats().turns;
      runtime_.worker(i).RunUntilIdleForTest();
      busy |= runtime_.size() > 1 && runtime_.worker(i).stats().turns > turns + 1;  // the last one found nothing
    }
  }
}

void Proxy::TurnSome() {
  const uint64_t which = runtime_.size() == 1 ? 0 : late_.Below(4);
  if (which > 1) return Turn();
  runtime_.worker(static_cast<uint32_t>(which)).RunUntilIdleForTest();
}

base::TimePoint Proxy::NextTimer() {
  base::TimePoint next = base::kNever;
  for (const auto& front : fronts_) next = std::min(next, front->worker().timers().NextExpiry());
  return next;
}

bool Proxy::HasCallTasks() const {
  return std::any_of(fronts_.begin(), fronts_.end(), [](const auto& front) { return !front->context.calls.empty(); });
}

size_t Proxy::UpstreamPools() const {
  size_t pools = 0;
  for (const auto& front : fronts_) pools += front->context.pools.size();
  return pools;
}

void Proxy::OnEach(const std::function<void(proxy::WorkerFront&)>& fn) {
  for (const auto& front : fronts_) front->worker().Post([&fn, front = front.get()] { fn(*front); });
  Turn();
}

void Proxy::Drain() {
  for (const auto& front : fronts_) front->worker().Post([front = front.get()] { front->DrainDownstream(); });
}

server::HealthTask::Pace Proxy::Judge() {
  auto pace = server::HealthTask::Pace::kUsual;
  runtime_.worker(0).Post([this, &pace] { pace = health_->Pass(); });
  Turn();
  return pace;
}

std::string Proxy::Out() {
  std::string out;
  for (const auto& state : clusters_.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints) {
      const upstream::HealthView view = state->health->Describe(*listed.endpoint, clock_.Now());
      using State = upstream::HealthState;
      const bool silent = view.state == State::kNotServing && CanBeHeard(*state->options);
      if (view.state != State::kEjected && view.state != State::kProbing && !silent) continue;
      out += (out.empty() ? "" : ", ") + state->name() + " " + listed.endpoint->name() + " is " +
             std::string(ToString(view.state)) + " (" + view.why + ")";
    }
  }
  return out;
}

std::shared_ptr<proxy::ResponseCache> Proxy::CacheFor(const config::Config& config) {
  if (cache_ != nullptr) {
    cache_->Configure(config.cache);
    return cache_;
  }
  for (const proxy::RouteOptions& route : config.routes) {
    if (!route.cache.enabled()) continue;
    auto cache = std::make_shared<proxy::ResponseCache>(config.cache, registry_);
    cache->SetHashForTest(CacheHash);
    return cache;
  }
  return nullptr;
}

base::Status Proxy::Reload(const config::Config& config) {
  server::LimitTable limits = limits_.MakePlan(config);
  cache_ = CacheFor(config);
  if (auto status = clusters_.Apply(config, {&limits, cache_}); !status) return status;
  limits_.Commit(std::move(limits));
  clusters_.ConfigureEndpoints();
  config_ = config;
  return base::Ok();
}

void Proxy::Accept(std::unique_ptr<net::Stream> stream) {
  open_->fetch_add(1, std::memory_order_relaxed);
  proxy::WorkerFront& front = *fronts_.back();
  front.connections.fetch_add(1, std::memory_order_relaxed);
  auto owned = std::make_shared<std::unique_ptr<net::Stream>>(std::move(stream));
  front.worker().Post([this, &front, owned] {
    auto* connection = new proxy::DownstreamConnection(front, std::move(*owned), config_.listeners[0], open_);
    front.downstream.PushBack(*connection);
    connection->Start();
  });
}

bool Proxy::Stop() {
  constexpr int kRounds = 100;  // a turn runs a part of the tasks
  const auto end_calls = [this] {
    for (int i = 0; i < kRounds; ++i) {
      bool left = false;
      OnEach([&left](proxy::WorkerFront& front) {
        front.EndCalls();
        left |= front.HasCalls();
      });
      if (!left) return true;
    }
    return false;
  };
  const bool answered = end_calls();
  OnEach([](proxy::WorkerFront& front) { front.CloseAll(); });
  return end_calls() && answered;
}

uint64_t Proxy::CallsEnded(size_t code) {
  // What is refused for want of memory has not met a route.
  const uint64_t refused = metrics_.errors[static_cast<size_t>(base::ErrorKind::kMemoryLimited)]->Value();
  uint64_t sum = code == static_cast<size_t>(proxy::GrpcCode::kResourceExhausted) ? refused : 0;
  for (const proxy::RouteOptions& route : config_.routes) {
    for (const upstream::ClusterOptions& cluster : config_.clusters) {
      sum += registry_
                 .AddCounter("sluice_calls_total", "Calls ended, by route and gRPC status.",
                             {{"route", route.name},
                              {"cluster", cluster.name},
                              {"grpc_status", std::string(ToString(static_cast<proxy::GrpcCode>(code)))}})
                 ->Value();
    }
  }
  return sum;
}

int64_t Proxy::UpstreamConnections() {
  int64_t sum = 0;
  for (const upstream::ClusterOptions& cluster : config_.clusters) {
    for (uint32_t i = 0; i < kBackendsEver; ++i) {
      sum += registry_
                 .AddGauge("sluice_upstream_connections", "Connections open to the endpoint.",
                           {{"cluster", cluster.name}, {"endpoint", BackendAddress(i)}})
                 ->Value();
    }
  }
  return sum;
}

std::string Proxy::Busy() {
  std::string out;
  const auto expect = [&out](const std::string& what, int64_t value) {
    if (value != 0) out += (out.empty() ? "" : ", ") + what + " " + std::to_string(value);
  };
  for (const auto& front : fronts_) {
    if (front->HasCalls()) out = "calls alive";
  }
  expect("calls in flight", metrics_.calls_in_flight->Value());
  expect("tasks", static_cast<int64_t>(runtime_.LiveTasks()));
  for (const admin::LimitView& limit : limits_.List()) {
    expect(limit.name + " waiting", static_cast<int64_t>(limit.waiting));
    expect(limit.name + " in use", static_cast<int64_t>(limit.in_use));
  }
  if (cache_ != nullptr) expect("fetches", static_cast<int64_t>(cache_->stats().fetches));
  for (const upstream::ClusterOptions& cluster : config_.clusters) {
    for (uint32_t i = 0; i < kBackendsEver; ++i) {
      const std::string name = BackendAddress(i);
      expect("attempts to " + cluster.name + " " + name,
             registry_
                 .AddGauge("sluice_endpoint_in_flight", "Attempts in flight.",
                           {{"cluster", cluster.name}, {"endpoint", name}})
                 ->Value());
    }
  }
  return out;
}

}  // namespace sluice::chaos
