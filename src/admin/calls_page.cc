// The calls that failed last, and the keys that come most.
#include <algorithm>

#include "admin/html.h"
#include "admin/status_page.h"

namespace sluice::admin {
namespace {

void AppendPhase(std::string& out, std::string_view name, base::Nanos span) {
  if (span.count() >= 0) Append(out, out.empty() ? "" : ", ", name, " ", LatencyText(span));
}

// "sent after 0.20 ms, response after 3.10 ms, end after 3.20 ms; waited: ...; tries: ..."
std::string Phases(const FailedCallsView::Call& call) {
  std::string out;
  AppendPhase(out, "sent after", call.to_upstream);
  AppendPhase(out, "response after", call.to_response);
  AppendPhase(out, "end after", call.total);
  if (!call.waits.empty()) Append(out, "; waited: ", call.waits);
  if (!call.tries.empty()) Append(out, "; tries: ", call.tries);
  return out;
}

void AppendCall(std::string& out, const FailedCallsView::Call& call) {
  out += "<tr>";
  NumberCell(out, SpanText(call.ago));
  Append(out, "<td>", Shown(call.path), "<span class=\"dim\">", Shown(call.id.ToString()), "</span></td>");
  Cell(out, call.endpoint.empty() ? call.cluster : call.cluster + ": " + call.endpoint);
  Append(out, "<td>", Shown(ToString(call.status)), "<span class=\"dim\">", Shown(call.cause), "</span></td>");
  Append(out, "<td class=\"w\">", Shown(call.detail), "<span class=\"dim\">", Shown(Phases(call)),
         "</span></td></tr>\n");
}

}  // namespace

void AppendFailedCalls(std::string& out, const FailedCallsView& failed, size_t shown) {
  if (failed.calls.empty()) return;
  BeginTable(out, "Calls that failed last", {"#Ago", "Call", "Cluster and endpoint", "Status", "Why, and when"});
  for (size_t i = 0; i < std::min(failed.calls.size(), shown); ++i) AppendCall(out, failed.calls[i]);
  EndTable(out);
  if (failed.calls.size() > shown && shown < kFailedCallsShown)
    Append(out, "<p class=\"pager\"><a href=\"/calls\">", CountText(std::min(failed.calls.size(), kFailedCallsShown)),
           " calls</a></p>\n");
}

void AppendHotKeys(std::string& out, const std::vector<HotKeysView>& clusters) {
  size_t rows = 0;
  std::string body;
  for (const HotKeysView& cluster : clusters) {
    for (const HotKeyView& key : cluster.keys) {
      // What may as well be chance says nothing.
      if (key.share - key.error < kHotKeyShare || rows == kHotKeysShown) continue;
      ++rows;
      body += "<tr>";
      Cell(body, cluster.cluster);
      Cell(body, key.key + (key.cut ? "..." : ""));
      NumberCell(body, PercentText(key.share - key.error) + " to " + PercentText(key.share));
      Cell(body, key.endpoint);
      body += "</tr>\n";
    }
  }
  if (rows == 0) return;
  BeginTable(out, "Keys that come most", {"Cluster", "Key", "#Of the cluster's calls", "Endpoint"});
  out += body;
  EndTable(out);
}

std::string RenderCallsPage(const FailedCallsView& failed) {
  std::string out = BeginPage("Failed calls - Sluice");
  Append(out, "<header><a class=\"brand\" href=\"/\">Sluice</a><p>failed calls</p></header>\n<p class=\"dim\">",
         CountText(failed.failed), " since the start, ", CountText(failed.left_out), " more were only counted</p>\n");
  if (failed.calls.empty())
    Append(out, "<p>", failed.kept == 0 ? "None is kept: insight.failed_calls is 0" : "None", "</p>\n");
  AppendFailedCalls(out, failed, kFailedCallsShown);
  EndPage(out);
  return out;
}

}  // namespace sluice::admin
