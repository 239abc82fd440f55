#include "chaos/proxy.h"

#include "base/check.h"
#include "base/hash.h"
#include "chaos/plan.h"
#include "proxy/call/call.h"
#include "proxy/grpc_status.h"

namespace sluice::chaos {
namespace {

runtime::RuntimeOptions OneWorker() {
  runtime::RuntimeOptions options;
  options.workers = 1;
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

Proxy::Proxy(base::ManualClock& clock, const config::Config& config, uint64_t seed, net::DialFunction dial)
    : clock_(clock),
      config_(config),
      runtime_(OneWorker(), clock),
      limits_(clock),
      clusters_(registry_, 1, {}, &limits_) {
  worker().random() = base::Random(seed);
  limits_.Apply(config_);
  limits_.SetHooks({[this](const std::string& cluster) { return clusters_.UseOfEndpoints(cluster); },
                    [this](const std::string& cluster) { clusters_.ConfigureEndpoints(cluster); }});
  cache_ = CacheFor(config_);
  const server::LimitTable limits = limits_.MakePlan(config_);
  SLUICE_CHECK(clusters_.Init(config_, {&limits, cache_}).ok());
  for (const auto& state : clusters_.States()) state->health->SetSeedForTest(seed ^ base::Hash64(state->name()));
  front_ = std::make_unique<proxy::WorkerFront>(worker(), clusters_.snapshots(), metrics_);
  front_->context.connection.dial = std::move(dial);
  clusters_.SetWorkers({&front_->context});
  health_ = std::make_unique<server::HealthTask>(runtime_, clusters_.snapshots(),
                                                 std::vector<proxy::CallContext*>{&front_->context});
}

Proxy::~Proxy() {
  runtime_.Shutdown();
  clusters_.SetWorkers({});
  front_.reset();
}

server::HealthTask::Pace Proxy::Judge() {
  auto pace = server::HealthTask::Pace::kUsual;
  worker().Post([this, &pace] { pace = health_->Pass(); });
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
  front_->connections.fetch_add(1, std::memory_order_relaxed);
  auto owned = std::make_shared<std::unique_ptr<net::Stream>>(std::move(stream));
  worker().Post([this, owned] {
    auto* connection = new proxy::DownstreamConnection(*front_, std::move(*owned), config_.listeners[0], open_);
    front_->downstream.PushBack(*connection);
    connection->Start();
  });
}

bool Proxy::Stop() {
  constexpr int kRounds = 100;  // a turn runs a part of the tasks
  const auto end_calls = [this] {
    for (int i = 0; i < kRounds; ++i) {
      worker().Post([this] { front_->EndCalls(); });
      Turn();
      if (!front_->HasCalls()) return true;
    }
    return false;
  };
  const bool answered = end_calls();
  worker().Post([this] { front_->CloseAll(); });
  Turn();
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
  if (!front_->context.calls.empty()) out = "calls alive";
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
