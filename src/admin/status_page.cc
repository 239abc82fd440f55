// The overview: what needs a look, the process in a row of numbers, a row for each cluster, and the endpoints.
#include "admin/status_page.h"

#include <algorithm>
#include <cstdio>

#include "admin/endpoint_table.h"
#include "admin/html.h"
#include "admin/picture.h"

namespace sluice::admin {
namespace {

size_t CountUnwell(const ClusterView& cluster) {
  return static_cast<size_t>(std::count_if(cluster.endpoints.begin(), cluster.endpoints.end(), Unwell));
}

// In the list: one that has left it finishes its calls and is no part of the cluster.
size_t CountListed(const ClusterView& cluster) {
  return static_cast<size_t>(std::count_if(cluster.endpoints.begin(), cluster.endpoints.end(), [](const auto& each) {
    return each.state != upstream::EndpointState::kRemoved;
  }));
}

size_t CountWell(const ClusterView& cluster) {
  return static_cast<size_t>(std::count_if(cluster.endpoints.begin(), cluster.endpoints.end(), IsWell));
}

void AppendHeader(std::string& out, const ServerView& server) {
  const std::string state = server.draining ? Marked(Mark::kNote, "draining")
                            : server.ready  ? Marked(Mark::kGood, "ready")
                                            : Marked(Mark::kBad, "not ready");
  Append(out, "<header><a class=\"brand\" href=\"/\">Sluice</a><span class=\"state\">", state, "</span><p>",
         EscapeHtml(server.version), server.config_file.empty() ? "" : " · ", Shown(server.config_file), " · process ",
         std::to_string(server.pid), " · up ", SpanText(std::chrono::seconds(server.uptime_seconds)), " · ",
         CountText(server.workers), server.workers == 1 ? " worker" : " workers", "</p></header>\n");
}

void Tile(std::string& out, std::string_view name, std::string_view value, std::string_view attributes = "") {
  Append(out, "<div", attributes, "><dt>", name, "</dt><dd>", value, "</dd></div>");
}

void AppendTiles(std::string& out, const StatusParts& parts, const std::vector<ClusterView>& clusters,
                 const TrafficHistory& history) {
  uint64_t waiting = 0;
  for (const LimitView& limit : parts.limits) waiting += limit.waiting;
  size_t endpoints = 0, well = 0;
  for (const ClusterView& cluster : clusters) {
    endpoints += CountListed(cluster);
    well += CountWell(cluster);
  }
  const std::vector<TrafficPoint> points = history.OfAll();
  out += "<dl class=\"tiles\">";
  if (!points.empty()) {
    const TrafficPoint& last = points.back();
    Tile(out, "Calls a second <i class=\"f\"></i> failed", NumberText(last.calls) + RatePicture(points, 240, 30),
         " class=\"broad\"");
    Tile(out, "Failed a second", NumberText(last.failed));
    Tile(out, "p50 / p99", last.calls > 0 ? LatencyText(last.p50) + " / " + LatencyText(last.p99) : "no call",
         " class=\"broad\"");
  }
  Tile(out, "Calls under way", CountText(parts.server.calls_in_flight));
  Tile(out, "Calls waiting", CountText(waiting));
  Tile(out, "Connections", CountText(parts.server.downstream_connections));
  Tile(out, "Endpoints well", CountText(well) + " of " + CountText(endpoints));
  out += "</dl>\n";
}

// A line for each kind of thing that an operator should look at, above all others.
void AppendAlerts(std::string& out, const StatusParts& parts, const std::vector<ClusterView>& clusters) {
  size_t unwell = 0, lagging = 0;
  std::string dead;
  for (const ClusterView& cluster : clusters) {
    const size_t sick = CountUnwell(cluster);
    unwell += sick;
    if (sick != 0 && sick == cluster.endpoints.size() && dead.size() < kShownBytesMax)
      Append(dead, dead.empty() ? "" : ", ", cluster.name);
    if (cluster.discovery && Lagging(*cluster.discovery)) ++lagging;
  }
  uint64_t waiting = 0;
  for (const LimitView& limit : parts.limits) waiting += limit.waiting;
  const auto certificates = std::count_if(parts.certificates.begin(), parts.certificates.end(), NeedsCare);
  std::string lines;
  const auto line = [&lines](Mark mark, std::string_view text) {
    Append(lines, "<li>", Marked(mark, text), "</li>\n");
  };
  if (!dead.empty()) line(Mark::kBad, "No endpoint is well of: " + dead);
  if (unwell != 0)
    line(Mark::kBad, CountText(unwell) + (unwell == 1 ? " endpoint is" : " endpoints are") + " not well");
  if (parts.reload && !parts.reload->result.errors.empty())
    line(Mark::kBad, "The last reload, " + SpanText(parts.reload->ago) + " ago, has failed");
  if (certificates != 0)
    line(Mark::kBad, CountText(static_cast<uint64_t>(certificates)) + " certificates to look after");
  if (lagging != 0)
    line(Mark::kNote, CountText(lagging) + (lagging == 1 ? " list is" : " lists are") + " not what the source says");
  if (waiting != 0)
    line(Mark::kNote, CountText(waiting) + (waiting == 1 ? " call waits" : " calls wait") + " for a limit");
  if (parts.server.draining) line(Mark::kNote, "The process ends when its calls are done");
  if (lines.empty()) line(Mark::kGood, "All endpoints are well, and no call waits for a limit");
  Append(out, "<ul class=\"alerts\">\n", lines, "</ul>\n");
}

std::string NameLink(const ClusterView& cluster) {
  return "<a href=\"/cluster?name=" + EscapeQuery(cluster.name) + "\">" + Shown(cluster.name) + "</a>";
}

void AppendCluster(std::string& out, const ClusterView& cluster, const TrafficHistory& history) {
  const size_t all = CountListed(cluster), unwell = CountUnwell(cluster), taking = CountWell(cluster);
  Append(out, unwell == 0 ? "<tr>" : "<tr class=\"bad\">", "<td>", NameLink(cluster), "</td>");
  Append(out, "<td>",
         Marked(unwell != 0 ? Mark::kBad : (taking < all || all == 0 ? Mark::kOff : Mark::kGood),
                CountText(taking) + " of " + CountText(all) + " well"),
         "</td>");
  const std::vector<TrafficPoint> points = history.Of(cluster.name);
  if (points.empty()) {
    out += "<td></td><td></td><td></td><td></td><td></td>";
  } else {
    const TrafficPoint& last = points.back();
    NumberCell(out, NumberText(last.calls));
    Append(out, "<td>", RatePicture(points, 120, 22), "</td>");
    Append(out, "<td class=\"n\">", NumberText(last.failed));
    if (const std::string why = FailuresText(history.Statuses(cluster.name)); !why.empty())
      Append(out, "<span class=\"dim\">", why, "</span>");
    out += "</td>";
    NumberCell(out, last.calls > 0 ? LatencyText(last.p50) : "");
    NumberCell(out, last.calls > 0 ? LatencyText(last.p99) : "");
  }
  Cell(out, ClusterLine(cluster));
  out += "</tr>\n";
}

void AppendClusters(std::string& out, const std::vector<ClusterView>& clusters, const TrafficHistory& history,
                    const PageRange& range) {
  BeginTable(out, "Clusters",
             {"Cluster", "Endpoints", "#Calls/s", "Last 10 minutes: <i></i> calls <i class=\"f\"></i> failed",
              "#Failed/s", "#p50", "#p99", "List"});
  for (size_t i = range.from; i < range.to; ++i) AppendCluster(out, clusters[i], history);
  EndTable(out);
  AppendPager(out, clusters.size(), "clusters", range.page, range.pages, "/?page=");
}

// Of all clusters, not only those of the page.
void AppendUnwell(std::string& out, const std::vector<ClusterView>& clusters) {
  size_t all = 0, shown = 0;
  std::string rows;
  for (const ClusterView& cluster : clusters) {
    size_t of_cluster = 0;
    for (const EndpointView& endpoint : cluster.endpoints) {
      if (!Unwell(endpoint)) continue;
      ++all;
      if (++of_cluster > kUnwellPerCluster || shown == kUnwellShown) continue;
      ++shown;
      Append(rows, "<tr class=\"bad\"><td>", NameLink(cluster), "</td>");
      Cell(rows, endpoint.name);
      Append(rows, "<td>", StateText(endpoint), "</td><td class=\"w\">", WhyText(endpoint), "</td></tr>\n");
    }
  }
  if (shown == 0) return;
  BeginTable(out, "Endpoints that are not well", {"Cluster", "Endpoint", "State", "Why"});
  out += rows;
  EndTable(out);
  if (all > shown) Append(out, "<p class=\"pager\">", CountText(all - shown), " more: in the clusters' pages</p>\n");
}

// Where they are few, all of them, cluster by cluster, those that are not well first; false: they are too many.
bool AppendAllEndpoints(std::string& out, const std::vector<ClusterView>& clusters, const TrafficHistory& history,
                        const PageRange& range) {
  size_t endpoints = 0;
  for (size_t i = range.from; i < range.to; ++i) endpoints += clusters[i].endpoints.size();
  if (endpoints > kEndpointsInOverview || range.pages > 1) return false;
  for (size_t i = range.from; i < range.to; ++i) {
    std::vector<const EndpointView*> of_cluster;
    for (const EndpointView& endpoint : clusters[i].endpoints) of_cluster.push_back(&endpoint);
    std::stable_partition(of_cluster.begin(), of_cluster.end(), [](const auto* each) { return Unwell(*each); });
    if (!of_cluster.empty()) AppendEndpoints(out, clusters[i].name, clusters[i], of_cluster, history);
  }
  return true;
}

}  // namespace

std::string FailuresText(const StatusRates& rates) {
  std::string out;
  for (size_t i = 1; i < rates.size(); ++i) {
    if (rates[i] > 0)
      Append(out, out.empty() ? "" : ", ", ToString(static_cast<proxy::GrpcCode>(i)), " ", NumberText(rates[i]), "/s");
  }
  return out;
}

std::string ClusterLine(const ClusterView& cluster) {
  // Equal on all proxies that have the same list; sluicectl has it whole, and the version.
  char digest[16];
  std::snprintf(digest, sizeof(digest), "%08x", static_cast<unsigned>(cluster.digest >> 32));
  std::string out = cluster.policy + ", list " + digest;
  if (cluster.source == upstream::ListSource::kRpc) out += ", changed by RPC";
  if (cluster.discovery) Append(out, ", list from ", cluster.discovery->source);
  return out;
}

std::string RenderStatusPage(const StatusParts& parts, const std::vector<ClusterView>& clusters,
                             const TrafficHistory& history, size_t page) {
  const PageRange range(clusters.size(), kClustersPerPage, page);
  std::string out = BeginPage("Sluice");
  AppendHeader(out, parts.server);
  AppendTiles(out, parts, clusters, history);
  AppendAlerts(out, parts, clusters);
  std::string endpoints;
  const bool all = AppendAllEndpoints(endpoints, clusters, history, range);
  if (!all) AppendUnwell(out, clusters);
  AppendClusters(out, clusters, history, range);
  out += endpoints;
  AppendReasons(out, parts.reasons, history);
  AppendFailedCalls(out, parts.failed, kFailedCallsInOverview);
  AppendHotKeys(out, parts.hot_keys);
  AppendLimits(out, parts.limits);
  AppendCache(out, parts.cache);
  AppendSources(out, clusters, parts.xds);
  AppendReload(out, parts.reload);
  AppendCertificates(out, parts.certificates);
  EndPage(out);
  return out;
}

}  // namespace sluice::admin
