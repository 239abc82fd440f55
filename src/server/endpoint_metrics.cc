#include "server/endpoint_metrics.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/grpc_status.h"
#include "upstream/endpoint_series.h"

namespace sluice::server {
namespace {

using metrics::Labels;
using metrics::Sample;
using upstream::EndpointSeries;
using Samples = std::vector<Sample>;

static_assert(EndpointSeries::kStatuses == proxy::kGrpcCodes);

// Bounds that are exported: each power of two of nanoseconds from 0.26 ms to 17 s. What is faster is in the first.
constexpr size_t kFirstBound = 8, kLastBound = 24;
static_assert(EndpointSeries::UpperBound(kFirstBound) == 1 << 18);
static_assert(EndpointSeries::UpperBound(kLastBound) == uint64_t{1} << 34);

void AddStatuses(const Labels& of, const EndpointSeries::Sums& sums, Samples* out) {
  for (size_t i = 0; i < sums.statuses.size(); ++i) {
    const auto code = static_cast<proxy::GrpcCode>(i);
    if (sums.statuses[i] == 0 && code != proxy::GrpcCode::kOk) continue;
    Labels labels = of;
    labels.emplace_back("grpc_status", ToString(code));
    out->push_back({std::move(labels), static_cast<double>(sums.statuses[i])});
  }
}

void AddLatency(const Labels& of, const EndpointSeries::Sums& sums, Samples* out) {
  uint64_t count = 0;
  auto add_bucket = [&](std::string_view bound) {
    Labels labels = of;
    labels.emplace_back("le", bound);
    out->push_back({std::move(labels), static_cast<double>(count), "_bucket"});
  };
  for (size_t i = 0; i < sums.buckets.size(); ++i) {
    count += sums.buckets[i];
    if (i < kFirstBound || i > kLastBound) continue;
    char bound[32];
    std::snprintf(bound, sizeof(bound), "%.10g", static_cast<double>(EndpointSeries::UpperBound(i)) * 1e-9);
    add_bucket(bound);
  }
  add_bucket("+Inf");
  out->push_back({of, static_cast<double>(sums.nanos) * 1e-9, "_sum"});
  out->push_back({of, static_cast<double>(count), "_count"});
}

// The samples that `add` makes of the counts of each endpoint with series of its own, and of all others together.
template <typename Add>
Samples Collect(Clusters& clusters, Add add) {
  Samples out;
  for (const auto& state : clusters.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints) {
      upstream::Endpoint& endpoint = *listed.endpoint;
      if (!endpoint.has_own_series()) continue;
      add(Labels{{"cluster", state->name()}, {"endpoint", endpoint.name()}}, endpoint.series().Read(), &out);
    }
    const EndpointSeries::Sums shared = state->load->shared_series().Read();
    const auto counted = [](uint64_t n) { return n != 0; };
    if (std::any_of(shared.statuses.begin(), shared.statuses.end(), counted) ||
        std::any_of(shared.buckets.begin(), shared.buckets.end(), counted)) {
      add(Labels{{"cluster", state->name()}, {"endpoint", "overflow"}}, shared, &out);
    }
  }
  return out;
}

// Of those in a list only: an endpoint that has left has no health. Those without series of their own have no sum that
// would mean anything.
Samples CollectStates(Clusters& clusters) {
  Samples out;
  for (const auto& state : clusters.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints) {
      const upstream::Endpoint& endpoint = *listed.endpoint;
      if (!endpoint.has_own_series()) continue;
      out.push_back({Labels{{"cluster", state->name()}, {"endpoint", endpoint.name()}},
                     static_cast<double>(endpoint.shown_state())});
    }
  }
  return out;
}

}  // namespace

void AddEndpointMetrics(metrics::Registry& registry, Clusters& clusters) {
  registry.AddCallback("sluice_endpoint_calls_total", "Attempts ended, by the gRPC status they ended with.", "counter",
                       [&clusters] { return Collect(clusters, AddStatuses); });
  registry.AddCallback("sluice_endpoint_latency_seconds",
                       "From the request of an attempt to the headers of its response.", "histogram",
                       [&clusters] { return Collect(clusters, AddLatency); });
  registry.AddCallback("sluice_endpoint_state",
                       "0 up, 1 suspect, 2 ejected, 3 probing, 4 warming, 5 draining, 6 not_serving.", "gauge",
                       [&clusters] { return CollectStates(clusters); });
}

}  // namespace sluice::server
