// FakeBackend: two clusters and a few limits in memory, and a record of what was asked.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <mutex>

#include "admin/backend.h"

namespace sluice::admin {

class FakeBackend final : public Backend {
 public:
  FakeBackend() {
    using Source = upstream::ListSource;
    using State = upstream::EndpointState;
    using Link = upstream::EndpointLink;
    ClusterView users{"users", "ring_hash", 7, 0xabcdef, Source::kConfig, {}};
    users.endpoints.push_back({"a", "10.0.0.1:50051", 1, 0.25, State::kActive, Link::kConnected, 3, 100, 2, 4});
    users.endpoints.push_back({"b", "10.0.0.2:50051", 3, 0.75, State::kActive, Link::kIdle, 0, 50, 0, 0});
    users.endpoints.push_back({"old", "10.0.0.3:50051", 1, 0, State::kRemoved, Link::kConnected, 1, 9, 0, 1});
    ClusterView odd{"<b>&\"odd'", "round_robin", 1, 1, Source::kRpc, {}};
    odd.endpoints.push_back({"x\x1b[31m", "unix:/x", 1, 0, State::kDraining, Link::kBackoff, 0, 0, 0, 0});
    clusters_ = {users, odd};
    LimitView process, rate, clients;
    process.name = "process/concurrency";
    process.max = 100;
    process.queue_max = 1024;
    process.waiting = 2;
    process.in_use = 100;
    rate.name = "cluster/users/rate";
    rate.rate = 0.5;
    rate.burst = 10;
    rate.queue_max = 5;
    clients.name = "route/r/client_rate";
    clients.burst = 100;
    clients.capped = true;
    clients.queue_max = 1;
    clients.keys = 7;
    limits_ = {process, rate, clients};
  }

  ServerView DescribeServer() override {
    return {"1.2.3", "/etc/sluice.yaml", 4242, 3'725, 2, ready_, drains_ > 0, 5, 6};
  }

  base::Result<std::vector<ClusterView>> ListClusters(std::string_view name) override {
    std::lock_guard lock(mutex_);
    if (list_busy_) return base::MakeError(base::ErrorKind::kBusy, "cluster users is busy: held by reload");
    if (name.empty()) return clusters_;
    for (const ClusterView& cluster : clusters_) {
      if (cluster.name == name) return std::vector<ClusterView>{cluster};
    }
    return base::MakeError(base::ErrorKind::kNotFound, "no cluster " + std::string(name));
  }

  base::Result<ChangeResult> ChangeEndpoints(const upstream::EndpointChange& change) override {
    std::lock_guard lock(mutex_);
    changes_.push_back(change);
    if (change.cluster == "broken") return base::MakeError(base::ErrorKind::kIo, "cannot write the state file");
    if (change.cluster != "users") return base::MakeError(base::ErrorKind::kNotFound, "no cluster " + change.cluster);
    if (change.expected_version && *change.expected_version != version_) {
      return base::MakeError(base::ErrorKind::kConflict, "the list is at version " + std::to_string(version_));
    }
    if (!change.preview) ++version_;
    return ChangeResult{change.preview ? version_ + 1 : version_, 0x1234, moved_share_};
  }

  void set_moved_share(double share) {
    std::lock_guard lock(mutex_);
    moved_share_ = share;
  }

  base::Status SetEndpointHealth(const HealthOrder& order) override {
    std::lock_guard lock(mutex_);
    orders_.push_back(order);
    if (order.endpoint == "last")
      return base::MakeError(base::ErrorKind::kInvalidArgument, "endpoint last is the last one in rotation");
    return order.cluster == "users" ? base::Ok()
                                    : base::MakeError(base::ErrorKind::kNotFound, "no cluster " + order.cluster);
  }

  std::vector<LimitView> ListLimits() override {
    std::lock_guard lock(mutex_);
    return limits_;
  }

  std::vector<ClusterTraffic> ListTraffic() override {
    std::lock_guard lock(mutex_);
    return traffic_;
  }
  std::vector<ReasonCount> ListReasons() override { return {{"upstream_unavailable", 12}}; }

  base::Result<LimitView> ChangeLimit(const LimitChange& change) override {
    std::lock_guard lock(mutex_);
    limit_changes_.push_back(change);
    if (change.name == "busy") return base::MakeError(busy_, "a reload holds it");
    for (LimitView& limit : limits_) {
      if (limit.name != change.name) continue;
      if (change.rate) limit.rate = *change.rate;
      if (change.burst) limit.burst = *change.burst;
      if (change.max) limit.max = *change.max;
      if (change.queue_max) limit.queue_max = *change.queue_max;
      if (change.queue_time) limit.queue_time = *change.queue_time;
      limit.overridden = !change.reset;
      return limit;
    }
    return base::MakeError(base::ErrorKind::kNotFound, "no limit " + change.name);
  }

  std::vector<FaultView> ListFaults() override {
    std::lock_guard lock(mutex_);
    return faults_;
  }
  base::Result<FaultView> AddFault(const FaultOrder& order) override {
    std::lock_guard lock(mutex_);
    if (order.target == "unknown") return base::MakeError(base::ErrorKind::kNotFound, "no route is named unknown");
    FaultView view;
    view.id = faults_.size() + 1;
    (order.target.find('/') == std::string::npos ? view.options.route : view.options.method) = order.target;
    view.options.delay = order.delay;
    view.options.abort = order.abort;
    view.options.reset_after = order.reset_after;
    view.options.percent = order.percent;
    view.left = order.time;
    faults_.push_back(view);
    return view;
  }
  base::Status RemoveFault(uint64_t id) override {
    std::lock_guard lock(mutex_);
    if (std::erase_if(faults_, [id](const FaultView& fault) { return fault.id == id; }) > 0) return base::Ok();
    return base::MakeError(base::ErrorKind::kNotFound, "no fault " + std::to_string(id) + ", or it has ended");
  }

  FailedCallsView ListFailedCalls() override {
    std::lock_guard lock(mutex_);
    return failed_calls_;
  }
  void set_failed_calls(FailedCallsView view) {
    std::lock_guard lock(mutex_);
    failed_calls_ = std::move(view);
  }
  std::vector<HotKeysView> ListHotKeys() override {
    std::lock_guard lock(mutex_);
    return hot_keys_;
  }
  void set_hot_keys(std::vector<HotKeysView> keys) {
    std::lock_guard lock(mutex_);
    hot_keys_ = std::move(keys);
  }

  std::vector<RouteView> ListRoutes() override {
    std::lock_guard lock(mutex_);
    return routes_;
  }
  void set_routes(std::vector<RouteView> routes) {
    std::lock_guard lock(mutex_);
    routes_ = std::move(routes);
  }
  base::Result<CallExplanation> ExplainCall(const CallQuestion& question) override {
    std::lock_guard lock(mutex_);
    questions_.push_back(question);
    if (question.listener == "unknown")
      return base::MakeError(base::ErrorKind::kNotFound, "no listener unknown; there is in");
    return explanation_;
  }
  void set_explanation(CallExplanation explanation) {
    std::lock_guard lock(mutex_);
    explanation_ = std::move(explanation);
  }
  std::vector<CallQuestion> questions() {
    std::lock_guard lock(mutex_);
    return questions_;
  }

  CacheView DescribeCache() override {
    std::lock_guard lock(mutex_);
    return cache_;
  }

  uint64_t PurgeCache(const proxy::CachePurge& purge) override {
    std::lock_guard lock(mutex_);
    purges_.push_back(purge);
    return 3;
  }

  ConfigView DescribeConfig(bool from_file) override {
    std::lock_guard lock(mutex_);
    return from_file ? file_config_ : running_config_;
  }

  std::optional<discovery::XdsView> DescribeXds() override {
    std::lock_guard lock(mutex_);
    return xds_;
  }

  std::vector<CertificateView> ListCertificates() override {
    std::lock_guard lock(mutex_);
    return certificates_;
  }

  ReloadResult Reload() override {
    std::lock_guard lock(mutex_);
    return reload_;
  }

  std::optional<ReloadView> DescribeReload() override {
    std::lock_guard lock(mutex_);
    return last_reload_;
  }

  base::Status SetLogLevel(std::string_view level) override {
    std::lock_guard lock(mutex_);
    if (level != "debug" && level != "info") {
      return base::MakeError(base::ErrorKind::kInvalidArgument, "level must be debug or info");
    }
    level_ = level;
    return base::Ok();
  }

  std::string LogLevel() override {
    std::lock_guard lock(mutex_);
    return level_;
  }

  base::Status Drain(std::optional<std::chrono::milliseconds> timeout,
                     std::optional<std::chrono::milliseconds> delay) override {
    std::lock_guard lock(mutex_);
    if (timeout && delay && *delay > *timeout)
      return base::MakeError(base::ErrorKind::kInvalidArgument, "the delay is too long");
    drain_timeout_ = timeout;
    drain_delay_ = delay;
    ++drains_;
    ready_ = false;
    return base::Ok();
  }

  void Stop() override { ++stops_; }
  std::string RenderMetrics() override { return "# HELP x X.\n# TYPE x counter\nx 1\n"; }
  std::string RenderOpenMetrics() override { return "# HELP x X.\n# TYPE x unknown\nx 1\n# EOF\n"; }
  bool Ready() override { return ready_; }

  void set_reload(ReloadResult result) {
    std::lock_guard lock(mutex_);
    reload_ = std::move(result);
  }
  std::optional<std::chrono::milliseconds> drain_timeout() {
    std::lock_guard lock(mutex_);
    return drain_timeout_;
  }
  std::optional<std::chrono::milliseconds> drain_delay() {
    std::lock_guard lock(mutex_);
    return drain_delay_;
  }
  upstream::EndpointChange last_change() {
    std::lock_guard lock(mutex_);
    return changes_.empty() ? upstream::EndpointChange{} : changes_.back();
  }
  std::optional<LimitChange> last_limit_change() {
    std::lock_guard lock(mutex_);
    return limit_changes_.empty() ? std::nullopt : std::optional(limit_changes_.back());
  }
  std::optional<proxy::CachePurge> last_purge() {
    std::lock_guard lock(mutex_);
    return purges_.empty() ? std::nullopt : std::optional(purges_.back());
  }
  void set_certificates(std::vector<CertificateView> certificates) {
    std::lock_guard lock(mutex_);
    certificates_ = std::move(certificates);
  }
  void set_xds(std::optional<discovery::XdsView> view) {
    std::lock_guard lock(mutex_);
    xds_ = std::move(view);
  }
  // One resource of each kind and state.
  static discovery::XdsView Xds() {
    using State = discovery::XdsResourceState;
    const std::string cluster = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
    const std::string list = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
    discovery::XdsView view;
    view.node.id = "node-1";
    view.node.zone = "z";
    view.servers = {"a:1", "b:2"};
    view.server = 1;
    view.stream = discovery::AdsStreamState::kConnected;
    const auto bytes = std::make_shared<const std::string>("\x0a\x01u");
    view.resources = {{cluster, "users", State::kAcked, "7", "", "", "", std::chrono::seconds(65), std::nullopt, bytes},
                      {cluster, "gone", State::kDoesNotExist, "", "", "", "", std::nullopt, std::nullopt, nullptr},
                      {list, "new", State::kRequested, "", "", "", "", std::nullopt, std::nullopt, nullptr},
                      {list, "users", State::kNacked, "3", "endpoints[0].priority: 9; allowed: [0, 7]", "4",
                       "localities skipped: 1", std::chrono::seconds(9), std::chrono::milliseconds(2500), bytes}};
    return view;
  }
  void set_cache(CacheView cache) {
    std::lock_guard lock(mutex_);
    cache_ = std::move(cache);
  }
  // The kind of error that a change of the limit "busy" ends with.
  void set_busy(base::ErrorKind kind) {
    std::lock_guard lock(mutex_);
    busy_ = kind;
  }
  void DropLastCluster() {
    std::lock_guard lock(mutex_);
    clusters_.pop_back();
  }
  std::optional<HealthOrder> last_order() {
    std::lock_guard lock(mutex_);
    return orders_.empty() ? std::nullopt : std::optional(orders_.back());
  }
  void set_health(upstream::HealthView health, std::vector<upstream::HealthChangeView> changes) {
    std::lock_guard lock(mutex_);
    clusters_[0].endpoints[0].health = std::move(health);
    clusters_[0].health_changes = std::move(changes);
  }
  size_t change_count() {
    std::lock_guard lock(mutex_);
    return changes_.size();
  }

  std::mutex mutex_;
  std::atomic<bool> ready_{true};
  std::atomic<bool> list_busy_{false};
  std::atomic<int> drains_{0}, stops_{0};
  static proxy::CacheStats CacheStats() {
    proxy::CacheStats stats{64 << 20, 3 << 20, 12, 1, 60, 20, 15, 5, 9, 8, 7, 0, {}};
    stats.not_cached[static_cast<size_t>(proxy::NotCached::kNoStore)] = 4;
    stats.not_cached[static_cast<size_t>(proxy::NotCached::kFull)] = 1;
    return stats;
  }

  std::optional<std::chrono::milliseconds> drain_timeout_;
  std::optional<std::chrono::milliseconds> drain_delay_;
  ReloadResult reload_;
  std::optional<ReloadView> last_reload_;
  ConfigView running_config_, file_config_;
  std::string level_ = "info";
  double moved_share_ = 0.125;
  uint64_t version_ = 7;
  std::vector<ClusterView> clusters_;
  std::vector<upstream::EndpointChange> changes_;
  std::vector<HealthOrder> orders_;
  std::vector<FaultView> faults_;
  std::vector<LimitView> limits_;
  std::vector<ClusterTraffic> traffic_;
  std::vector<LimitChange> limit_changes_;
  std::optional<discovery::XdsView> xds_;
  CacheView cache_{true, CacheStats()};
  std::vector<proxy::CachePurge> purges_;
  std::vector<CertificateView> certificates_ = {
      {"listener/in",
       CertificatePurpose::kOwn,
       "/tls/a.crt",
       "CN=a",
       "CN=ca",
       {"a.example.com", "spiffe://d/a"},
       0,
       1'800'000'000,
       55,
       "no key"},
      {"listener/in",
       CertificatePurpose::kTrusted,
       "/tls/ca.crt",
       "CN=ca",
       "CN=ca",
       {},
       0,
       1'900'000'000,
       -1,
       "no key"},
      {"cluster/users", CertificatePurpose::kTrusted, "system", "", "", {}, 0, 0, 0, ""}};
  base::ErrorKind busy_ = base::ErrorKind::kBusy;
  FailedCallsView failed_calls_;
  std::vector<RouteView> routes_;
  CallExplanation explanation_;
  std::vector<CallQuestion> questions_;
  std::vector<HotKeysView> hot_keys_;
};

// A directory that goes with its contents.
class TempDir {
 public:
  TempDir() {
    char name[] = "/tmp/sluice-admin-test-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace sluice::admin
