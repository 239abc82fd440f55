#include "admin/traffic_history.h"

#include <algorithm>
#include <set>
#include <utility>

namespace sluice::admin {
namespace {

// Of what one reading has more than the one before. A sum that is lower is of other counters: a cluster that is new
// under the old name.
uint64_t More(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

base::Nanos QuantileOf(const metrics::Histogram::Snapshot& took, double share) {
  // The last bucket has no bound.
  return base::Nanos(static_cast<int64_t>(std::min<uint64_t>(took.Quantile(share), INT64_MAX)));
}

}  // namespace

void TrafficHistory::AddTo(Series& series, const ClusterTraffic& sum, double seconds) {
  TrafficPoint point;
  uint64_t calls = 0;
  for (size_t code = 0; code < sum.statuses.size(); ++code) {
    const uint64_t more = More(sum.statuses[code], series.last.statuses[code]);
    series.statuses[code] = static_cast<double>(more) / seconds;
    calls += more;
  }
  point.calls = static_cast<double>(calls) / seconds;
  point.failed = point.calls - series.statuses[0];
  metrics::Histogram::Snapshot took = sum.duration;
  took.count = 0;
  for (size_t i = 0; i < took.buckets.size(); ++i) {
    took.buckets[i] = More(took.buckets[i], series.last.duration.buckets[i]);
    took.count += took.buckets[i];
  }
  point.p50 = QuantileOf(took, 0.5);
  point.p99 = QuantileOf(took, 0.99);
  series.points[series.next] = point;
  series.next = (series.next + 1) % kPoints;
  series.count = std::min(series.count + 1, kPoints);
}

void TrafficHistory::Add(const std::vector<ClusterTraffic>& sums, const std::vector<ReasonCount>& reasons,
                         base::TimePoint now) {
  const double seconds = read_at_ ? std::chrono::duration<double>(now - *read_at_).count() : 0;
  read_at_ = now;
  const bool shares = readings_++ % kShareReadings == 0;
  size_t endpoints = 0;
  ClusterTraffic all;  // what is new, of clusters that were there before
  std::set<std::string_view> there;
  for (const ClusterTraffic& sum : sums) {
    there.insert(sum.cluster);
    auto it = clusters_.find(sum.cluster);
    const bool known = it != clusters_.end();
    if (!known) {
      // Its first reading is what later ones are compared with.
      if (clusters_.size() >= kClustersMax) continue;
      it = clusters_.try_emplace(sum.cluster).first;
    }
    Series& series = it->second;
    if (shares && (endpoints += sum.endpoints.size()) <= kEndpointsMax) {
      series.older = std::exchange(series.newer, Calls());
      for (const EndpointCalls& each : sum.endpoints) (*series.newer)[each.name] = each.calls;
      if (!series.older) series.older = series.newer;
    }
    if (known && seconds > 0) AddTo(series, sum, seconds);
    if (known) {
      for (size_t i = 0; i < all.statuses.size(); ++i)
        all.statuses[i] += More(sum.statuses[i], series.last.statuses[i]);
      for (size_t i = 0; i < all.duration.buckets.size(); ++i)
        all.duration.buckets[i] += More(sum.duration.buckets[i], series.last.duration.buckets[i]);
      all.duration.max = std::max(all.duration.max, sum.duration.max);
    }
    series.last.statuses = sum.statuses;
    series.last.duration = sum.duration;
  }
  std::erase_if(clusters_, [&](const auto& each) { return !there.contains(each.first); });
  if (seconds > 0) AddTo(all_, all, seconds);
  for (const ReasonCount& each : reasons) {
    const auto before = reasons_.find(each.reason);
    if (seconds > 0)
      reason_rates_[each.reason] =
          static_cast<double>(More(each.count, before == reasons_.end() ? 0 : before->second)) / seconds;
    reasons_[each.reason] = each.count;
  }
}

std::vector<TrafficPoint> TrafficHistory::PointsOf(const Series& series) {
  std::vector<TrafficPoint> out;
  for (size_t i = 0; i < series.count; ++i)
    out.push_back(series.points[(series.next + kPoints - series.count + i) % kPoints]);
  return out;
}

std::vector<TrafficPoint> TrafficHistory::Of(std::string_view cluster) const {
  const auto it = clusters_.find(cluster);
  return it == clusters_.end() ? std::vector<TrafficPoint>() : PointsOf(it->second);
}

StatusRates TrafficHistory::Statuses(std::string_view cluster) const {
  const auto it = clusters_.find(cluster);
  return it == clusters_.end() ? StatusRates{} : it->second.statuses;
}

double TrafficHistory::RateOf(std::string_view reason) const {
  const auto it = reason_rates_.find(reason);
  return it == reason_rates_.end() ? 0 : it->second;
}

std::vector<double> TrafficHistory::SharesOfCalls(std::string_view cluster,
                                                  const std::vector<EndpointCalls>& calls_now) const {
  const auto it = clusters_.find(cluster);
  if (it == clusters_.end() || !it->second.older) return {};
  const Calls& before = *it->second.older;
  std::vector<double> out;
  double all = 0;
  for (const EndpointCalls& each : calls_now) {
    const auto known = before.find(each.name);
    const uint64_t more = More(each.calls, known == before.end() ? 0 : known->second);
    out.push_back(static_cast<double>(more));
    all += out.back();
  }
  if (all == 0) return {};
  for (double& share : out) share /= all;
  return out;
}

}  // namespace sluice::admin
