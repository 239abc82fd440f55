#include "proxy/proxy_metrics.h"

#include <string>

namespace sluice::proxy {
namespace {

constexpr const char* kRetries = "sluice_retries_total";
constexpr const char* kRetriesHelp = "Attempts that failed and were followed by another.";

}  // namespace

ProxyMetrics::ProxyMetrics(metrics::Registry& registry) : abuse(registry) {
  calls_in_flight = registry.AddGauge("sluice_calls_in_flight", "Calls received and not yet answered.");
  downstream_connections = registry.AddGauge("sluice_downstream_connections", "Client connections open.");
  downstream_connections_total =
      registry.AddCounter("sluice_downstream_connections_total", "Client connections accepted.");
  downstream_connections_refused = registry.AddCounter(
      "sluice_downstream_connections_refused_total", "Client connections closed at once: their address has too many.");
  for (size_t i = 0; i < 2; ++i) {
    grpc_web_requests[i] = registry.AddCounter("sluice_grpc_web_requests_total", "Requests that came as gRPC-Web.",
                                               {{"encoding", i == 1 ? "text" : "binary"}});
    cors_preflights[i] =
        registry.AddCounter("sluice_cors_preflights_total", "Preflight requests of CORS, which the proxy answers.",
                            {{"origin", i == 1 ? "allowed" : "refused"}});
  }
  memory_read_pauses = registry.AddCounter("sluice_memory_read_pauses_total",
                                           "Times a connection was not read because the process holds too much.");
  memory_connections_closed = registry.AddCounter("sluice_memory_connections_closed_total",
                                                  "Client connections closed because they held most of too much.");
  for (size_t i = 0; i < http2::kTimeouts; ++i) {
    timeouts[i] = registry.AddCounter("sluice_downstream_timeouts_total",
                                      "Client connections, or calls of theirs, that a bound in time ended.",
                                      {{"timeout", std::string(ToString(static_cast<http2::Timeout>(i)))}});
  }
  for (size_t kind = 0; kind < kKinds; ++kind) {
    metrics::Labels labels = {{"reason", std::string(base::Reason(static_cast<base::ErrorKind>(kind)))}};
    errors[kind] =
        registry.AddCounter("sluice_proxy_errors_total", "Calls that the proxy itself ended with an error.", labels);
    retries[kind] = registry.AddCounter(kRetries, kRetriesHelp, labels);
  }
  for (size_t code = 0; code < kGrpcCodes; ++code) {
    status_retries[code] =
        registry.AddCounter(kRetries, kRetriesHelp, {{"reason", std::string(ToString(static_cast<GrpcCode>(code)))}});
  }
  for (size_t i = 0; i < failed_calls.size(); ++i) {
    failed_calls[i] = registry.AddCounter("sluice_failed_calls_total",
                                          "Calls that the proxy ended, by whether a backend may have worked on them.",
                                          {{"processed", std::string(ProcessedText(i == 1))}});
  }
  constexpr const char* kRefused[] = {"retry", "unprocessed", "hedge"};
  for (size_t i = 0; i < retry_budget_refused.size(); ++i) {
    retry_budget_refused[i] = registry.AddCounter(
        "sluice_retry_budget_refused_total", "Attempts that were not made because the cluster's budget had no credit.",
        {{"kind", kRefused[i]}});
  }
  constexpr const char* kFaults[] = {"delay", "abort", "reset"};
  for (size_t i = 0; i < faults.size(); ++i) {
    faults[i] =
        registry.AddCounter("sluice_faults_injected_total", "Failures of calls that operators have asked for, by kind.",
                            {{"kind", kFaults[i]}});
  }
  constexpr const char* kHedges[] = {"won", "lost", "took_over", "failed", "abandoned"};
  for (size_t i = 0; i < hedges.size(); ++i) {
    hedges[i] = registry.AddCounter(
        "sluice_hedges_total", "Second attempts beside a first one, by what became of them.", {{"result", kHedges[i]}});
  }
}

}  // namespace sluice::proxy
