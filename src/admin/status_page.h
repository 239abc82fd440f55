// The pages of the HTTP port: HTML that needs no script, and nothing from elsewhere. Everything that came from outside
// is escaped. Each is bounded: long lists are in pages of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "admin/backend.h"
#include "admin/traffic_history.h"

namespace sluice::admin {

inline constexpr size_t kClustersPerPage = 50;
inline constexpr size_t kEndpointsPerPage = 100;
// In the overview: all endpoints of its clusters where there are no more than these; else those that are not well, of
// each cluster and altogether. All are in the cluster's page.
inline constexpr size_t kEndpointsInOverview = 40;
inline constexpr size_t kUnwellPerCluster = 5;
inline constexpr size_t kUnwellShown = 30;
inline constexpr size_t kLimitsShown = 30;
inline constexpr size_t kSourcesShown = 30;
inline constexpr size_t kLinesShown = 30;  // of a reload
// Of the calls that failed last, in the overview and in their page.
inline constexpr size_t kFailedCallsInOverview = 8;
inline constexpr size_t kFailedCallsShown = 100;
// A key is shown that has certainly this share of its cluster's calls; of all clusters so many.
inline constexpr double kHotKeyShare = 0.02;
inline constexpr size_t kHotKeysShown = 20;
// A certificate that ends sooner is shown.
inline constexpr int64_t kCertificateDays = 14;

struct StatusParts {
  ServerView server;
  std::vector<LimitView> limits;
  CacheView cache;
  std::vector<CertificateView> certificates;
  std::vector<ReasonCount> reasons;
  std::optional<discovery::XdsView> xds;
  std::optional<ReloadView> reload;
  FailedCallsView failed;
  std::vector<HotKeysView> hot_keys;
};

// At /: the process, its clusters in pages of kClustersPerPage, failures, limits, cache, sources of lists, the last
// reload, certificates. `page` from 1 on.
std::string RenderStatusPage(const StatusParts& parts, const std::vector<ClusterView>& clusters,
                             const TrafficHistory& history, size_t page);
// At /cluster?name=: all of a cluster, its endpoints in pages of kEndpointsPerPage, those that are not well first.
std::string RenderClusterPage(const ClusterView& cluster, const TrafficHistory& history, size_t page);
// At /calls: the calls that failed last, each with its phases.
std::string RenderCallsPage(const FailedCallsView& failed);

// "ring_hash, version 7, changed by RPC"
std::string ClusterLine(const ClusterView& cluster);
// "UNAVAILABLE 3.00/s, CANCELLED 0.20/s"; empty: none failed.
std::string FailuresText(const StatusRates& rates);
// The list in force is not what its source says.
bool Lagging(const discovery::DiscoveryView& source);

// Parts of the overview; each appends nothing where there is nothing to say.
void AppendReasons(std::string& out, const std::vector<ReasonCount>& reasons, const TrafficHistory& history);
void AppendHotKeys(std::string& out, const std::vector<HotKeysView>& clusters);
void AppendFailedCalls(std::string& out, const FailedCallsView& failed, size_t shown);
void AppendLimits(std::string& out, const std::vector<LimitView>& limits);
void AppendCache(std::string& out, const CacheView& cache);
void AppendSources(std::string& out, const std::vector<ClusterView>& clusters,
                   const std::optional<discovery::XdsView>& xds);
void AppendReload(std::string& out, const std::optional<ReloadView>& reload);
void AppendCertificates(std::string& out, const std::vector<CertificateView>& certificates);
bool NeedsCare(const CertificateView& certificate);

// The frame of a page.
std::string BeginPage(std::string_view title);
void EndPage(std::string& out);

}  // namespace sluice::admin
