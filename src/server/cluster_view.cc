#include "server/cluster_view.h"

#include <algorithm>

namespace sluice::server {

admin::ClusterView MakeClusterView(const upstream::ClusterState& state,
                                   const std::vector<std::shared_ptr<upstream::Endpoint>>& leaving) {
  admin::ClusterView view;
  view.name = state.name();
  view.policy = ToString(state.options->policy);
  view.version = state.version;
  view.digest = state.balancer->Digest();
  view.overridden = state.overridden;
  auto describe = [](upstream::Endpoint& endpoint) {
    admin::EndpointView out;
    out.name = endpoint.name();
    out.address = endpoint.address().ToString();
    out.connection = ToString(endpoint.link());
    out.in_flight = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().in_flight->Value()));
    out.calls = endpoint.metrics().calls->Value();
    out.failures = endpoint.metrics().failures->Value();
    out.connections = static_cast<uint64_t>(std::max<int64_t>(0, endpoint.metrics().connections->Value()));
    return out;
  };
  std::vector<double> shares = state.balancer->Shares();
  for (size_t i = 0; i < state.endpoints.size(); ++i) {
    const upstream::ListedEndpoint& entry = state.endpoints[i];
    admin::EndpointView out = describe(*entry.endpoint);
    out.weight = entry.weight;
    out.share = entry.draining ? 0 : shares[i];
    out.state = entry.draining ? "draining" : "active";
    view.endpoints.push_back(std::move(out));
  }
  for (const auto& endpoint : leaving) {
    if (endpoint->metrics().in_flight->Value() <= 0) continue;
    admin::EndpointView out = describe(*endpoint);
    out.state = "removed";
    view.endpoints.push_back(std::move(out));
  }
  return view;
}

}  // namespace sluice::server
