// The steps of a call that choose its cluster: one of those that share its route's calls, and the one that steps in
// where that has no endpoint.
#include <algorithm>

#include "proxy/call/call.h"
#include "proxy/call/hash_key.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using upstream::ClusterState;
using upstream::Endpoint;

namespace {

// Some endpoint of `cluster` could take a call of this worker: it is in rotation, though it may be sick; not in
// back-off; and the call need not wait for a connection in place of one that was lost (TakesCalls begins it). What no
// connection of this worker was tried to is taken at the word of the others; they learn of its return by probes, which
// go with ejection.
bool AnyAble(const ClusterState& cluster, uint32_t worker) {
  return std::any_of(cluster.endpoints.begin(), cluster.endpoints.end(), [&](const upstream::ListedEndpoint& entry) {
    Endpoint& endpoint = *entry.endpoint;
    if (!entry.TakesCalls() || endpoint.out() || !endpoint.AdmitsRepeatable(Endpoint::Choosiness::kOut, 0))
      return false;
    upstream::EndpointPool* pool = endpoint.pool(worker);
    if (pool != nullptr) return pool->TakesCalls();
    return !cluster.options->ejection.enabled || endpoint.health() != upstream::EndpointHealth::kBackoff;
  });
}

}  // namespace

// The key may stand in metadata that gates set, or in the message: until the call has passed these the first cluster
// with a weight stands in for the one to come, and nothing is asked of it.
void Call::ChooseCluster() {
  if (route_->split != nullptr && !split_known_ && state_ > State::kReading) return ChooseByKey();
  cluster_ = snapshot_->clusters[PlaceOfRoute()].get();
  const bool provisional = route_->split != nullptr && !split_known_;
  if (route_->failover == Route::kNoFailover || route_->failover == PlaceOfRoute() || provisional) {
    failed_over_ = false;
  } else {
    ChooseFailover();
  }
}

void Call::ChooseByKey() {
  split_at_ = SplitPosition(HashKey(upstream::Ring::kSluice));
  split_known_ = true;
  ChooseCluster();
}

// Null: the route has one cluster.
const ClusterSplit::Part* Call::PartOfSplit() const {
  return route_->split == nullptr ? nullptr : &route_->split->Of(split_at_);
}

uint32_t Call::PlaceOfRoute() const {
  const ClusterSplit::Part* part = PartOfSplit();
  return part == nullptr ? route_->cluster : part->cluster;
}

const std::string& Call::NameOfCluster() const {
  if (failed_over_) return route_->options.failover;
  const ClusterSplit::Part* part = PartOfSplit();
  return part == nullptr ? route_->options.cluster : part->name;
}

const std::string& Call::CacheScope() const {
  const ClusterSplit::Part* part = PartOfSplit();
  return part == nullptr ? route_->cache_scope : part->cache_scope;
}

const RouteMetrics* Call::MetricsOfCall() const {
  if (route_ == nullptr) return nullptr;
  const ClusterSplit::Part* part = PartOfSplit();
  return part == nullptr ? &route_->metrics : &part->metrics;
}

// Where the cluster has no endpoint for the call, and the other one has. Asked each time that the call is routed, so
// the next attempt of a call comes home as soon as new calls do.
void Call::ChooseFailover() {
  const ClusterState& other = *snapshot_->clusters[route_->failover];
  const uint32_t w = context.index();
  if ((!leaves_cluster_ && AnyAble(*cluster_, w)) || !AnyAble(other, w)) {
    failed_over_ = false;
    return;
  }
  cluster_ = &other;
  if (!std::exchange(failed_over_, true)) route_->metrics.failovers->Add(w);
  // A call that has passed the limits of its own cluster is not asked by those of the other any more, but for the
  // endpoint's, which goes with each attempt.
  if (state_ != State::kTrying || admission_ != nullptr || !other.EndpointsLimited()) return;
  admission_.reset(
      new Admission(config_, context.LimitsOf(route_->failover, other), *route_, client_->flow, context.index()));
  admission_->PassForAttempt(context.worker().now());
}

// An attempt that found no connection was the last of attempts_max: one more, at the other cluster, costs no backend
// anything.
bool Call::MayLeaveCluster() const {
  if (route_->failover == Route::kNoFailover || route_->failover == PlaceOfRoute() || failed_over_) return false;
  return AnyAble(*snapshot_->clusters[route_->failover], context.index());
}

}  // namespace sluice::proxy
