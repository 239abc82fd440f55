#include "sluicectl/routes.h"

#include <vector>

#include "sluicectl/print.h"

namespace sluice::ctl {
namespace {

namespace v1 = admin::v1;

template <typename Texts>
std::string Joined(const Texts& texts, const char* empty, const char* between = ",") {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : between) + text;
  return joined.empty() ? empty : joined;
}

std::string OrDash(const std::string& text) { return text.empty() ? "-" : text; }

// "/pkg.Service/Get"; "/pkg.Service/*" where more may follow; "*": any.
std::string PathOf(const v1::Route& route) { return route.path() + (route.exact() ? "" : "*"); }

// "users", "users:90,canary:10 else backup, mirror shadow"
std::string ClustersOf(const v1::Route& route) {
  std::string text;
  for (const v1::RouteCluster& cluster : route.clusters()) {
    text += (text.empty() ? "" : ",") + cluster.name();
    if (route.clusters_size() > 1) text += ":" + std::to_string(cluster.weight());
  }
  if (!route.failover().empty()) text += " else " + route.failover();
  if (!route.mirror().empty()) text += ", mirror " + route.mirror();
  return text;
}

std::string CacheOf(const v1::Route& route) {
  const uint32_t methods = route.cached_methods();
  return methods == 0 ? "no" : std::to_string(methods) + (methods == 1 ? " method" : " methods");
}

// What the call is answered with, or where it goes.
std::string Headline(const v1::GetExplanationResponse& call) {
  if (call.has_refusal()) {
    const v1::CallRefusal& refusal = call.refusal();
    return "It is refused with " + refusal.status() + ", " + refusal.reason() +
           (refusal.http_status().empty() ? "" : " (HTTP " + refusal.http_status() + ")") + ": " + refusal.message();
  }
  const std::string cluster = call.cluster().empty() ? "one of its clusters" : "cluster " + call.cluster();
  const std::string endpoint = call.endpoint().empty() ? "" : ", endpoint " + call.endpoint();
  return "Route " + call.route().name() + " takes it to " + cluster + endpoint;
}

std::string WithWhy(const std::string& text, const std::string& why) {
  if (text.empty()) return OrDash(why);
  return why.empty() ? text : text + ": " + why;
}

}  // namespace

std::string PrintRoutes(const v1::ListRoutesResponse& routes) {
  std::vector<std::vector<std::string>> rows = {
      {"#", "ROUTE", "LISTENER", "AUTHORITY", "PATH", "METADATA", "GATES", "LIMITS", "CLUSTER", "CACHE", "RETRY"}};
  for (const v1::Route& route : routes.routes()) {
    rows.push_back({std::to_string(rows.size() - 1), route.name(), Joined(route.listeners(), "*"),
                    route.authority().empty() ? "*" : route.authority(), PathOf(route), Joined(route.metadata(), "*"),
                    Joined(route.gates(), "-"), Joined(route.limits(), "-"), ClustersOf(route), CacheOf(route),
                    route.retry()});
  }
  if (rows.size() == 1) return "no routes\n";
  return Table(rows, {true, false, false, false, false, false, false, false, false, false, false});
}

std::string PrintExplanation(const v1::GetExplanationResponse& call) {
  std::vector<std::vector<std::string>> rows = {
      {"listener", call.listener()}, {"path", call.path()}, {"authority", OrDash(call.authority())}};
  for (const v1::PassedRoute& passed : call.passed())
    rows.push_back({"not route", passed.route() + ": " + passed.why()});
  if (call.has_route()) {
    const v1::Route& route = call.route();
    rows.push_back({"route", route.name()});
    for (const v1::GateAnswer& gate : call.gates())
      rows.push_back({"gate", gate.name() + " " + WithWhy(gate.verdict(), gate.why())});
    for (const std::string& limit : route.limits()) rows.push_back({"limit", limit});
    rows.push_back({"cluster", WithWhy(call.cluster(), call.cluster_why())});
    rows.push_back({"endpoint", WithWhy(call.endpoint(), call.endpoint_why())});
    rows.push_back({"cache", WithWhy(call.may_cache() ? "yes" : "no", call.cache_why())});
    rows.push_back({"repeat", WithWhy(call.may_repeat() ? "yes" : "no", call.repeat_why())});
  }
  return Headline(call) + "\n\n" + Table(rows, {false, false});
}

}  // namespace sluice::ctl
