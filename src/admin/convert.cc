#include "admin/convert.h"

#include <cmath>

namespace sluice::admin {
namespace {

using Kind = EndpointChange::Kind;

base::Error Bad(std::string why) {
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why));
}

v1::Endpoint::State StateOf(std::string_view state) {
  if (state == "active") return v1::Endpoint::STATE_ACTIVE;
  if (state == "draining") return v1::Endpoint::STATE_DRAINING;
  if (state == "removed") return v1::Endpoint::STATE_REMOVED;
  return v1::Endpoint::STATE_UNSPECIFIED;
}

base::Result<Kind> KindOf(v1::ChangeEndpointsRequest::Kind kind) {
  switch (kind) {
    case v1::ChangeEndpointsRequest::KIND_REPLACE:
      return Kind::kReplace;
    case v1::ChangeEndpointsRequest::KIND_ADD:
      return Kind::kAdd;
    case v1::ChangeEndpointsRequest::KIND_REMOVE:
      return Kind::kRemove;
    case v1::ChangeEndpointsRequest::KIND_REWEIGHT:
      return Kind::kReweight;
    case v1::ChangeEndpointsRequest::KIND_DRAIN:
      return Kind::kDrain;
    case v1::ChangeEndpointsRequest::KIND_UNDRAIN:
      return Kind::kUndrain;
    default:
      return Bad("kind: must be one that this daemon knows, not " + std::to_string(static_cast<int>(kind)));
  }
}

base::Result<EndpointSpec> ToSpec(const v1::EndpointSpec& message, Kind kind, int index) {
  const std::string at = "endpoints[" + std::to_string(index) + "]";
  const bool needs_address = kind == Kind::kReplace || kind == Kind::kAdd;
  if (needs_address && message.address().empty()) return Bad(at + ".address: is needed");
  if (!needs_address && message.name().empty()) return Bad(at + ".name: is needed");
  if (kind == Kind::kReweight && !message.has_weight()) return Bad(at + ".weight: is needed");
  if (message.has_weight() && !(std::isfinite(message.weight()) && message.weight() > 0)) {
    return Bad(at + ".weight: must be a number above 0; to take calls away from an endpoint, drain it");
  }
  return EndpointSpec{message.name(), message.address(), message.has_weight() ? message.weight() : 1};
}

}  // namespace

void ToMessage(const ServerView& view, v1::GetServerResponse& message) {
  message.set_version(view.version);
  message.set_config_file(view.config_file);
  message.set_pid(view.pid);
  message.set_uptime_seconds(view.uptime_seconds);
  message.set_workers(view.workers);
  message.set_ready(view.ready);
  message.set_draining(view.draining);
  message.set_downstream_connections(view.downstream_connections);
  message.set_calls_in_flight(view.calls_in_flight);
}

void ToMessage(const ClusterView& view, v1::Cluster& message) {
  message.set_name(view.name);
  message.set_policy(view.policy);
  message.set_version(view.version);
  message.set_digest(view.digest);
  message.set_overridden(view.overridden);
  for (const EndpointView& endpoint : view.endpoints) {
    v1::Endpoint& out = *message.add_endpoints();
    out.set_name(endpoint.name);
    out.set_address(endpoint.address);
    out.set_weight(endpoint.weight);
    out.set_share(endpoint.share);
    out.set_state(StateOf(endpoint.state));
    out.set_connection(endpoint.connection);
    out.set_in_flight(endpoint.in_flight);
    out.set_calls(endpoint.calls);
    out.set_failures(endpoint.failures);
    out.set_connections(endpoint.connections);
  }
}

void ToMessage(const ChangeResult& result, v1::ChangeEndpointsResponse& message) {
  message.set_version(result.version);
  message.set_digest(result.digest);
  message.set_moved_share(result.moved_share);
}

void ToMessage(const ReloadResult& result, v1::ReloadResponse& message) {
  for (const std::string& error : result.errors) message.add_errors(error);
  for (const std::string& warning : result.warnings) message.add_warnings(warning);
}

base::Result<EndpointChange> ToChange(const v1::ChangeEndpointsRequest& request) {
  if (request.cluster().empty()) return Bad("cluster: is needed");
  base::Result<Kind> kind = KindOf(request.kind());
  if (!kind.ok()) return kind.error();
  // An empty list by accident would refuse every call; an empty list on purpose is a drain of each.
  if (request.endpoints().empty()) return Bad("endpoints: at least one is needed");
  if (request.endpoints_size() > kEndpointsPerChangeMax) {
    return Bad("endpoints: " + std::to_string(request.endpoints_size()) + " are more than the " +
               std::to_string(kEndpointsPerChangeMax) + " of one change");
  }
  EndpointChange change;
  change.kind = *kind;
  change.cluster = request.cluster();
  change.preview = request.preview();
  if (request.has_expected_version()) change.expected_version = request.expected_version();
  for (int i = 0; i < request.endpoints_size(); ++i) {
    base::Result<EndpointSpec> spec = ToSpec(request.endpoints(i), *kind, i);
    if (!spec.ok()) return spec.error();
    change.endpoints.push_back(std::move(*spec));
  }
  return change;
}

}  // namespace sluice::admin
