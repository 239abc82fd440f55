#include "admin/endpoint_table.h"

#include <algorithm>
#include <map>

#include "admin/html.h"
#include "admin/picture.h"

namespace sluice::admin {
namespace {

using upstream::EndpointLink;
using upstream::EndpointState;
using upstream::HealthState;

// What the two bars of SharePicture are.
constexpr std::string_view kShareLegend = "<i class=\"e\"></i> Keys <i></i> calls";

Mark MarkOf(const EndpointView& endpoint) {
  if (Unwell(endpoint)) return Mark::kBad;
  if (endpoint.state != EndpointState::kActive) return Mark::kOff;
  return endpoint.health && endpoint.health->state == HealthState::kWarming ? Mark::kNote : Mark::kGood;
}

// What calls an endpoint was given, as parts of 1.
std::map<const EndpointView*, double> ActualShares(const ClusterView& cluster, const TrafficHistory& history) {
  std::vector<EndpointCalls> calls;
  for (const EndpointView& endpoint : cluster.endpoints) calls.push_back({endpoint.name, endpoint.calls});
  const std::vector<double> shares = history.SharesOfCalls(cluster.name, calls);
  std::map<const EndpointView*, double> out;
  for (size_t i = 0; i < shares.size(); ++i) out[&cluster.endpoints[i]] = shares[i];
  return out;
}

std::string LinkText(const EndpointView& endpoint) {
  std::string out(ToString(endpoint.connection));
  if (endpoint.connections != 0) Append(out, " (", CountText(endpoint.connections), ")");
  return out;
}

}  // namespace

bool Unwell(const EndpointView& endpoint) {
  if (endpoint.state != EndpointState::kActive) return false;
  if (endpoint.connection == EndpointLink::kBackoff) return true;
  return endpoint.health && endpoint.health->state != HealthState::kUp &&
         endpoint.health->state != HealthState::kWarming;
}

bool IsWell(const EndpointView& endpoint) { return endpoint.state == EndpointState::kActive && !Unwell(endpoint); }

std::string_view StateWord(const EndpointView& endpoint) {
  if (!endpoint.health || endpoint.state != EndpointState::kActive) return ToString(endpoint.state);
  // Up by its calls, and no connection can be made.
  if (endpoint.health->state == HealthState::kUp && endpoint.connection == EndpointLink::kBackoff) return "unreachable";
  return ToString(endpoint.health->state);
}

std::string StateText(const EndpointView& endpoint) {
  std::string out = Marked(MarkOf(endpoint), StateWord(endpoint));
  // Up since it is known: no change that could be told of.
  if (endpoint.health && endpoint.health->in_state >= std::chrono::seconds(1))
    Append(out, "<span class=\"dim\">for ", SpanText(endpoint.health->in_state), "</span>");
  return out;
}

std::string WhyText(const EndpointView& endpoint) {
  std::string out;
  if (!endpoint.health) return out;
  const upstream::HealthView& health = *endpoint.health;
  Append(out, Shown(health.why));
  if (!health.last_error.empty() && health.why.find(health.last_error) == health.why.npos) {
    Append(out, out.empty() ? "" : "; ", "last error: ", Shown(health.last_error));
    if (health.last_error_ago) Append(out, ", ", SpanText(*health.last_error_ago), " ago");
  }
  if (!health.health_service.empty()) Append(out, out.empty() ? "" : "; ", "it says ", Shown(health.health_service));
  if (health.probe_in) Append(out, out.empty() ? "" : "; ", "tried in ", LatencyText(*health.probe_in));
  return out;
}

void AppendEndpoints(std::string& out, std::string_view title, const ClusterView& cluster,
                     const std::vector<const EndpointView*>& endpoints, const TrafficHistory& history) {
  const std::map<const EndpointView*, double> actual = ActualShares(cluster, history);
  double most = 0;
  for (const EndpointView* endpoint : endpoints) {
    const auto it = actual.find(endpoint);
    most = std::max({most, endpoint->share, it == actual.end() ? 0 : it->second});
  }
  const bool weighed =
      std::any_of(endpoints.begin(), endpoints.end(), [](const auto* each) { return each->weight != 1; });
  if (weighed) {
    BeginTable(out, title,
               {"Endpoint", "State", "Connections", "#Weight", "#Keys", "#Calls", kShareLegend, "#Calls so far",
                "#Failed", "#Under way", "Why"});
  } else {
    BeginTable(out, title,
               {"Endpoint", "State", "Connections", "#Keys", "#Calls", kShareLegend, "#Calls so far", "#Failed",
                "#Under way", "Why"});
  }
  for (const EndpointView* each : endpoints) {
    const EndpointView& endpoint = *each;
    Append(out, Unwell(endpoint) ? "<tr class=\"bad\">" : "<tr>", "<td>", Shown(endpoint.name));
    std::string where = endpoint.name == endpoint.address ? "" : endpoint.address;
    if (endpoint.priority != 0)
      Append(where, where.empty() ? "" : ", ", "priority ", std::to_string(endpoint.priority));
    if (!endpoint.locality.empty()) Append(where, where.empty() ? "" : ", ", endpoint.locality);
    if (!where.empty()) Append(out, "<span class=\"dim\">", Shown(where), "</span>");
    Append(out, "</td><td>", StateText(endpoint), "</td><td><span>", LinkText(endpoint), "</span></td>");
    if (weighed) NumberCell(out, NumberText(endpoint.weight));
    NumberCell(out, PercentText(endpoint.share));
    const auto it = actual.find(each);
    NumberCell(out, it == actual.end() ? "" : PercentText(it->second));
    Append(out, "<td>", SharePicture(endpoint.share, it == actual.end() ? 0 : it->second, most), "</td>");
    for (const uint64_t n : {endpoint.calls, endpoint.failures, endpoint.in_flight}) NumberCell(out, CountText(n));
    Append(out, "<td class=\"w\">", WhyText(endpoint), "</td></tr>\n");
  }
  EndTable(out);
}

}  // namespace sluice::admin
