// The page of a cluster: its traffic, each endpoint with why it is as it is, and the last changes of their health.
#include <algorithm>

#include "admin/endpoint_table.h"
#include "admin/html.h"
#include "admin/picture.h"
#include "admin/status_page.h"

namespace sluice::admin {
namespace {

void AppendHead(std::string& out, const ClusterView& cluster) {
  Append(out, "<header><a class=\"brand\" href=\"/\">Sluice</a><p>cluster</p></header>\n<h1>", Shown(cluster.name),
         "</h1>\n<p class=\"dim\">", Shown(ClusterLine(cluster)), "</p>\n");
  if (!cluster.discovery) return;
  const discovery::DiscoveryView& source = *cluster.discovery;
  const Mark mark = !source.error.empty() ? Mark::kBad : (Lagging(source) ? Mark::kNote : Mark::kGood);
  Append(out, "<p>", Marked(mark, ToString(source.state)));
  if (source.answered_ago) Append(out, ", heard ", SpanText(*source.answered_ago), " ago");
  if (source.changed_ago) Append(out, ", the list changed ", SpanText(*source.changed_ago), " ago");
  if (!source.error.empty()) Append(out, ": ", Shown(source.error));
  out += "</p>\n";
}

void AppendTraffic(std::string& out, const ClusterView& cluster, const TrafficHistory& history) {
  const std::vector<TrafficPoint> points = history.Of(cluster.name);
  if (points.empty()) return;
  const TrafficPoint& last = points.back();
  const std::string failures = FailuresText(history.Statuses(cluster.name));
  Append(out,
         "<dl class=\"tiles\"><div class=\"broad\"><dt>Calls a second, last 10 minutes <i class=\"f\"></i> "
         "failed</dt><dd>",
         NumberText(last.calls), RatePicture(points, 360, 48), "</dd></div><div class=\"broad\"><dt>p50 / p99</dt><dd>",
         last.calls > 0 ? LatencyText(last.p50) + " / " + LatencyText(last.p99) : "no call",
         LatencyPicture(points, 360, 48), "</dd></div><div><dt>Failed a second</dt><dd>", NumberText(last.failed),
         "</dd></div></dl>\n");
  if (!failures.empty()) Append(out, "<p>", Marked(Mark::kNote, "Failed: " + failures), "</p>\n");
}

void AppendAllOfThem(std::string& out, const ClusterView& cluster, const TrafficHistory& history, size_t page) {
  std::vector<const EndpointView*> endpoints;
  for (const EndpointView& endpoint : cluster.endpoints) endpoints.push_back(&endpoint);
  std::stable_partition(endpoints.begin(), endpoints.end(), [](const EndpointView* each) { return Unwell(*each); });
  const PageRange range(endpoints.size(), kEndpointsPerPage, page);
  AppendEndpoints(out, "Endpoints", cluster,
                  {endpoints.begin() + static_cast<std::ptrdiff_t>(range.from),
                   endpoints.begin() + static_cast<std::ptrdiff_t>(range.to)},
                  history);
  AppendPager(out, endpoints.size(), "endpoints", range.page, range.pages,
              "/cluster?name=" + EscapeQuery(cluster.name) + "&amp;page=");
}

void AppendChanges(std::string& out, const ClusterView& cluster) {
  if (cluster.health_changes.empty()) return;
  BeginTable(out, "Last changes of health", {"Ago", "Endpoint", "From", "To", "Why"});
  for (auto it = cluster.health_changes.rbegin(); it != cluster.health_changes.rend(); ++it) {
    out += "<tr>";
    Cell(out, SpanText(it->ago));
    Cell(out, it->endpoint);
    Cell(out, ToString(it->from));
    Cell(out, ToString(it->to));
    Cell(out, it->why);
    out += "</tr>\n";
  }
  EndTable(out);
}

}  // namespace

std::string RenderClusterPage(const ClusterView& cluster, const TrafficHistory& history, size_t page) {
  std::string out = BeginPage(cluster.name + " - Sluice");
  AppendHead(out, cluster);
  AppendTraffic(out, cluster, history);
  AppendAllOfThem(out, cluster, history, page);
  AppendChanges(out, cluster);
  EndPage(out);
  return out;
}

}  // namespace sluice::admin
