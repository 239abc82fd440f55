#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <latch>

#include "admin/admin_server.h"
#include "admin/http_server.h"
#include "base/log.h"
#include "base/memory_budget.h"
#include "proxy/call.h"
#include "proxy/call_mover.h"
#include "proxy/listener.h"
#include "runtime/runtime.h"
#include "server/log_setup.h"
#include "server/version.h"

namespace sluice::server {

using std::chrono::milliseconds;

// How often the files of TLS are looked at.
constexpr milliseconds kTlsPoll{1000};
// Calls in flight at a stop have this long to answer; they need a turn of their worker's loop.
constexpr milliseconds kEndCallsMax{2000};

namespace {

admin::TlsPaths TlsPathsOf(const config::Config& config) {
  const config::AdminTlsOptions& tls = config.admin.tls;
  return {tls.certificate, tls.key, tls.client_ca};
}

}  // namespace

base::Result<std::unique_ptr<Server>> Server::Start(config::Config config, ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(config), std::move(options)));
  base::Status status = server->Init();
  {
    std::lock_guard lock(server->life_mutex_);
    server->started_all_ = true;
    server->ready_ = status.ok() && !server->draining_ && !server->stop_;
    server->life_changed_.notify_all();
  }
  if (!status) return status.error();  // the destructor takes down what is up
  return server;
}

base::Status Server::Check(const config::Config& config) {
  if (config.admin.tls.enabled()) {
    if (auto status = admin::AdminServer::Check(TlsPathsOf(config)); !status) return status;
  }
  metrics::Registry registry(1);
  Clusters clusters(registry, 1);
  config::Config copy = config;
  copy.access_log = {};  // to open it makes it, with the rights of whoever checks: the daemon could not write it then
  if (auto status = clusters.Init(copy); !status) return status.error();
  TlsStore store(registry);
  auto tls = store.Prepare(copy);
  return tls ? base::Ok() : base::Status(tls.error());
}

Server::Server(config::Config config, ServerOptions options)
    : options_(std::move(options)), config_(std::move(config)) {}

base::Status Server::Init() {
  runtime_ = std::make_unique<runtime::Runtime>(config_.runtime);
  const auto count = static_cast<uint32_t>(runtime_->size());
  registry_ = std::make_unique<metrics::Registry>(count);
  metrics_ = std::make_unique<proxy::ProxyMetrics>(*registry_);
  tls_ = std::make_unique<TlsStore>(*registry_);
  auto tls = tls_->Prepare(config_);
  if (!tls) return tls.error();
  tls_->Commit(std::move(*tls));
  limits_.Apply(config_);
  clusters_ = std::make_unique<Clusters>(*registry_, count, ClusterWaits(), &limits_);
  limits_.SetHooks({[this](const std::string& cluster) { return clusters_->UseOfEndpoints(cluster); },
                    [this](const std::string& cluster) { clusters_->ConfigureEndpoints(cluster); }});
  TakeCacheAndBounds(CacheFor(config_), config_);
  const LimitTable limits = limits_.MakePlan(config_);
  if (auto status = clusters_->Init(config_, {&limits, cache()}); !status) return status;
  std::vector<proxy::WorkerContext*> contexts;
  for (uint32_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<proxy::WorkerContext>(runtime_->worker(i), clusters_->snapshots(), *metrics_));
    workers_.back()->connection_limits = connection_limits_;
    contexts.push_back(workers_.back().get());
  }
  proxy::CallMover::Connect(contexts);
  proxy::MemoryRelief::Connect(contexts);
  if (options_.move_all_calls_for_test && count > 1) {
    for (auto& worker : workers_) worker->mover->SetModeForTest(proxy::CallMover::Mode::kAlways);
  }
  clusters_->SetWorkers(contexts);
  AddMetrics();

  std::vector<net::ListenSocket> sockets;
  for (const proxy::ListenerOptions& listener : config_.listeners) {
    auto socket = OpenSocket(listener);
    if (!socket) return socket.error();
    sockets.push_back(std::move(*socket));
  }
  runtime_->Start();
  control_ = std::thread([this] { ControlMain(); });
  for (size_t i = 0; i < sockets.size(); ++i) AddListener(config_.listeners[i], std::move(sockets[i]));

  if (!config_.admin.grpc.empty()) {
    admin::AdminSecurity security{{}, {config_.admin.roles.read, config_.admin.roles.write}};
    if (config_.admin.tls.enabled()) security.tls = TlsPathsOf(config_);
    auto admin = admin::AdminServer::Start(config_.admin.grpc, *this, std::move(security));
    if (!admin) return admin.error();
    admin_ = std::move(*admin);
    tls_->SetOthers([admin = admin_.get()] { return admin->ListCertificates(); });
    SLUICE_LOG_INFO("admin RPC on {}{}", admin_->address(), config_.admin.tls.enabled() ? " with TLS" : "");
  }
  if (!config_.admin.http.empty()) {
    auto http = admin::HttpServer::Start(config_.admin.http, *this);
    if (!http) return http.error();
    http_ = std::move(*http);
    if (const auto address = net::Address::Parse(config_.admin.http); address.ok() && !address->is_loopback()) {
      SLUICE_LOG_WARN(
          "admin.http on {}: everybody who reaches it can read metrics, names of clusters and addresses of endpoints",
          config_.admin.http);
    }
  }
  return base::Ok();
}

Server::~Server() {
  if (control_.joinable()) {
    Stop();
    control_.join();
  } else if (runtime_ != nullptr) {
    TearDown();  // Init failed before there was a control thread
  }
}

uint16_t Server::ListenerPort(size_t index) const {
  std::lock_guard lock(reload_mutex_);
  return index < listeners_.size() ? listeners_[index]->address().port() : 0;
}

std::string Server::AdminAddress() const { return admin_ ? admin_->address() : std::string(); }
uint16_t Server::HttpPort() const { return http_ ? http_->port() : 0; }

void Server::Drain(std::optional<milliseconds> timeout) {
  milliseconds limit;
  {
    std::lock_guard lock(reload_mutex_);
    limit = timeout.value_or(config_.drain_timeout);
    {
      std::lock_guard life(life_mutex_);
      if (draining_ || stop_) return;
      ready_ = false;
      draining_ = true;
      workers_to_drain_ = workers_.size();
      drain_deadline_ = std::chrono::steady_clock::now() + limit;
    }
    leaving_ = true;
    // New connections are refused by the kernel from here on; a balancer in front has seen "not ready" or sees this.
    // Workers drain when the last listener has stopped, so that no connection comes behind their back.
    auto left = std::make_shared<std::atomic<size_t>>(listeners_.size() + 1);
    auto stopped = [this, left] {
      if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) DrainWorkers();
    };
    for (auto& listener : listeners_) listener->Stop(stopped);
    stopped();
  }
  SLUICE_LOG_INFO("draining, for {} ms at most", limit.count());
  life_changed_.notify_all();
}

// From any thread, a worker's too.
void Server::DrainWorkers() {
  for (auto& context : workers_) {
    context->worker().Post([this, context = context.get()] {
      context->on_drained = [this] {
        std::lock_guard lock(life_mutex_);
        --workers_to_drain_;
        life_changed_.notify_all();
      };
      context->DrainDownstream();
    });
  }
}

void Server::Stop() {
  std::lock_guard lock(life_mutex_);
  ready_ = false;
  stop_ = true;
  life_changed_.notify_all();
}

bool Server::WaitStopped(milliseconds timeout) {
  std::unique_lock lock(life_mutex_);
  return life_changed_.wait_for(lock, timeout, [this] { return stopped_; });
}

void Server::ControlMain() {
  {
    std::unique_lock lock(life_mutex_);
    while (!life_changed_.wait_for(lock, kTlsPoll, [this] { return started_all_ && (stop_ || draining_); })) {
      lock.unlock();
      tls_->Poll(base::Clock::Steady().Now());
      lock.lock();
    }
    if (!stop_) {
      bool done = life_changed_.wait_until(lock, drain_deadline_, [this] { return stop_ || workers_to_drain_ == 0; });
      SLUICE_LOG_INFO("{}", !done ? "drain timeout: stopping" : stop_ ? "told to stop now" : "drained: stopping");
    }
    stop_ = true;
  }
  TearDown();
  std::lock_guard lock(life_mutex_);
  stopped_ = true;
  life_changed_.notify_all();
}

// Runs `fn` on each worker and returns when all have.
void Server::OnEveryWorker(const std::function<void(proxy::WorkerContext&)>& fn) {
  std::latch done(static_cast<std::ptrdiff_t>(workers_.size()));
  for (auto& context : workers_) {
    context->worker().Post([&fn, &done, context = context.get()] {
      fn(*context);
      done.count_down();
    });
  }
  done.wait();
}

// Until no call is left, for a bounded time. A worker runs a few tasks between two rounds, so this takes as many as the
// calls need.
void Server::EndCalls() {
  const auto deadline = std::chrono::steady_clock::now() + kEndCallsMax;
  for (;;) {
    std::atomic<bool> left{false};
    OnEveryWorker([&left](proxy::WorkerContext& context) {
      context.EndCalls();
      if (context.HasCalls()) left.store(true, std::memory_order_relaxed);
    });
    if (!left.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= deadline) return;
  }
}

// See the head of server.h for the order.
void Server::TearDown() {
  if (admin_ != nullptr) admin_->Shutdown(milliseconds(1000));
  http_.reset();
  {
    std::lock_guard lock(reload_mutex_);
    leaving_ = true;
    tls_->SetOthers(nullptr);
    admin_.reset();  // a reload would tell it the roles
    for (auto& listener : listeners_) listener->Stop();
  }
  if (control_.joinable()) {
    // Workers run. First the calls answer; what is left after that loses its connection, and is counted and logged.
    EndCalls();
    OnEveryWorker([](proxy::WorkerContext& context) { context.CloseAll(); });
    EndCalls();
  }
  runtime_->Shutdown();
  std::lock_guard lock(reload_mutex_);
  listeners_.clear();
  if (clusters_ != nullptr) clusters_->SetWorkers({});
  workers_.clear();
  base::MemoryBudget::SetLimit(0);  // the next server of this process sets its own
}

base::Status Server::ReopenLogs() {
  auto log = ReopenLog();
  auto access = clusters_->access_log()->Reopen();
  return !log ? log : access;
}

admin::ServerView Server::DescribeServer() {
  admin::ServerView view;
  view.version = kVersion;
  view.config_file = options_.config_file;
  view.pid = static_cast<uint64_t>(::getpid());
  view.uptime_seconds = static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - started_).count());
  view.workers = runtime_->size();
  view.downstream_connections = static_cast<uint64_t>(std::max<int64_t>(0, metrics_->downstream_connections->Value()));
  view.calls_in_flight = static_cast<uint64_t>(std::max<int64_t>(0, metrics_->calls_in_flight->Value()));
  std::lock_guard lock(life_mutex_);
  view.ready = ready_;
  view.draining = draining_;
  return view;
}

base::Result<std::vector<admin::ClusterView>> Server::ListClusters(std::string_view name) {
  return clusters_->List(name);
}

base::Result<admin::ChangeResult> Server::ChangeEndpoints(const admin::EndpointChange& change) {
  return clusters_->Change(change);
}

std::vector<admin::LimitView> Server::ListLimits() { return limits_.List(); }

base::Result<admin::LimitView> Server::ChangeLimit(const admin::LimitChange& change) { return limits_.Change(change); }

base::Status Server::SetLogLevel(std::string_view level) {
  auto parsed = ParseLogLevel(level);
  if (!parsed) return parsed.error();
  server::SetLogLevel(*parsed);
  return base::Ok();
}

std::string Server::LogLevel() { return std::string(ToString(CurrentLogLevel())); }
std::string Server::RenderMetrics() { return registry_->RenderPrometheus(); }

bool Server::Ready() {
  std::lock_guard lock(life_mutex_);
  return ready_;
}

}  // namespace sluice::server
