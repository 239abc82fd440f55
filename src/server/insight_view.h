// What is kept of calls (proxy/insight/insight.h) as the admin plane shows it.
#pragma once

#include <memory>
#include <vector>

#include "admin/backend.h"
#include "proxy/insight/insight.h"
#include "upstream/cluster.h"

namespace sluice::server {

admin::FailedCallsView MakeFailedCallsView(const proxy::Insight& insight, base::TimePoint now);

// Where the share of all calls is, with 95%, of which a sample of `samples` has `share` (Wilson's interval).
struct Interval {
  double low = 0, high = 1;
};
Interval ShareInterval(double share, double samples);

// Fewer say nothing: of ten, one call is anything from 2% to 40%.
inline constexpr uint64_t kHotKeySamplesMin = 100;

// Of those of `clusters` that there are kHotKeySamplesMin of.
std::vector<admin::HotKeysView> MakeHotKeysView(
    const proxy::Insight& insight, const std::vector<std::shared_ptr<const upstream::ClusterState>>& clusters,
    base::TimePoint now);

// The endpoint that takes calls with `key` (the hash of the call's key) while all is as it is now. Empty: none does, or
// the cluster does not go by keys.
std::string OwnerOf(const upstream::ClusterState& cluster, uint64_t key);

}  // namespace sluice::server
