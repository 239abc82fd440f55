#include "upstream/endpoint.h"

#include "base/check.h"

namespace sluice::upstream {

Endpoint::Endpoint(std::string cluster, std::string name, net::Address address,
                   std::shared_ptr<const ClusterOptions> options, std::shared_ptr<ClusterLoad> load, uint32_t workers,
                   metrics::Registry& registry)
    : cluster_(std::move(cluster)),
      name_(std::move(name)),
      address_(std::move(address)),
      options_(std::move(options)),
      load_(std::move(load)),
      concurrency_(std::make_shared<limits::ConcurrencyLimiter>(options_->endpoint_concurrency)),
      pools_(workers, nullptr),
      links_(workers) {
  metrics::Labels labels = {{"cluster", cluster_}, {"endpoint", name_}};
  metrics_.calls = registry.AddCounter("sluice_endpoint_calls_total", "Attempts sent to the endpoint.", labels);
  metrics_.failures =
      registry.AddCounter("sluice_endpoint_failures_total", "Attempts that ended without a response.", labels);
  metrics_.in_flight = registry.AddGauge("sluice_endpoint_in_flight", "Attempts in flight.", labels);
  metrics_.connections = registry.AddGauge("sluice_upstream_connections", "Connections open to the endpoint.", labels);
  metrics_.connects = registry.AddCounter("sluice_upstream_connects_total", "Connections opened.", labels);
  metrics_.connect_failures =
      registry.AddCounter("sluice_upstream_connect_failures_total", "Connections that failed to open.", labels);
  metrics_.timeouts =
      registry.AddCounter("sluice_upstream_timeouts_total",
                          "Connections to the endpoint, or calls on them, that a bound in time ended.", labels);
}

Endpoint::~Endpoint() {
  for (EndpointPool* pool : pools_) SLUICE_CHECK(pool == nullptr);
}

Endpoint::Link Endpoint::link() const {
  bool seen[4] = {};
  for (const auto& link : links_) seen[static_cast<size_t>(link.load(std::memory_order_relaxed))] = true;
  if (seen[static_cast<size_t>(Link::kConnected)]) return Link::kConnected;
  if (seen[static_cast<size_t>(Link::kConnecting)]) return Link::kConnecting;
  if (seen[static_cast<size_t>(Link::kBackoff)]) return Link::kBackoff;
  return Link::kIdle;
}

std::string_view ToString(Endpoint::Link link) {
  switch (link) {
    case Endpoint::Link::kIdle:
      return "idle";
    case Endpoint::Link::kConnecting:
      return "connecting";
    case Endpoint::Link::kConnected:
      return "connected";
    case Endpoint::Link::kBackoff:
      return "backoff";
  }
  return "idle";
}

}  // namespace sluice::upstream
