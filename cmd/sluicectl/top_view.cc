#include "sluicectl/top_view.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>

#include "sluicectl/print.h"

namespace sluice::ctl {
namespace {

namespace v1 = admin::v1;
using Rows = std::vector<std::vector<std::string>>;

std::string Number(double value) {
  char text[40];
  std::snprintf(text, sizeof(text), value >= 99.95 ? "%.0f" : "%.1f", value);
  return text;
}
std::string Percent(double share) { return Number(share * 100) + "%"; }
std::string Millis(const Buckets& buckets, double q, double longest) {
  const double seconds = Quantile(buckets, q, longest);
  char text[40];
  std::snprintf(text, sizeof(text), seconds < 0.01 ? "%.2f" : "%.1f", seconds * 1000);
  return seconds == 0 ? "-" : text;
}

class View {
 public:
  View(const TopSample& before, const TopSample& now, size_t endpoints_max)
      : before_(before), now_(now), endpoints_max_(endpoints_max) {
    seconds_ = std::max(1e-3, std::chrono::duration<double>(now.at - before.at).count());
    for (const v1::Cluster& cluster : before.clusters.clusters()) {
      for (const v1::Endpoint& endpoint : cluster.endpoints()) was_[{cluster.name(), endpoint.name()}] = &endpoint;
    }
  }

  std::string Print() const { return Head() + "\n" + Clusters() + Limits() + Keys(); }

 private:
  double Rate(double now, double before) const { return std::max(0.0, now - before) / seconds_; }

  std::string Head() const {
    const v1::GetServerResponse& server = now_.server;
    const char* const state = server.draining() ? "draining" : server.ready() ? "ready" : "not ready";
    return "sluice " + server.version() + ", " + state + ", pid " + std::to_string(server.pid()) + ", " +
           std::to_string(server.workers()) + " workers, " + std::to_string(server.downstream_connections()) +
           " connections, " + std::to_string(server.calls_in_flight()) + " calls in flight; over " + Number(seconds_) +
           " s\n";
  }

  std::string Clusters() const {
    Rows rows{{"CLUSTER", "ENDPOINT", "CALLS/S", "ERRORS/S", "P50 MS", "P99 MS", "IN FLIGHT", "SHARE", "STATE"}};
    for (const v1::Cluster& cluster : now_.clusters.clusters()) AddCluster(cluster, rows);
    return Table(rows, {false, false, true, true, true, true, true, true, false});
  }

  void AddCluster(const v1::Cluster& cluster, Rows& rows) const {
    static const CallMetrics::Cluster kNone;
    const auto find = [&](const TopSample& sample) -> const CallMetrics::Cluster& {
      const auto found = sample.metrics.clusters.find(cluster.name());
      return found == sample.metrics.clusters.end() ? kNone : found->second;
    };
    const CallMetrics::Cluster& is = find(now_);
    const CallMetrics::Cluster& was = find(before_);
    const Buckets took = Since(is.duration, was.duration);
    uint64_t in_flight = 0;
    for (const v1::Endpoint& endpoint : cluster.endpoints()) in_flight += endpoint.in_flight();
    rows.push_back({cluster.name(), "", Number(Rate(is.calls, was.calls)), Number(Rate(is.errors, was.errors)),
                    Millis(took, 0.5, is.longest), Millis(took, 0.99, is.longest), std::to_string(in_flight), "",
                    cluster.policy()});
    std::vector<std::pair<double, const v1::Endpoint*>> by_rate;
    for (const v1::Endpoint& endpoint : cluster.endpoints()) {
      const v1::Endpoint* const then = Before(cluster, endpoint);
      by_rate.emplace_back(
          Rate(static_cast<double>(endpoint.calls()), then == nullptr ? 0 : static_cast<double>(then->calls())),
          &endpoint);
    }
    std::stable_sort(by_rate.begin(), by_rate.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    for (size_t i = 0; i < by_rate.size() && i < endpoints_max_; ++i)
      AddEndpoint(cluster, *by_rate[i].second, by_rate[i].first, rows);
    if (by_rate.size() > endpoints_max_)
      rows.push_back({"", std::to_string(by_rate.size() - endpoints_max_) + " more", "", "", "", "", "", "", ""});
  }

  void AddEndpoint(const v1::Cluster& cluster, const v1::Endpoint& endpoint, double rate, Rows& rows) const {
    const std::pair<std::string, std::string> key(cluster.name(), endpoint.name());
    static const CallMetrics::Endpoint kNone;
    const auto latency = [&](const TopSample& sample) -> const CallMetrics::Endpoint& {
      const auto found = sample.metrics.endpoints.find(key);
      return found == sample.metrics.endpoints.end() ? kNone : found->second;
    };
    const v1::Endpoint* const then = Before(cluster, endpoint);
    const double failures =
        Rate(static_cast<double>(endpoint.failures()), then == nullptr ? 0 : static_cast<double>(then->failures()));
    const double longest = latency(now_).longest;
    const Buckets took = Since(latency(now_).latency, latency(before_).latency);
    rows.push_back({"", endpoint.name(), Number(rate), Number(failures), Millis(took, 0.5, longest),
                    Millis(took, 0.99, longest), std::to_string(endpoint.in_flight()), Percent(endpoint.share()),
                    StateWord(endpoint) + ", " + endpoint.connection()});
  }

  // Null: it is new.
  const v1::Endpoint* Before(const v1::Cluster& cluster, const v1::Endpoint& endpoint) const {
    const auto found = was_.find({cluster.name(), endpoint.name()});
    return found == was_.end() ? nullptr : found->second;
  }

  // Those that are in force.
  std::string Limits() const {
    Rows rows{{"LIMIT", "LETS THROUGH", "IN USE", "WAITING", "QUEUE"}};
    for (const v1::Limit& limit : now_.limits.limits()) {
      const double bound = limit.has_rate() ? limit.rate().rate() : limit.concurrency().max();
      if (bound == 0) continue;
      rows.push_back({limit.name(), Number(bound) + (limit.has_rate() ? "/s" : " at once"),
                      std::to_string(limit.in_use()), std::to_string(limit.waiting()),
                      std::to_string(limit.queue_max())});
    }
    return rows.size() == 1 ? "" : "\n" + Table(rows, {false, true, true, true, true});
  }

  std::string Keys() const {
    Rows rows{{"HOT KEY", "CLUSTER", "SHARE", "AT LEAST", "ENDPOINT"}};
    for (const v1::ClusterHotKeys& cluster : now_.keys.clusters()) {
      for (const v1::HotKey& key : cluster.keys()) {
        rows.push_back({key.key() + (key.cut() ? "..." : ""), cluster.cluster(), Percent(key.share()),
                        Percent(key.share() - key.error()), key.endpoint().empty() ? "-" : key.endpoint()});
      }
    }
    return rows.size() == 1 ? "" : "\n" + Table(rows, {false, false, true, true, false});
  }

  const TopSample& before_;
  const TopSample& now_;
  const size_t endpoints_max_;
  double seconds_;
  std::map<std::pair<std::string, std::string>, const v1::Endpoint*> was_;
};

}  // namespace

std::string PrintTop(const TopSample& before, const TopSample& now, size_t endpoints_max) {
  return View(before, now, endpoints_max).Print();
}

std::string FitScreen(const std::string& text, size_t rows, size_t columns) {
  std::string out;
  size_t line = 0;
  for (size_t at = 0; at < text.size() && line < rows; ++line) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (line > 0) out += "\r\n";
    out.append(text, at, std::min(end - at, columns)).append("\x1b[K");
    at = end + 1;
  }
  return out;
}

}  // namespace sluice::ctl
