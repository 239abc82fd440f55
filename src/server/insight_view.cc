#include "server/insight_view.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice::server {

using upstream::ClusterState;
using upstream::LoadBalancer;

admin::FailedCallsView MakeFailedCallsView(const proxy::Insight& insight, base::TimePoint now) {
  admin::FailedCallsView view;
  proxy::FailedCalls::Seen seen = insight.failed.Read();
  for (proxy::FailedCall& call : seen.calls) {
    view.calls.emplace_back(std::move(call));
    view.calls.back().ago = now - view.calls.back().ended;
  }
  view.kept = insight.failed.kept();
  view.failed = seen.written;
  view.left_out = seen.left_out;
  char process[16];
  std::snprintf(process, sizeof(process), "%08x", proxy::CallId::Process());
  view.process = process;
  return view;
}

std::string OwnerOf(const ClusterState& cluster, uint64_t key) {
  if (cluster.options->policy != upstream::Policy::kRingHash) return {};
  const upstream::Tier* const tier =
      cluster.tiers.empty() ? nullptr : &cluster.tiers[cluster.spill->TierOf(key, cluster.tiers)];
  const auto place = [&](uint32_t i) { return tier == nullptr ? i : tier->places[i]; };
  const auto ok = [&](uint32_t i) {
    const upstream::ListedEndpoint& entry = cluster.endpoints[place(i)];
    return entry.TakesCalls() && !entry.endpoint->out();
  };
  const auto load = [](uint32_t) { return 0u; };
  const LoadBalancer& balancer = tier == nullptr ? *cluster.balancer : *tier->balancer;
  const uint32_t found = balancer.Pick({key, key, 0, ok, load});
  return found == LoadBalancer::kNone ? std::string() : cluster.endpoints[place(found)].endpoint->name();
}

Interval ShareInterval(double share, double samples) {
  constexpr double kZ = 1.96;  // 95%
  const double z2 = kZ * kZ / samples;
  const double middle = (share + z2 / 2) / (1 + z2);
  const double half = kZ / (1 + z2) * std::sqrt(share * (1 - share) / samples + z2 / (4 * samples));
  return {std::max(0.0, middle - half), std::min(1.0, middle + half)};
}

std::vector<admin::HotKeysView> MakeHotKeysView(const proxy::Insight& insight,
                                                const std::vector<std::shared_ptr<const ClusterState>>& clusters,
                                                base::TimePoint now) {
  std::vector<admin::HotKeysView> out;
  const proxy::HotKeys& keys = insight.keys;
  for (const proxy::HotKeys::Seen& seen : keys.Read(now)) {
    const auto cluster = std::find_if(clusters.begin(), clusters.end(),
                                      [&](const auto& state) { return state->name() == seen.cluster; });
    if (cluster == clusters.end()) continue;  // a reload has taken it away
    if (seen.keys.total < kHotKeySamplesMin) continue;
    const auto of_total = [&](uint64_t count) {
      return std::min(1.0, static_cast<double>(count) / static_cast<double>(seen.keys.total));
    };
    admin::HotKeysView view{seen.cluster, keys.hidden(), seen.keys.total, seen.span, of_total(seen.keys.floor), {}};
    for (const proxy::KeyCount& key : seen.keys.keys) {
      if (view.keys.size() == admin::Backend::kHotKeysMax) {
        view.floor = std::max(view.floor, of_total(key.count));
        break;
      }
      // Of the sample the count is between count - error and count; of all calls the share is in the interval of both.
      const auto samples = static_cast<double>(seen.keys.total);
      const double low = ShareInterval(of_total(key.count - std::min(key.count, key.error)), samples).low;
      const double high = ShareInterval(of_total(key.count), samples).high;
      view.keys.push_back({keys.hidden() ? proxy::HotKeys::TagOf(key.key) : std::string(key.text.view()), key.text.cut,
                           high, high - low, OwnerOf(**cluster, key.key)});
    }
    out.push_back(std::move(view));
  }
  return out;
}

}  // namespace sluice::server
