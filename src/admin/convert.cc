#include "admin/convert.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "upstream/drain_ramp.h"

namespace sluice::admin {
namespace {

using upstream::EndpointChange;
using upstream::EndpointSpec;
using Kind = EndpointChange::Kind;

constexpr size_t kNameBytesMax = 256;  // of an endpoint's name, as in the configuration

base::Error Bad(std::string why) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why)); }

std::string Hex(uint64_t digest) { return absl::StrCat(absl::Hex(digest, absl::kZeroPad16)); }

v1::Endpoint::State StateOf(upstream::EndpointState state) {
  switch (state) {
    case upstream::EndpointState::kActive:
      return v1::Endpoint::STATE_ACTIVE;
    case upstream::EndpointState::kDraining:
      return v1::Endpoint::STATE_DRAINING;
    case upstream::EndpointState::kRemoved:
      return v1::Endpoint::STATE_REMOVED;
  }
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
    case v1::ChangeEndpointsRequest::KIND_RESET:
      return Kind::kReset;
    default:
      return Bad("kind: must be one that this daemon knows, not " + std::to_string(static_cast<int>(kind)));
  }
}

base::Result<EndpointSpec> ToSpec(const v1::EndpointSpec& message, Kind kind, int index) {
  const std::string at = "endpoints[" + std::to_string(index) + "]";
  const bool needs_address = kind == Kind::kReplace || kind == Kind::kAdd;
  if (needs_address && message.address().empty()) return Bad(at + ".address: is needed");
  if (!needs_address && message.name().empty()) return Bad(at + ".name: is needed");
  // As in the configuration: a name stands in logs, metrics and tables, and is typed into shells.
  const auto hidden = [](char c) { return c <= ' ' || c > '~'; };
  if (needs_address && (message.name().size() > kNameBytesMax || std::ranges::any_of(message.name(), hidden)))
    return Bad(at + ".name: must be at most " + std::to_string(kNameBytesMax) +
               " visible ASCII characters without blanks");
  if (kind == Kind::kReweight && !message.has_weight()) return Bad(at + ".weight: is needed");
  if (message.has_weight() && !(std::isfinite(message.weight()) && message.weight() > 0)) {
    return Bad(at + ".weight: must be a number above 0; to take calls away from an endpoint, drain it");
  }
  if (!needs_address && (message.priority() != 0 || !message.locality().empty()))
    return Bad(at + ": priority and locality go with KIND_ADD and KIND_REPLACE only");
  return EndpointSpec{message.name(), message.address(), message.has_weight() ? message.weight() : 1,
                      message.priority(), message.locality()};
}

void ToMessage(const upstream::HealthView& view, v1::Health& message) {
  message.set_state(std::string(ToString(view.state)));
  message.set_in_state_ms(Milliseconds(view.in_state));
  message.set_why(view.why);
  message.set_last_error(view.last_error);
  if (view.last_error_ago) message.set_last_error_ago_ms(Milliseconds(*view.last_error_ago));
  if (view.probe_in) message.set_probe_in_ms(Milliseconds(*view.probe_in));
  message.set_share(view.share);
  message.set_health_service(view.health_service);
}

// By the name's last part: "concurrency" and "endpoint_concurrency", or else a rate.
bool IsConcurrency(std::string_view name) { return name.ends_with("concurrency"); }

}  // namespace

uint64_t Milliseconds(base::Nanos span) {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::duration_cast<std::chrono::milliseconds>(span).count()));
}

void ToMessage(const ProcessView& view, v1::Process& message) {
  message.set_pid(view.pid);
  message.set_generation(view.generation);
  message.set_version(view.version);
  message.set_serving(view.serving);
  message.set_since_seconds(std::chrono::duration<double>(view.since).count());
  message.set_calls(view.calls);
  message.set_connections(view.connections);
}

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
  message.set_digest_hex(Hex(view.digest));
  message.set_overridden(view.source == upstream::ListSource::kRpc);
  for (const EndpointView& endpoint : view.endpoints) {
    v1::Endpoint& out = *message.add_endpoints();
    out.set_name(endpoint.name);
    out.set_address(endpoint.address);
    out.set_weight(endpoint.weight);
    out.set_share(endpoint.share);
    out.set_state(StateOf(endpoint.state));
    out.set_connection(std::string(ToString(endpoint.connection)));
    out.set_in_flight(endpoint.in_flight);
    out.set_calls(endpoint.calls);
    out.set_failures(endpoint.failures);
    out.set_connections(endpoint.connections);
    out.set_priority(endpoint.priority);
    out.set_locality(endpoint.locality);
    if (endpoint.health) ToMessage(*endpoint.health, *out.mutable_health());
  }
  for (const upstream::HealthChangeView& change : view.health_changes) {
    v1::HealthChange& out = *message.add_health_changes();
    out.set_ago_ms(Milliseconds(change.ago));
    out.set_endpoint(change.endpoint);
    out.set_from(std::string(ToString(change.from)));
    out.set_to(std::string(ToString(change.to)));
    out.set_why(change.why);
  }
  if (view.discovery) {
    v1::Discovery& out = *message.mutable_discovery();
    out.set_source(view.discovery->source);
    out.set_state(std::string(ToString(view.discovery->state)));
    if (view.discovery->answered_ago) out.set_answered_ago_ms(Milliseconds(*view.discovery->answered_ago));
    if (view.discovery->changed_ago) out.set_changed_ago_ms(Milliseconds(*view.discovery->changed_ago));
    out.set_error(view.discovery->error);
  }
}

void ToMessage(const ChangeResult& result, v1::ChangeEndpointsResponse& message) {
  message.set_version(result.version);
  message.set_digest(result.digest);
  message.set_digest_hex(Hex(result.digest));
  message.set_moved_share(result.moved_share);
}

void ToMessage(const LimitView& view, v1::Limit& message) {
  message.set_name(view.name);
  if (IsConcurrency(view.name)) {
    message.mutable_concurrency()->set_max(view.max);
  } else {
    v1::RateLimit& rate = *message.mutable_rate();
    rate.set_rate(view.rate);
    rate.set_burst(view.burst);
    rate.set_capped(view.capped);
  }
  message.set_queue_max(view.queue_max);
  message.set_queue_time_ms(static_cast<uint64_t>(view.queue_time.count()));
  message.set_overridden(view.overridden);
  message.set_waiting(view.waiting);
  message.set_in_use(view.in_use);
  message.set_clients(view.keys);
}

void ToMessage(const CacheView& view, v1::GetCacheResponse& message) {
  const proxy::CacheStats& stats = view.stats;
  message.set_enabled(view.enabled);
  message.set_capacity_bytes(stats.capacity_bytes);
  message.set_usage_bytes(stats.usage_bytes);
  message.set_entries(stats.entries);
  message.set_fetches(stats.fetches);
  message.set_hits(stats.hits);
  message.set_misses(stats.misses);
  message.set_stale(stats.stale);
  message.set_coalesced(stats.coalesced);
  message.set_evicted(stats.evicted);
  message.set_expired(stats.expired);
  message.set_purged(stats.purged);
  for (size_t i = 0; i < proxy::kNotCachedReasons; ++i) {
    v1::NotCached& out = *message.add_not_cached();
    out.set_reason(std::string(ToString(static_cast<proxy::NotCached>(i))));
    out.set_count(stats.not_cached[i]);
  }
}

void ToMessage(const CertificateView& view, v1::Certificate& message) {
  message.set_used_by(view.used_by);
  message.set_purpose(view.purpose == CertificatePurpose::kOwn ? v1::Certificate::PURPOSE_OWN
                                                               : v1::Certificate::PURPOSE_TRUSTED);
  message.set_file(view.file);
  message.set_subject(view.subject);
  message.set_issuer(view.issuer);
  for (const std::string& name : view.names) message.add_names(name);
  message.set_not_before(view.not_before);
  message.set_not_after(view.not_after);
  message.set_days_left(view.days_left);
  message.set_error(view.error);
}

void ToMessage(const ConfigView& view, v1::GetConfigResponse& message) {
  message.set_yaml(view.yaml);
  for (const std::string& error : view.errors) message.add_errors(error);
  for (const std::string& warning : view.warnings) message.add_warnings(warning);
}

void ToMessage(const ReloadResult& result, v1::ReloadResponse& message) {
  for (const std::string& error : result.errors) message.add_errors(error);
  for (const std::string& warning : result.warnings) message.add_warnings(warning);
}

base::Result<upstream::EndpointChange> ToChange(const v1::ChangeEndpointsRequest& request) {
  if (request.cluster().empty()) return Bad("cluster: is needed");
  base::Result<Kind> kind = KindOf(request.kind());
  if (!kind.ok()) return kind.error();
  // An empty list by accident would refuse every call; an empty list on purpose is a drain of each.
  if (*kind == Kind::kReset && !request.endpoints().empty()) return Bad("endpoints: KIND_RESET takes none");
  if (*kind != Kind::kReset && request.endpoints().empty()) return Bad("endpoints: at least one is needed");
  if (request.endpoints_size() > kEndpointsPerChangeMax) {
    return Bad("endpoints: " + std::to_string(request.endpoints_size()) + " are more than the " +
               std::to_string(kEndpointsPerChangeMax) + " of one change");
  }
  EndpointChange change;
  change.kind = *kind;
  change.cluster = request.cluster();
  change.preview = request.preview();
  if (request.has_expected_version()) change.expected_version = request.expected_version();
  if (request.over_ms() > 0 && *kind != Kind::kDrain) return Bad("over_ms: goes with KIND_DRAIN only");
  if (request.over_ms() > static_cast<uint64_t>(upstream::DrainRamp::kOverMax.count()))
    return Bad("over_ms: must be at most a day (86400000)");
  change.over = std::chrono::milliseconds(request.over_ms());
  for (int i = 0; i < request.endpoints_size(); ++i) {
    base::Result<EndpointSpec> spec = ToSpec(request.endpoints(i), *kind, i);
    if (!spec.ok()) return spec.error();
    change.endpoints.push_back(std::move(*spec));
  }
  return change;
}

base::Result<HealthOrder> ToOrder(const v1::SetEndpointHealthRequest& request) {
  using Order = upstream::ClusterHealth::Order;
  if (request.cluster().empty()) return Bad("cluster: is needed");
  if (request.endpoint().empty()) return Bad("endpoint: is needed");
  HealthOrder order{request.cluster(), request.endpoint(), Order::kEject};
  switch (request.action()) {
    case v1::SetEndpointHealthRequest::ACTION_EJECT:
      return order;
    case v1::SetEndpointHealthRequest::ACTION_RESTORE:
      order.order = Order::kRestore;
      return order;
    case v1::SetEndpointHealthRequest::ACTION_RESET_BACKOFF:
      order.order = Order::kResetBackoff;
      return order;
    default:
      return Bad("action: must be one that this daemon knows, not " +
                 std::to_string(static_cast<int>(request.action())));
  }
}

base::Result<LimitChange> ToChange(const v1::ChangeLimitRequest& request) {
  if (request.name().empty()) return Bad("name: is needed, as ListLimits gives it");
  LimitChange change;
  change.name = request.name();
  change.reset = request.reset();
  if (request.has_rate()) change.rate = request.rate();
  if (request.has_burst()) change.burst = request.burst();
  if (request.has_max()) change.max = request.max();
  if (request.has_queue_max()) change.queue_max = request.queue_max();
  // Beyond what a duration holds: the backend says what is allowed.
  constexpr uint64_t kMost = std::chrono::milliseconds(std::chrono::hours(24)).count();
  if (request.has_queue_time_ms())
    change.queue_time = std::chrono::milliseconds(std::min<uint64_t>(request.queue_time_ms(), kMost));
  const bool sets = change.rate || change.burst || change.max || change.queue_max || change.queue_time;
  if (change.reset && sets) return Bad("reset: goes with nothing else; what is configured comes back whole");
  if (!change.reset && !sets)
    return Bad("nothing to change: one of rate, burst, max, queue, queue_time or reset is needed");
  return change;
}

base::Result<proxy::CachePurge> ToPurge(const v1::PurgeCacheRequest& request) {
  if (request.service().find('/') != std::string::npos) return Bad("service: must be like pkg.Service, without a /");
  if (request.method().find('/') != std::string::npos) return Bad("method: must be a name like Get, without a /");
  if (!request.method().empty() && request.service().empty()) return Bad("service: is needed with method");
  if (request.has_key() && request.method().empty()) return Bad("service and method: are needed with key");
  proxy::CachePurge purge{request.service(), request.method(), std::nullopt};
  if (request.has_key()) purge.key = request.key();
  return purge;
}

}  // namespace sluice::admin
