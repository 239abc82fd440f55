#include "admin/status_json.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdio>

#include "admin/convert.h"
#include "admin/endpoint_table.h"
#include "admin/html.h"

namespace sluice::admin {
namespace {

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string out;
  // Fails only for messages with Any, of which there are none.
  (void)google::protobuf::util::MessageToJsonString(message, &out, options);
  return out;
}

template <typename Message, typename View>
std::string JsonOf(const View& view) {
  Message message;
  ToMessage(view, message);
  return Json(message);
}

template <typename Message, typename View>
std::string Array(const std::vector<View>& views) {
  std::string out = "[";
  for (const View& view : views) Append(out, out.size() == 1 ? "" : ",\n", JsonOf<Message>(view));
  return out + "]";
}

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.6g", value);
  return text;
}

std::string MillisecondsOf(const std::vector<TrafficPoint>& points, base::Nanos TrafficPoint::*value) {
  std::string out;
  for (const TrafficPoint& point : points)
    Append(out, out.empty() ? "" : ",", Number(std::chrono::duration<double, std::milli>(point.*value).count()));
  return out;
}

std::string Rates(const std::vector<TrafficPoint>& points, double TrafficPoint::*value) {
  std::string out;
  for (const TrafficPoint& point : points) Append(out, out.empty() ? "" : ",", Number(point.*value));
  return out;
}

// `points`: all of them, or the last one alone.
std::string TrafficJson(std::vector<TrafficPoint> points, const StatusRates& rates, bool all) {
  if (!all && points.size() > 1) points.erase(points.begin(), points.end() - 1);
  std::string failed;
  for (size_t i = 1; i < rates.size(); ++i) {
    if (rates[i] > 0)
      Append(failed, failed.empty() ? "" : ",", "\"", ToString(static_cast<proxy::GrpcCode>(i)),
             "\":", Number(rates[i]));
  }
  std::string out;
  Append(out, "{\"period_seconds\":",
         std::to_string(std::chrono::duration_cast<std::chrono::seconds>(TrafficHistory::kPeriod).count()),
         ",\"calls_per_second\":[", Rates(points, &TrafficPoint::calls), "],\"failed_per_second\":[",
         Rates(points, &TrafficPoint::failed), "],\"p50_ms\":[", MillisecondsOf(points, &TrafficPoint::p50),
         "],\"p99_ms\":[", MillisecondsOf(points, &TrafficPoint::p99), "],\"failed_by_status\":{", failed, "}}");
  return out;
}

std::string Lines(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) Append(out, out.empty() ? "" : ",", JsonString(line));
  return "[" + out + "]";
}

std::string ReasonsJson(const std::vector<ReasonCount>& reasons, const TrafficHistory& history) {
  std::string out;
  for (const ReasonCount& each : reasons) {
    Append(out, out.empty() ? "" : ",", "{\"reason\":", JsonString(each.reason),
           ",\"per_second\":", Number(history.RateOf(each.reason)), ",\"count\":\"", std::to_string(each.count), "\"}");
  }
  return "[" + out + "]";
}

std::string ReloadJson(const std::optional<ReloadView>& reload) {
  if (!reload) return "null";
  std::string out;
  Append(out, "{\"ago_ms\":\"", std::to_string(Milliseconds(reload->ago)),
         "\",\"errors\":", Lines(reload->result.errors), ",\"changes\":", Lines(reload->changes),
         ",\"warnings\":", Lines(reload->result.warnings), "}");
  return out;
}

std::string XdsJson(const std::optional<discovery::XdsView>& xds) {
  if (!xds) return "null";
  discovery::XdsView short_one = *xds;
  short_one.resources.clear();
  return JsonOf<v1::GetXdsResponse>(short_one);
}

}  // namespace

std::string RenderStatusJson(const StatusParts& parts, const std::vector<ClusterView>& clusters,
                             const TrafficHistory& history) {
  std::string list, summary;
  for (const ClusterView& cluster : clusters) {
    ClusterView without{cluster.name, cluster.policy, cluster.version, cluster.digest, cluster.source, {}};
    without.discovery = cluster.discovery;
    Append(list, list.empty() ? "" : ",\n", JsonOf<v1::Cluster>(without));
    const auto unwell = std::count_if(cluster.endpoints.begin(), cluster.endpoints.end(), Unwell);
    Append(summary, summary.empty() ? "" : ",\n", JsonString(cluster.name),
           ":{\"endpoints\":", std::to_string(cluster.endpoints.size()), ",\"unwell\":", std::to_string(unwell),
           ",\"traffic\":", TrafficJson(history.Of(cluster.name), history.Statuses(cluster.name), false), "}");
  }
  std::string out;
  Append(out, "{\"server\":", JsonOf<v1::GetServerResponse>(parts.server),
         ",\n\"traffic\":", TrafficJson(history.OfAll(), history.StatusesOfAll(), true), ",\n\"clusters\":[", list,
         "],\n\"summary_by_cluster\":{", summary, "},\n\"reasons\":", ReasonsJson(parts.reasons, history),
         ",\n\"limits\":", Array<v1::Limit>(parts.limits), ",\n\"cache\":", JsonOf<v1::GetCacheResponse>(parts.cache),
         ",\n\"xds\":", XdsJson(parts.xds), ",\n\"reload\":", ReloadJson(parts.reload),
         ",\n\"failed_calls\":", Array<v1::FailedCall>(parts.failed.calls),
         ",\n\"hot_keys\":", Array<v1::ClusterHotKeys>(parts.hot_keys),
         ",\n\"certificates\":", Array<v1::Certificate>(parts.certificates), "}\n");
  return out;
}

std::string RenderClusterJson(const ClusterView& cluster, const TrafficHistory& history) {
  std::vector<EndpointCalls> calls;
  for (const EndpointView& endpoint : cluster.endpoints) calls.push_back({endpoint.name, endpoint.calls});
  std::string shares;
  for (const double share : history.SharesOfCalls(cluster.name, calls))
    Append(shares, shares.empty() ? "" : ",", Number(share));
  std::string out;
  Append(out, "{\"cluster\":", JsonOf<v1::Cluster>(cluster), ",\n\"shares_of_calls\":[", shares,
         "],\n\"traffic\":", TrafficJson(history.Of(cluster.name), history.Statuses(cluster.name), true), "}\n");
  return out;
}

}  // namespace sluice::admin
