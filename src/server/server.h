// Server: the composition root. Builds everything from a Config, serves, reloads, drains and stops. A test starts it
// in-process; the daemon adds flags and signals.
//
// Each part of its state is a class: Clusters (what calls read), LimitSet, TlsReloader, CacheOwner, Listeners,
// LifeCycle (what the control thread waits for), DiscoverySet and AnnounceSet (what it hears and tells in control
// planes).
//
// Start order: first what can fail and leaves nothing behind (state file, access log, listen sockets), then workers,
// listeners, admin. Stop order, by the control thread: 1. admin and HTTP; 2. listeners; 3. each worker answers its
// calls, then closes its connections; 4. the runtime runs or destroys what is left and joins; 5. the access log writes
// its last lines, and the last spans are sent; 6. everything else in reverse of construction.
//
// Thread safety: every public function from any thread but a worker's.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "admin/backend.h"
#include "base/error.h"
#include "config/config.h"
#include "handover/program.h"
#include "proxy/downstream/worker_front.h"
#include "server/announce_set.h"
#include "server/cache_owner.h"
#include "server/change_gate.h"
#include "server/clusters.h"
#include "server/discovery_set.h"
#include "server/fault_set.h"
#include "server/gate_set.h"
#include "server/health_task.h"
#include "server/life_cycle.h"
#include "server/limit_set.h"
#include "server/listeners.h"
#include "server/supervisor.h"
#include "server/tls_reloader.h"
#include "server/trace_set.h"

namespace sluice::admin {
class AdminServer;
class HttpServer;
}  // namespace sluice::admin
namespace sluice::handover {
class Channel;
class Predecessor;
class Successor;
}  // namespace sluice::handover
namespace sluice::runtime {
class Runtime;
}

namespace sluice::server {

struct HandedLists;
class Leaving;
class Processes;

struct ServerOptions {
  std::string config_file;  // what Reload reads again; empty: Reload is refused
  std::shared_ptr<Supervisor> supervisor = std::make_shared<Supervisor>();  // not null
  handover::Program program{};                                              // for Upgrade; without a path it is refused
  std::shared_ptr<handover::Predecessor> predecessor{};                     // this process takes over from it; or null
  // Every call moves to another worker, if there are several, instead of when that pays.
  bool move_all_calls_for_test = false;
};

class Server final : private admin::Backend {
 public:
  // Everything is listening when this returns. Errors name what could not be had; nothing is left behind.
  static base::Result<std::unique_ptr<Server>> Start(config::Config config, ServerOptions options);
  // What Start would find wrong with `config`, without listening: ports may be held by the process that runs now; and
  // certificates that have expired, with which Start begins nevertheless. `notes`: what it would do otherwise than
  // meant; `ending`: certificates that end soon. Makes and changes no file. Blocks.
  static base::Status Check(const config::Config& config, std::vector<std::string>* notes = nullptr,
                            std::vector<TlsReloader::Ending>* ending = nullptr);
  // Stops, if that has not been done.
  ~Server() override;

  uint16_t ListenerPort(size_t index) const;
  // Where the admin RPC listens ("unix:/path", "127.0.0.1:1234"); empty without one.
  std::string AdminAddress() const;
  // 0 without an HTTP port.
  uint16_t HttpPort() const;
  admin::Backend& backend() { return *this; }
  const metrics::Registry& registry() const { return *registry_; }

  // Not ready any more, announcements withdrawn; when `delay` has passed, no new connections, and GOAWAY to every
  // client; stop when their calls are done or after `timeout`, of which the delay is a part. nullopt: the configured
  // ones. Returns at once.
  base::Status Drain(std::optional<std::chrono::milliseconds> timeout,
                     std::optional<std::chrono::milliseconds> delay) override;
  // Stops now. Returns at once.
  void Stop() override;
  // True once stopped.
  bool WaitStopped(std::chrono::milliseconds timeout) { return life_.WaitStopped(timeout); }
  admin::ReloadResult Reload() override;
  base::Result<admin::UpgradeResult> Upgrade(bool only_if_changed) override;
  // The same without the result, which is in the log; returns at once.
  void BeginUpgrade();
  std::optional<admin::ReloadView> DescribeReload() override;
  admin::ConfigView DescribeConfig(bool from_file) override;
  // Opens log files anew (SIGUSR1). The first error, if any.
  base::Status ReopenLogs();

 private:
  Server(config::Config config, ServerOptions options);
  base::Status Init();

  // admin::Backend
  admin::ServerView DescribeServer() override;
  std::vector<admin::ProcessView> ListProcesses() override;
  base::Result<std::shared_ptr<const void>> BeginChange() override { return changes_.Enter(); }
  base::Result<std::vector<admin::ClusterView>> ListClusters(std::string_view name) override;
  base::Result<admin::ChangeResult> ChangeEndpoints(const upstream::EndpointChange& change) override;
  base::Status SetEndpointHealth(const admin::HealthOrder& order) override { return clusters_->SetHealth(order); }
  std::vector<admin::LimitView> ListLimits() override { return limits_.List(); }
  base::Result<admin::LimitView> ChangeLimit(const admin::LimitChange& change) override {
    return limits_.Change(change);
  }
  std::vector<admin::FaultView> ListFaults() override { return faults_.List(); }
  base::Result<admin::FaultView> AddFault(const admin::FaultOrder& order) override {
    return faults_.Add(order, clusters_->RouteOf(order.target));
  }
  base::Status RemoveFault(uint64_t id) override { return faults_.Remove(id); }
  std::vector<admin::ClusterTraffic> ListTraffic() override { return clusters_->Traffic(); }
  std::vector<admin::ReasonCount> ListReasons() override;
  admin::FailedCallsView ListFailedCalls() override;
  std::vector<admin::HotKeysView> ListHotKeys() override;
  std::vector<admin::RouteView> ListRoutes() override;
  base::Result<admin::CallExplanation> ExplainCall(const admin::CallQuestion& question) override;
  admin::CacheView DescribeCache() override { return cache_->Describe(); }
  uint64_t PurgeCache(const proxy::CachePurge& purge) override { return cache_->Purge(purge); }
  std::vector<admin::CertificateView> ListCertificates() override { return tls_->List(); }
  std::optional<discovery::XdsView> DescribeXds() override { return discovery_->DescribeXds(); }
  base::Status SetLogLevel(std::string_view level) override;
  std::string LogLevel() override;
  std::string RenderMetrics() override { return registry_->RenderPrometheus(); }
  std::string RenderOpenMetrics() override;
  bool Ready() override { return life_.ready() && discovery_->ready(); }

  // Under reload_mutex_. `changes`: what it has changed.
  admin::ReloadResult ReloadLocked(std::vector<std::string>* changes);
  void TakeCacheAndBounds(std::shared_ptr<proxy::ResponseCache> cache, const config::Config& config);
  std::string AdminGrpcAddress() const;
  base::Status StartAdmin();
  // The socket of the predecessor's admin RPC, or HTTP port, where that has listened at `address`.
  std::optional<net::ListenSocket> AdoptAdmin(bool rpc, const std::string& address);

  // server_upgrade.cc: this process is replaced. All but the first on the control thread.
  using Upgraded = base::Result<admin::UpgradeResult>;
  std::shared_ptr<std::promise<Upgraded>> OrderUpgrade();
  Upgraded UpgradeNow();
  Upgraded MeetSuccessor(const handover::Program& program, std::vector<metrics::Counted>* counts,
                         handover::Channel* channel);
  Upgraded Converse(handover::Successor& successor, std::vector<metrics::Counted>* counts);
  base::Status SendBegin(handover::Channel& channel);
  base::Status SendTake(handover::Channel& channel, std::vector<metrics::Counted>* counts);
  void LeaveTo(handover::Channel channel, const admin::UpgradeResult& by, const std::vector<metrics::Counted>& counts);
  // 0: and no connection will come either.
  uint64_t CountMayBegin();
  // What still runs has `limit`.
  void LeaveWithin(std::chrono::milliseconds limit);
  void StepLeaving();
  // server_takeover.cc: this process replaces another one.
  base::Result<HandedLists> MeetPredecessor();
  base::Status TakeOver();
  void BeginServing();
  void StepProcesses();
  void TellProcessesToEnd(std::chrono::milliseconds within);
  void AddMetrics();
  void StopListening();
  void DrainWorkers(std::chrono::milliseconds spread);
  void WithdrawAndWait();
  void CloseAccessLog();
  void EndCalls();
  void PutFaults(const std::shared_ptr<const proxy::FaultTable>& faults);
  void OnEveryWorker(const std::function<void(proxy::WorkerFront&)>& fn);
  void TearDown();

  const ServerOptions options_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<metrics::Registry> registry_;
  LimitSet limits_;
  std::unique_ptr<TlsReloader> tls_;
  std::unique_ptr<Clusters> clusters_;
  TraceSet traces_;
  std::unique_ptr<GateSet> gates_;
  std::unique_ptr<CacheOwner> cache_;
  std::unique_ptr<proxy::ProxyMetrics> metrics_;
  std::vector<std::unique_ptr<proxy::WorkerFront>> workers_;
  FaultSet faults_;
  std::unique_ptr<HealthTask> health_;
  std::unique_ptr<DiscoverySet> discovery_;
  std::unique_ptr<AnnounceSet> announce_;
  const std::shared_ptr<proxy::ConnectionLimits> connection_limits_ = std::make_shared<proxy::ConnectionLimits>(1);
  metrics::Counter* reloads_ok_ = nullptr;
  metrics::Counter* reloads_failed_ = nullptr;

  // One reload at a time; guards config_ and listeners_.
  mutable std::mutex reload_mutex_;
  config::Config config_;
  Listeners listeners_;
  struct LastReload {
    base::TimePoint at;
    admin::ReloadResult result;
    std::vector<std::string> changes;
  };
  std::mutex last_reload_mutex_;  // not held while anything else is waited for
  std::optional<LastReload> last_reload_;
  bool leaving_ = false;    // draining or stopping: no reload any more
  bool upgrading_ = false;  // another process is about to take over: no reload either

  // A handover (docs/handover.md). The sockets are this process's: not before it serves, nor once it is replaced.
  const std::shared_ptr<std::atomic<bool>> sockets_ours_ = std::make_shared<std::atomic<bool>>(true);
  ChangeGate changes_;
  uint32_t generation_ = 1;
  base::TimePoint serving_since_{};
  std::unique_ptr<Processes> processes_;          // that this one has replaced
  std::unique_ptr<Leaving> giving_;               // to the process that replaces this one
  std::atomic<bool> left_{false};                 // it has
  std::atomic<bool> waits_for_processes_{false};  // a drain does: the control thread ends that
  base::TimePoint left_at_{};                     // the control thread's, as the next three
  pid_t successor_ = 0;
  uint64_t may_begin_ = 0;            // connections on which a client may begin a call
  base::TimePoint count_again_at_{};  // not before

  std::unique_ptr<admin::AdminServer> admin_;
  std::unique_ptr<admin::HttpServer> http_;

  LifeCycle life_;
  std::thread control_;  // waits for the end, and polls the files of TLS and of gates meanwhile
};

}  // namespace sluice::server
