// Parts of the overview beside the clusters: failures, limits, cache, sources of lists, the last reload, certificates.
#include <algorithm>

#include "admin/html.h"
#include "admin/status_page.h"

namespace sluice::admin {
namespace {

void Row(std::string& out, std::string_view name, std::string_view value) {
  Append(out, "<tr><th>", EscapeHtml(name), "</th><td>", Shown(value), "</td></tr>\n");
}

void BeginRows(std::string& out, std::string_view title) {
  Append(out, "<h2>", title, "</h2>\n<div class=\"wide\"><table><tbody>\n");
}

void AppendMore(std::string& out, size_t all, size_t shown, std::string_view where) {
  if (all > shown) Append(out, "<p class=\"pager\">", CountText(all - shown), " more: ", where, "</p>\n");
}

bool InForce(const LimitView& limit) {
  return limit.max != 0 || limit.rate != 0 || limit.overridden || limit.waiting != 0;
}

std::string Bound(const LimitView& limit) {
  if (limit.max != 0) return CountText(limit.max) + " at once";
  if (limit.rate != 0)
    return NumberText(limit.rate) + " a second, burst " + CountText(limit.burst) + (limit.capped ? ", capped" : "");
  return "none";
}

Mark MarkOf(const discovery::DiscoveryView& source) {
  if (!source.error.empty()) return Mark::kBad;
  return Lagging(source) ? Mark::kNote : Mark::kGood;
}

void AppendXds(std::string& out, const discovery::XdsView& xds) {
  size_t refused = 0;
  for (const discovery::XdsResourceView& each : xds.resources)
    refused += each.state == discovery::XdsResourceState::kNacked ? 1 : 0;
  const bool well = xds.error.empty() && refused == 0;
  std::string line = xds.server < xds.servers.size() ? xds.servers[xds.server] : "no server";
  Append(line, ", stream ", ToString(xds.stream), ", ", CountText(xds.resources.size()), " resources");
  if (refused != 0) Append(line, ", ", CountText(refused), " refused");
  if (!xds.error.empty()) Append(line, ": ", xds.error);
  Append(out, "<p class=\"pager\">", Marked(well ? Mark::kGood : Mark::kBad, "xDS"), " ", Shown(line), "</p>\n");
}

void AppendLines(std::string& out, std::string_view name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  Append(out, "<tr><th>", name, "</th><td>");
  for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) Append(out, i == 0 ? "" : "<br/>", Shown(lines[i]));
  if (lines.size() > kLinesShown) Append(out, "<br/>and ", CountText(lines.size() - kLinesShown), " more");
  out += "</td></tr>\n";
}

}  // namespace

void AppendReasons(std::string& out, const std::vector<ReasonCount>& reasons, const TrafficHistory& history) {
  if (reasons.empty()) return;
  std::vector<const ReasonCount*> sorted;
  for (const ReasonCount& each : reasons) sorted.push_back(&each);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const ReasonCount* a, const ReasonCount* b) {
    const double left = history.RateOf(a->reason), right = history.RateOf(b->reason);
    return left != right ? left > right : a->count > b->count;
  });
  BeginTable(out, "Calls that Sluice itself failed, by reason", {"Reason", "#A second", "#Since the start"});
  for (const ReasonCount* each : sorted) {
    const double rate = history.RateOf(each->reason);
    out += rate > 0 ? "<tr class=\"note\">" : "<tr>";
    Cell(out, each->reason);
    NumberCell(out, NumberText(rate));
    NumberCell(out, CountText(each->count));
    out += "</tr>\n";
  }
  EndTable(out);
}

// Those in force; the fullest queue first.
void AppendLimits(std::string& out, const std::vector<LimitView>& all) {
  std::vector<const LimitView*> limits;
  for (const LimitView& limit : all) {
    if (InForce(limit)) limits.push_back(&limit);
  }
  if (limits.empty()) return;
  std::stable_sort(limits.begin(), limits.end(),
                   [](const LimitView* a, const LimitView* b) { return a->waiting > b->waiting; });
  BeginTable(out, "Limits", {"Limit", "Bound", "#In use", "#Waiting", "#Queue", "#Clients", "Set by"});
  for (size_t i = 0; i < std::min(limits.size(), kLimitsShown); ++i) {
    const LimitView& limit = *limits[i];
    Append(out, limit.waiting != 0 ? "<tr class=\"note\"><td>" : "<tr><td>",
           limit.waiting != 0 ? Marked(Mark::kNote, limit.name) : Shown(limit.name), "</td>");
    Cell(out, Bound(limit));
    NumberCell(out, CountText(limit.in_use));
    NumberCell(out, CountText(limit.waiting));
    NumberCell(out, CountText(limit.queue_max));
    NumberCell(out, limit.keys == 0 ? "" : CountText(limit.keys));
    Cell(out, limit.overridden ? "sluicectl" : "configuration");
    out += "</tr>\n";
  }
  EndTable(out);
  AppendMore(out, limits.size(), kLimitsShown, "sluicectl limits");
}

void AppendCache(std::string& out, const CacheView& cache) {
  if (!cache.enabled) return;
  const proxy::CacheStats& stats = cache.stats;
  BeginRows(out, "Cache");
  const uint64_t asked = stats.hits + stats.misses + stats.stale + stats.coalesced;
  Row(out, "Answered without a call",
      asked == 0 ? "no call has looked"
                 : PercentText(1 - static_cast<double>(stats.misses) / static_cast<double>(asked)) + " of " +
                       CountText(asked) + ": " + CountText(stats.hits) + " hits, " + CountText(stats.stale) +
                       " stale, " + CountText(stats.coalesced) + " joined another's fetch");
  Row(out, "Kept",
      CountText(stats.entries) + " responses, " + BytesText(stats.usage_bytes) + " of " +
          BytesText(stats.capacity_bytes));
  Row(out, "Left",
      CountText(stats.evicted) + " to make room, " + CountText(stats.expired) + " past their time, " +
          CountText(stats.purged) + " purged");
  Row(out, "Fetches under way", CountText(stats.fetches));
  std::string not_kept;
  for (size_t i = 0; i < stats.not_cached.size(); ++i) {
    if (stats.not_cached[i] == 0) continue;
    Append(not_kept, not_kept.empty() ? "" : ", ", ToString(static_cast<proxy::NotCached>(i)), " ",
           CountText(stats.not_cached[i]));
  }
  if (!not_kept.empty()) Row(out, "Not kept, or not looked for", not_kept);
  EndTable(out);
}

bool Lagging(const discovery::DiscoveryView& source) {
  return source.state != discovery::KeeperState::kCurrent || !source.error.empty();
}

void AppendSources(std::string& out, const std::vector<ClusterView>& clusters,
                   const std::optional<discovery::XdsView>& xds) {
  std::vector<const ClusterView*> followed;
  for (const ClusterView& cluster : clusters) {
    if (cluster.discovery) followed.push_back(&cluster);
  }
  if (followed.empty() && !xds) return;
  std::stable_partition(followed.begin(), followed.end(),
                        [](const ClusterView* each) { return Lagging(*each->discovery); });
  BeginTable(out, "Sources of lists", {"Cluster", "Source", "State", "Heard", "List changed", "Error"});
  for (size_t i = 0; i < std::min(followed.size(), kSourcesShown); ++i) {
    const discovery::DiscoveryView& source = *followed[i]->discovery;
    out += source.error.empty() ? "<tr>" : "<tr class=\"bad\">";
    Cell(out, followed[i]->name);
    Cell(out, source.source);
    Append(out, "<td>", Marked(MarkOf(source), ToString(source.state)), "</td>");
    Cell(out, source.answered_ago ? SpanText(*source.answered_ago) + " ago" : "not yet");
    Cell(out, source.changed_ago ? SpanText(*source.changed_ago) + " ago" : "not yet");
    Cell(out, source.error);
    out += "</tr>\n";
  }
  EndTable(out);
  AppendMore(out, followed.size(), kSourcesShown, "sluicectl clusters");
  if (xds) AppendXds(out, *xds);
}

void AppendReload(std::string& out, const std::optional<ReloadView>& reload) {
  if (!reload) return;
  const bool failed = !reload->result.errors.empty();
  BeginRows(out, "Last reload");
  Append(out, "<tr><th>Outcome</th><td>",
         failed ? Marked(Mark::kBad, "failed, nothing has changed") : Marked(Mark::kGood, "in force"),
         "<span class=\"dim\">", SpanText(reload->ago), " ago</span></td></tr>\n");
  AppendLines(out, "Errors", reload->result.errors);
  AppendLines(out, "Changed", reload->changes);
  if (!failed && reload->changes.empty()) Row(out, "Changed", "nothing");
  AppendLines(out, "Warnings", reload->result.warnings);
  EndTable(out);
}

bool NeedsCare(const CertificateView& certificate) {
  return !certificate.error.empty() || (certificate.file != "system" && certificate.days_left < kCertificateDays);
}

void AppendCertificates(std::string& out, const std::vector<CertificateView>& certificates) {
  if (std::none_of(certificates.begin(), certificates.end(), NeedsCare)) return;
  BeginTable(out, "Certificates to look after",
             {"Used by", "File", "#Days left", "Why the last change is not in force"});
  for (const CertificateView& each : certificates) {
    if (!NeedsCare(each)) continue;
    out += "<tr class=\"bad\">";
    Cell(out, each.used_by);
    Cell(out, each.file);
    NumberCell(out, each.file == "system" ? "" : std::to_string(each.days_left));
    Cell(out, each.error);
    out += "</tr>\n";
  }
  EndTable(out);
}

}  // namespace sluice::admin
