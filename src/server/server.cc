#include "server/server.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <latch>

#include "admin/admin_server.h"
#include "admin/http_server.h"
#include "base/log.h"
#include "base/memory_budget.h"
#include "base/random.h"
#include "proxy/access_log/access_log.h"
#include "proxy/call/call.h"
#include "proxy/handoff/handoff.h"
#include "runtime/runtime.h"
#include "server/certificate_view.h"
#include "server/handover_state.h"
#include "server/insight_view.h"
#include "server/leaving.h"
#include "server/log_setup.h"
#include "server/path_check.h"
#include "server/processes.h"
#include "server/version.h"

namespace sluice::server {

using std::chrono::milliseconds;

// How often the files of TLS and of gates are looked at.
constexpr milliseconds kTlsPoll{1000};
// Calls in flight at a stop have this long to answer; they need a turn of their worker's loop.
constexpr milliseconds kEndCallsMax{2000};
// The last lines of the access log have this long to be taken by a pipe.
constexpr milliseconds kCloseLogMax{1000};
// What is announced has this long to be taken back at a stop.
constexpr milliseconds kWithdrawWaitMax{1500};

base::Result<std::unique_ptr<Server>> Server::Start(config::Config config, ServerOptions options) {
  std::unique_ptr<Server> server(new Server(std::move(config), std::move(options)));
  base::Status status = server->Init();
  server->life_.SetStarted(status.ok());
  if (!status) return status.error();  // the destructor takes down what is up
  server->options_.supervisor->Ready();
  return server;
}

Server::Server(config::Config config, ServerOptions options)
    : options_(std::move(options)),
      faults_(base::Clock::Steady(), [this](const auto& faults) { PutFaults(faults); }),
      config_(std::move(config)) {}

base::Status Server::Init() {
  runtime_ = std::make_unique<runtime::Runtime>(config_.runtime);
  const auto count = static_cast<uint32_t>(runtime_->size());
  // Ids of traces and requests are made of it, and must differ from those of every other process.
  for (uint32_t i = 0; i < count; ++i) runtime_->worker(i).random() = base::Random(base::Random::SystemSeed());
  registry_ = std::make_unique<metrics::Registry>(count);
  metrics_ = std::make_unique<proxy::ProxyMetrics>(*registry_);
  tls_ = std::make_unique<TlsReloader>(*registry_);
  auto tls = tls_->Prepare(config_);
  if (!tls) return tls.error();
  tls_->Commit(std::move(*tls));
  if (auto status = CheckStateFile(config_.state_file); !status) return status;
  for (const std::string& expired : tls_->Expired()) SLUICE_LOG_ERROR("{}", expired);
  for (const TlsReloader::Ending& ending : tls_->EndingSoon()) SLUICE_LOG_WARN("{}", ending.text);
  limits_.Apply(config_);
  std::optional<HandedLists> handed;
  if (options_.predecessor != nullptr) {
    auto met = MeetPredecessor();
    if (!met) return met.error();
    handed = std::move(*met);
  }
  clusters_ = std::make_unique<Clusters>(*registry_, count, ClusterWaits(), &limits_, FirstListVersion());
  limits_.SetHooks({[this](const std::string& cluster) { return clusters_->UseOfEndpoints(cluster); },
                    [this](const std::string& cluster) { clusters_->ConfigureEndpoints(cluster); }});
  cache_ = std::make_unique<CacheOwner>(*registry_);
  TakeCacheAndBounds(cache_->CacheFor(config_), config_);
  const LimitTable limits = limits_.MakePlan(config_);
  auto tracer = traces_.TracerFor(config_.tracing, count);
  gates_ = std::make_unique<GateSet>(*registry_, count, WallSeconds);
  auto gates = gates_->Prepare(config_);
  if (!gates) return gates.error();
  const SnapshotInputs inputs{&limits, cache_->cache(), tracer, &gates->table};
  if (auto status = clusters_->Init(config_, inputs, handed ? &handed->lists : nullptr); !status) return status;
  processes_ = std::make_unique<Processes>(limits_, *clusters_, *registry_);
  giving_ = std::make_unique<Leaving>(limits_, *clusters_, *registry_);
  gates_->Commit(std::move(*gates));
  traces_.Take(std::move(tracer));
  discovery_ = std::make_unique<DiscoverySet>(*runtime_, *clusters_, *registry_);
  announce_ = std::make_unique<AnnounceSet>(*runtime_, *registry_, [this] { return Ready(); });
  std::vector<proxy::WorkerFront*> fronts;
  std::vector<proxy::CallContext*> contexts;
  for (uint32_t i = 0; i < count; ++i) {
    workers_.push_back(std::make_unique<proxy::WorkerFront>(runtime_->worker(i), clusters_->snapshots(), *metrics_));
    workers_.back()->connection_limits = connection_limits_;
    fronts.push_back(workers_.back().get());
    contexts.push_back(&workers_.back()->context);
  }
  proxy::WorkerFront::Connect(fronts);
  if (options_.move_all_calls_for_test && count > 1) {
    for (auto& worker : workers_) worker->handoff->SetModeForTest(proxy::Handoff::Mode::kAlways);
  }
  clusters_->SetWorkers(contexts);
  listeners_.SetWorkers(fronts);
  listeners_.SetSupervisor(*options_.supervisor);
  listeners_.SetTenure(sockets_ours_);
  AddMetrics();

  auto sockets = listeners_.Prepare(config_.listeners);
  if (!sockets) return sockets.error();
  if (auto status = options_.supervisor->EndSearch(); !status) return status;
  runtime_->Start();
  discovery_->Apply(config_);
  announce_->Apply(config_.announce);
  health_ = std::make_unique<HealthTask>(*runtime_, clusters_->snapshots(), contexts,
                                         [this](const std::string& cluster) { discovery_->Hurry(cluster); });
  health_->Start();
  control_ = std::thread([this] {
    life_.WaitForEnd(kTlsPoll, [this] {
      tls_->Poll(base::Clock::Steady().Now());
      gates_->Poll();
      faults_.Poll();
    });
    TearDown();
    life_.SetStopped();
  });
  // The predecessor gives away its part of everything only when all that can fail is done.
  if (options_.predecessor != nullptr) {
    if (auto status = TakeOver(); !status) return status;
  }
  if (auto status = StartAdmin(); !status) return status;
  {
    std::lock_guard lock(reload_mutex_);  // Stop, Drain
    BeginServing();
    listeners_.Apply(config_.listeners, std::move(*sockets));
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
  return listeners_.port(index);
}

std::string Server::AdminAddress() const { return admin_ ? admin_->address() : std::string(); }
uint16_t Server::HttpPort() const { return http_ ? http_->port() : 0; }

base::Status Server::Drain(std::optional<milliseconds> timeout, std::optional<milliseconds> delay) {
  std::lock_guard lock(reload_mutex_);
  const milliseconds limit = timeout.value_or(config_.drain_timeout);
  const milliseconds wait = delay.value_or(config_.drain_delay);
  if (wait.count() > 0 && wait >= limit) {
    return base::MakeError(base::ErrorKind::kInvalidArgument,
                           fmt::format("the delay of {} ms is not below the drain's {} ms, of which it is a part",
                                       wait.count(), limit.count()));
  }
  if (left_.load(std::memory_order_relaxed)) {
    LeaveWithin(limit);
    return base::Ok();
  }
  // Streams in processes that this one has replaced are the daemon's, too.
  const bool waits = processes_->size() > 0;
  if (!life_.BeginDrain(limit, workers_.size() + (waits ? 1 : 0))) return base::Ok();
  if (waits) {
    waits_for_processes_.store(true, std::memory_order_relaxed);
    life_.Call([this] { StepProcesses(); });  // the last of them may just have ended
  }
  TellProcessesToEnd(limit);
  leaving_ = true;
  options_.supervisor->Stopping();
  SLUICE_LOG_INFO("draining, for {} ms at most{}", limit.count(),
                  wait.count() > 0 ? fmt::format("; new calls are accepted for {} ms", wait.count()) : "");
  const bool announced = !announce_->empty();
  if (!announced && wait.count() == 0) {
    StopListening();
    return base::Ok();
  }
  // Peers that found this process, and balancers in front of it, go elsewhere before it refuses them. The mutex is not
  // for workers, and helper threads may all be busy: the control thread takes it.
  const auto left = std::make_shared<std::atomic<int>>(announced ? 2 : 1);
  const auto step = [this, left] {
    if (left->fetch_sub(1, std::memory_order_acq_rel) > 1) return;
    std::lock_guard stop_lock(reload_mutex_);
    StopListening();
  };
  life_.Call(step, wait);
  if (announced) announce_->Withdraw([this, step] { life_.Call(step); });
  return base::Ok();
}

// Under reload_mutex_.
void Server::StopListening() {
  // New connections are refused by the kernel from here on; a balancer in front has seen "not ready" or sees this.
  // Workers drain when the last listener has stopped, so that no connection comes behind their back.
  listeners_.StopAll([this] { DrainWorkers(milliseconds(0)); });
}

// Also what a drain has begun. Bounded by the announcers, and here in case one of them is not turned.
void Server::WithdrawAndWait() {
  auto gone = std::make_shared<std::promise<void>>();
  announce_->Withdraw([gone] { gone->set_value(); });
  gone->get_future().wait_for(kWithdrawWaitMax);
}

// From any thread, a worker's too.
void Server::DrainWorkers(milliseconds spread) {
  for (auto& front : workers_) {
    front->worker().Post([this, front = front.get(), spread] {
      front->on_drained = [this] { life_.PartDrained(); };
      if (left_.load(std::memory_order_relaxed))
        front->LeaveDownstream(spread);
      else
        front->DrainDownstream();
    });
  }
}

// Runs `fn` on each worker and returns when all have.
void Server::PutFaults(const std::shared_ptr<const proxy::FaultTable>& faults) {
  OnEveryWorker([&](proxy::WorkerFront& front) { front.context.faults = faults; });
}

void Server::OnEveryWorker(const std::function<void(proxy::WorkerFront&)>& fn) {
  std::latch done(static_cast<std::ptrdiff_t>(workers_.size()));
  for (auto& front : workers_) {
    front->worker().Post([&fn, &done, front = front.get()] {
      fn(*front);
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
    OnEveryWorker([&left](proxy::WorkerFront& front) {
      front.EndCalls();
      if (front.HasCalls()) left.store(true, std::memory_order_relaxed);
    });
    if (!left.load(std::memory_order_relaxed) || std::chrono::steady_clock::now() >= deadline) return;
  }
}

// All calls have ended, so that nothing is written any more. A file that takes too little, a pipe without a reader,
// must not keep the process from its end.
void Server::CloseAccessLog() {
  const std::shared_ptr<proxy::AccessLog> log = clusters_->access_log();
  if (log != nullptr && !log->Close(kCloseLogMax))
    SLUICE_LOG_ERROR("access log: a write does not come back; its last lines may be lost");
  proxy::AccessLog::Flush(kCloseLogMax);  // those that a reload has put out of use
}

// See the head of server.h for the order.
void Server::TearDown() {
  if (admin_ != nullptr) admin_->Shutdown(milliseconds(1000));
  http_.reset();
  {
    std::lock_guard lock(reload_mutex_);
    leaving_ = true;
    admin_.reset();  // a reload would tell it the roles
    listeners_.StopAll([] {});
  }
  if (announce_ != nullptr && !sockets_ours_->load(std::memory_order_relaxed)) announce_->Leave();
  if (announce_ != nullptr && control_.joinable()) WithdrawAndWait();
  if (discovery_ != nullptr) discovery_->Stop();
  if (control_.joinable()) {
    // Workers run. First the calls answer; what is left after that loses its connection, and is counted and logged.
    EndCalls();
    OnEveryWorker([](proxy::WorkerFront& front) { front.CloseAll(); });
    EndCalls();
  }
  runtime_->Shutdown();
  if (clusters_ != nullptr) CloseAccessLog();
  if (giving_ != nullptr) giving_->Finish();
  traces_.Stop();
  std::lock_guard lock(reload_mutex_);
  listeners_.Clear();
  if (clusters_ != nullptr) clusters_->SetWorkers({});
  workers_.clear();
  base::MemoryBudget::SetLimit(0);  // the next server of this process sets its own
}

std::vector<admin::ReasonCount> Server::ListReasons() {
  std::vector<admin::ReasonCount> out;
  for (size_t kind = 0; kind < metrics_->errors.size(); ++kind) {
    if (const uint64_t count = metrics_->errors[kind]->Value(); count != 0)
      out.push_back({base::Reason(static_cast<base::ErrorKind>(kind)), count});
  }
  return out;
}

base::Result<std::vector<admin::ClusterView>> Server::ListClusters(std::string_view name) {
  auto clusters = clusters_->List(name);
  if (!clusters.ok()) return clusters;
  for (admin::ClusterView& cluster : *clusters) cluster.discovery = discovery_->Describe(cluster.name);
  return clusters;
}

admin::FailedCallsView Server::ListFailedCalls() {
  return MakeFailedCallsView(*clusters_->insight(), base::Clock::Steady().Now());
}

std::vector<admin::HotKeysView> Server::ListHotKeys() {
  return MakeHotKeysView(*clusters_->insight(), clusters_->States(), base::Clock::Steady().Now());
}

base::Result<admin::ChangeResult> Server::ChangeEndpoints(const upstream::EndpointChange& change) {
  auto result = clusters_->Change(change);
  if (result.ok() && !change.preview) discovery_->Again(change.cluster);
  return result;
}

void Server::Stop() {
  TellProcessesToEnd(milliseconds(0));
  life_.Stop();
}

base::Status Server::ReopenLogs() {
  if (processes_ != nullptr) processes_->TellToReopenLogs();
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
  view.ready = Ready();
  view.draining = life_.draining();
  return view;
}

void Server::TakeCacheAndBounds(std::shared_ptr<proxy::ResponseCache> cache, const config::Config& config) {
  // Cached messages are blocks too, and have a bound of their own.
  const uint64_t cached = cache != nullptr ? config.cache.capacity_bytes : 0;
  cache_->Take(std::move(cache), config);
  connection_limits_->SetMax(config.connections_max);
  base::MemoryBudget::SetLimit(static_cast<int64_t>(config.buffered_bytes_max + cached));
}

base::Status Server::SetLogLevel(std::string_view level) {
  auto parsed = ParseLogLevel(level);
  if (!parsed) return parsed.error();
  server::SetLogLevel(*parsed);
  return base::Ok();
}

std::string Server::LogLevel() { return std::string(ToString(CurrentLogLevel())); }

}  // namespace sluice::server
