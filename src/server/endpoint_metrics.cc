#include "server/endpoint_metrics.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "proxy/grpc_status.h"
#include "upstream/endpoint_series.h"

namespace sluice::server {
namespace {

using metrics::Samples;
using upstream::EndpointSeries;

static_assert(EndpointSeries::kStatuses == proxy::kGrpcCodes);

// Bounds that are exported: each power of two of nanoseconds from 0.26 ms to 17 s. What is faster is in the first.
constexpr size_t kFirstBound = 8, kLastBound = 24;
static_assert(EndpointSeries::UpperBound(kFirstBound) == 1 << 18);
static_assert(EndpointSeries::UpperBound(kLastBound) == uint64_t{1} << 34);

// Whose counts they are.
struct Owner {
  std::string_view cluster, endpoint;
};

void AddStatuses(const Owner& of, const EndpointSeries::Sums& sums, Samples& out) {
  for (size_t i = 0; i < sums.statuses.size(); ++i) {
    const auto code = static_cast<proxy::GrpcCode>(i);
    if (sums.statuses[i] == 0 && code != proxy::GrpcCode::kOk && !out.all()) continue;
    out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}, {"grpc_status", ToString(code)}},
            static_cast<double>(sums.statuses[i]));
  }
}

using Bounds = std::array<std::string, kLastBound - kFirstBound + 1>;
const Bounds& BoundTexts() {
  static const Bounds texts = [] {
    Bounds out;
    for (size_t i = 0; i < out.size(); ++i) {
      char bound[32];
      std::snprintf(bound, sizeof(bound), "%.10g",
                    static_cast<double>(EndpointSeries::UpperBound(kFirstBound + i)) * 1e-9);
      out[i] = bound;
    }
    return out;
  }();
  return texts;
}

void AddLatency(const Owner& of, const EndpointSeries::Sums& sums, Samples& out) {
  uint64_t all = 0;
  for (const uint64_t n : sums.buckets) all += n;
  if (all == 0 && !out.all()) return;
  uint64_t count = 0;
  for (size_t i = 0; i <= kLastBound; ++i) {
    count += sums.buckets[i];
    if (i < kFirstBound) continue;
    out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}, {"le", BoundTexts()[i - kFirstBound]}},
            static_cast<double>(count), "_bucket");
  }
  out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}, {"le", "+Inf"}}, static_cast<double>(all), "_bucket");
  out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}}, static_cast<double>(sums.nanos) * 1e-9, "_sum");
  out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}}, static_cast<double>(all), "_count");
}

void AddLatencyMax(const Owner& of, const EndpointSeries::Sums& sums, Samples& out) {
  if (sums.max == 0 && !out.all()) return;
  out.Add({{"cluster", of.cluster}, {"endpoint", of.endpoint}}, static_cast<double>(sums.max) / 1e9);
}

void AddDurationMax(const std::string& route, const std::string& cluster, const proxy::RouteMetrics& metrics,
                    Samples& out) {
  const uint64_t max = metrics.duration->Read().max;
  if (max == 0 && !out.all()) return;
  out.Add({{"cluster", cluster}, {"route", route}}, static_cast<double>(max) / 1e9);
}

void CollectDurationMax(const Clusters& clusters, Samples& out) {
  for (const proxy::Route& route : clusters.snapshot()->config->routes.routes()) {
    if (route.split == nullptr) {
      AddDurationMax(route.options.name, route.options.cluster, route.metrics, out);
      continue;
    }
    for (const proxy::ClusterSplit::Part& part : route.split->parts())
      AddDurationMax(route.options.name, part.name, part.metrics, out);
  }
}

// The samples that `add` makes of the counts of each endpoint with series of its own, and of all others together.
template <typename Add>
void Collect(Clusters& clusters, Samples& out, Add add) {
  for (const auto& state : clusters.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints) {
      upstream::Endpoint& endpoint = *listed.endpoint;
      if (endpoint.has_own_series()) add(Owner{state->name(), endpoint.name()}, endpoint.series().Read(), out);
    }
    const EndpointSeries::Sums shared = state->load->shared_series().Read();
    const auto counted = [](uint64_t n) { return n != 0; };
    if (std::any_of(shared.statuses.begin(), shared.statuses.end(), counted) ||
        std::any_of(shared.buckets.begin(), shared.buckets.end(), counted)) {
      add(Owner{state->name(), "overflow"}, shared, out);
    }
  }
}

// Of those in a list only: an endpoint that has left has no health. Those without series of their own have no sum that
// would mean anything.
void CollectStates(Clusters& clusters, Samples& out) {
  for (const auto& state : clusters.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints) {
      const upstream::Endpoint& endpoint = *listed.endpoint;
      if (!endpoint.has_own_series()) continue;
      out.Add({{"cluster", state->name()}, {"endpoint", endpoint.name()}}, static_cast<double>(endpoint.shown_state()));
    }
  }
}

}  // namespace

void AddEndpointMetrics(metrics::Registry& registry, Clusters& clusters) {
  registry.AddCollector("sluice_endpoint_calls_total", "Attempts ended, by the gRPC status they ended with.", "counter",
                        [&clusters](Samples& out) { Collect(clusters, out, AddStatuses); });
  registry.AddCollector("sluice_endpoint_latency_seconds",
                        "From the request of an attempt to the headers of its response.", "histogram",
                        [&clusters](Samples& out) { Collect(clusters, out, AddLatency); });
  registry.AddCollector("sluice_endpoint_latency_max_seconds",
                        "The longest from the request of an attempt to the headers of its response.", "gauge",
                        [&clusters](Samples& out) { Collect(clusters, out, AddLatencyMax); });
  registry.AddCollector("sluice_call_duration_max_seconds", "The longest time from a call's first byte to its end.",
                        "gauge", [&clusters](Samples& out) { CollectDurationMax(clusters, out); });
  registry.AddCollector("sluice_endpoint_state",
                        "0 up, 1 suspect, 2 ejected, 3 probing, 4 warming, 5 draining, 6 not_serving.", "gauge",
                        [&clusters](Samples& out) { CollectStates(clusters, out); });
}

}  // namespace sluice::server
