// TrafficHistory: what the calls of each cluster were like in the last ten minutes: sums of the process, read every
// kPeriod, as rates and quantiles. A value: it is told the sums and the time. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/backend.h"
#include "base/clock.h"

namespace sluice::admin {

// Between two readings.
struct TrafficPoint {
  double calls = 0;   // that ended, a second
  double failed = 0;  // of them with another status than OK
  base::Nanos p50{0}, p99{0};
};

using StatusRates = std::array<double, proxy::kGrpcCodes>;

class TrafficHistory {
 public:
  static constexpr base::Nanos kPeriod = std::chrono::seconds(10);
  static constexpr size_t kPoints = 60;
  // Clusters beyond it have no history: a kilobyte each, and as much for the last reading.
  static constexpr size_t kClustersMax = 1'000;
  // Shares of calls are those of the last kShareReadings to twice as many.
  static constexpr size_t kShareReadings = 6;
  // Over all clusters; those beyond it have no share of calls.
  static constexpr size_t kEndpointsMax = 20'000;

  void Add(const std::vector<ClusterTraffic>& sums, const std::vector<ReasonCount>& reasons, base::TimePoint now);
  // Oldest first; empty: nothing is known yet.
  std::vector<TrafficPoint> Of(std::string_view cluster) const;
  // Of all clusters together.
  std::vector<TrafficPoint> OfAll() const { return PointsOf(all_); }
  // How many a second ended with each status between the last two readings.
  StatusRates Statuses(std::string_view cluster) const;
  StatusRates StatusesOfAll() const { return all_.statuses; }
  // How many calls a second the proxy failed for this reason between the last two readings.
  double RateOf(std::string_view reason) const;
  // Of the calls that endpoints of the cluster were given in the last minute or two, 0..1: `calls_now` are
  // their sums since the start. In their order; empty: not known yet, or there was no call.
  std::vector<double> SharesOfCalls(std::string_view cluster, const std::vector<EndpointCalls>& calls_now) const;

 private:
  using Calls = std::map<std::string, uint64_t, std::less<>>;
  struct Series {
    ClusterTraffic last;
    StatusRates statuses{};
    std::array<TrafficPoint, kPoints> points;  // a ring
    size_t next = 0, count = 0;
    // Sums of calls by endpoint kShareReadings ago or more, and those of later.
    std::optional<Calls> older, newer;
  };
  static void AddTo(Series& series, const ClusterTraffic& sum, double seconds);
  static std::vector<TrafficPoint> PointsOf(const Series& series);

  std::map<std::string, Series, std::less<>> clusters_;
  Series all_;
  std::map<std::string_view, uint64_t> reasons_;  // the names are the process's own
  std::map<std::string_view, double> reason_rates_;
  uint64_t readings_ = 0;
  std::optional<base::TimePoint> read_at_;
};

}  // namespace sluice::admin
