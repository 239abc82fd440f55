#include "sluicectl/print.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <ctime>

#include "base/ascii.h"

namespace sluice::ctl {
namespace {

namespace v1 = admin::v1;

template <typename T>
std::string Format(const char* format, T value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

std::string Hex(uint64_t value) { return Format("%016" PRIx64, value); }
std::string Percent(double share) { return Format("%.1f%%", share * 100); }

std::string Printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

}  // namespace

std::string AgeText(uint64_t seconds) {
  const uint64_t parts[] = {seconds / 86'400, seconds / 3'600 % 24, seconds / 60 % 60, seconds % 60};
  for (size_t i = 0; i < 3; ++i) {
    if (parts[i] > 0) {
      return std::to_string(parts[i]) + "dhms"[i] + " " + std::to_string(parts[i + 1]) + "dhms"[i + 1];
    }
  }
  return std::to_string(seconds) + "s";
}

namespace {

// "active" for STATE_ACTIVE. A newer daemon may have states that have no name here.
std::string StateName(v1::Endpoint::State state) {
  constexpr size_t kPrefix = sizeof("STATE_") - 1;
  const std::string& name = v1::Endpoint::State_Name(state);
  return name.empty() || state == v1::Endpoint::STATE_UNSPECIFIED ? "unknown" : base::ToLower(name.substr(kPrefix));
}

// 0 stands for no limit.
std::string Limit(double limit) { return limit == 0 ? "none" : Format("%.10g", limit); }

// "64.0 MiB"
std::string Size(uint64_t bytes) {
  const char* const units[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit < 3; ++unit) size /= 1024;
  return Format("%.1f ", size) + units[unit];
}

// RFC 3339, UTC.
std::string Date(int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts{};
  ::gmtime_r(&time, &parts);
  char text[64];
  return std::string(text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

// "rpc", "file" (of the configuration), or the source with its state where that is not current, and the age of its last
// answer.
std::string SourceOf(const v1::Cluster& cluster) {
  if (!cluster.has_discovery()) return cluster.overridden() ? "rpc" : "file";
  const v1::Discovery& discovery = cluster.discovery();
  std::string text = discovery.source();
  if (discovery.state() != "current") text += " " + discovery.state();
  text += discovery.has_answered_ago_ms() ? ", " + std::to_string(discovery.answered_ago_ms() / 1000) + "s ago"
                                          : ", no answer yet";
  return text;
}

// Of a limit of each client only the clients are counted.
std::vector<std::string> LimitRow(const v1::Limit& limit) {
  const bool rate = limit.has_rate(), clients = limit.name().ends_with("/client_rate");
  return {limit.name(),
          rate ? Limit(limit.rate().rate()) : "-",
          rate ? std::to_string(limit.rate().burst()) : "-",
          rate ? (limit.rate().capped() ? "yes" : "no") : "-",
          rate ? "-" : Limit(limit.concurrency().max()),
          std::to_string(limit.queue_max()),
          clients ? "-" : std::to_string(limit.waiting()),
          clients || (rate && !limit.rate().capped()) ? "-" : std::to_string(limit.in_use()),
          clients ? std::to_string(limit.clients()) : "-",
          limit.overridden() ? "rpc" : "file"};
}

}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right) {
  std::vector<size_t> widths(right.size(), 0);
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      if (i > 0) line += "  ";
      line += right[i] ? padding + Printable(row[i]) : Printable(row[i]) + padding;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string StateWord(const v1::Endpoint& endpoint) {
  if (!endpoint.has_health() || endpoint.state() != v1::Endpoint::STATE_ACTIVE) return StateName(endpoint.state());
  return endpoint.health().state() == "up" && endpoint.connection() == "backoff" ? "unreachable"
                                                                                 : endpoint.health().state();
}

bool IsWell(const v1::Endpoint& endpoint) {
  const std::string word = StateWord(endpoint);
  return (word == "up" || word == "active" || word == "warming") && endpoint.connection() != "backoff";
}

std::string Print(const v1::GetServerResponse& server) {
  return Table({{"Version", server.version()},
                {"State", server.draining() ? "draining" : (server.ready() ? "ready" : "not ready")},
                {"Configuration", server.config_file()},
                {"Process", std::to_string(server.pid())},
                {"Uptime", AgeText(server.uptime_seconds())},
                {"Workers", std::to_string(server.workers())},
                {"Connections", std::to_string(server.downstream_connections())},
                {"Calls in flight", std::to_string(server.calls_in_flight())}},
               {false, false});
}

// A line under the table for each source of which the last answer is not in force.
std::string Print(const v1::ListClustersResponse& clusters) {
  std::string errors;
  std::vector<std::vector<std::string>> rows = {
      {"CLUSTER", "POLICY", "VERSION", "DIGEST", "ENDPOINTS", "WELL", "SOURCE"}};
  for (const v1::Cluster& cluster : clusters.clusters()) {
    if (!cluster.discovery().error().empty())
      errors += Printable(cluster.name() + ": " + cluster.discovery().error()) + "\n";
    const auto& endpoints = cluster.endpoints();
    const auto removed = std::count_if(endpoints.begin(), endpoints.end(), [](const v1::Endpoint& endpoint) {
      return endpoint.state() == v1::Endpoint::STATE_REMOVED;
    });
    rows.push_back({cluster.name(), cluster.policy(), std::to_string(cluster.version()), Hex(cluster.digest()),
                    std::to_string(endpoints.size() - removed),
                    std::to_string(std::count_if(endpoints.begin(), endpoints.end(), IsWell)), SourceOf(cluster)});
  }
  return Table(rows, {false, false, true, false, true, true, false}) + errors;
}

// Priority and locality only where some endpoint has them.
std::string PrintEndpoints(const v1::Cluster& cluster) {
  std::vector<std::vector<std::string>> rows = {
      {"NAME", "ADDRESS", "STATE", "CONNECTION", "WEIGHT", "SHARE", "IN-FLIGHT", "CALLS", "FAILURES", "CONNECTIONS"}};
  std::vector<bool> right = {false, false, false, false, true, true, true, true, true, true};
  const bool standing = std::any_of(cluster.endpoints().begin(), cluster.endpoints().end(), [](const auto& endpoint) {
    return endpoint.priority() != 0 || !endpoint.locality().empty();
  });
  if (standing) {
    rows[0].insert(rows[0].end(), {"PRIORITY", "LOCALITY"});
    right.insert(right.end(), {true, false});
  }
  for (const v1::Endpoint& endpoint : cluster.endpoints()) {
    rows.push_back({endpoint.name(), endpoint.address(), StateWord(endpoint), endpoint.connection(),
                    Format("%g", endpoint.weight()), Percent(endpoint.share()), std::to_string(endpoint.in_flight()),
                    std::to_string(endpoint.calls()), std::to_string(endpoint.failures()),
                    std::to_string(endpoint.connections())});
    if (!standing) continue;
    rows.back().insert(rows.back().end(),
                       {std::to_string(endpoint.priority()), endpoint.locality().empty() ? "-" : endpoint.locality()});
  }
  return Table(rows, right);
}

namespace {

// "connection refused, 12s ago"
std::string LastErrorOf(const v1::Health& health) {
  if (health.last_error().empty()) return "-";
  if (!health.has_last_error_ago_ms()) return health.last_error();
  return health.last_error() + ", " + AgeText(health.last_error_ago_ms() / 1000) + " ago";
}

}  // namespace

std::string PrintHealth(const v1::Cluster& cluster) {
  std::vector<std::vector<std::string>> rows = {{"NAME", "HEALTH", "FOR", "SHARE", "PROBE-IN", "WHY", "LAST-ERROR"}};
  const bool asked = std::any_of(cluster.endpoints().begin(), cluster.endpoints().end(),
                                 [](const v1::Endpoint& each) { return !each.health().health_service().empty(); });
  if (asked) rows[0].push_back("HEALTH-SERVICE");
  for (const v1::Endpoint& endpoint : cluster.endpoints()) {
    if (!endpoint.has_health()) continue;
    const v1::Health& health = endpoint.health();
    rows.push_back({endpoint.name(), health.state(), health.why().empty() ? "-" : AgeText(health.in_state_ms() / 1000),
                    Percent(health.share()),
                    health.has_probe_in_ms() ? Format("%.1fs", static_cast<double>(health.probe_in_ms()) / 1000) : "-",
                    health.why().empty() ? "-" : health.why(), LastErrorOf(health)});
    if (asked) rows.back().push_back(health.health_service().empty() ? "-" : health.health_service());
  }
  std::vector<bool> right = {false, false, true, true, true, false, false};
  if (asked) right.push_back(false);
  std::string text = Table(rows, right);
  if (cluster.health_changes().empty()) return text;
  rows = {{"AGO", "NAME", "FROM", "TO", "WHY"}};
  for (const v1::HealthChange& change : cluster.health_changes())
    rows.push_back({AgeText(change.ago_ms() / 1000), change.endpoint(), change.from(), change.to(), change.why()});
  return text + "\n" + Table(rows, {true, false, false, false, false});
}

std::string Print(const v1::ChangeEndpointsResponse& change, const std::string& cluster, bool preview) {
  return cluster + (preview ? " would be at version " : " is at version ") + std::to_string(change.version()) +
         ", digest " + Hex(change.digest()) + "; " + Percent(change.moved_share()) +
         (preview ? " of keys would move\n" : " of keys moved\n");
}

std::string Print(const v1::ListLimitsResponse& limits) {
  std::vector<std::vector<std::string>> rows = {
      {"LIMIT", "RATE", "BURST", "CAPPED", "MAX", "QUEUE", "WAITING", "IN-USE", "CLIENTS", "SOURCE"}};
  for (const v1::Limit& limit : limits.limits()) rows.push_back(LimitRow(limit));
  return Table(rows, {false, true, true, false, true, true, true, true, true, false});
}

std::string Print(const v1::Limit& limit) {
  std::string text = limit.name() + ": ";
  if (limit.has_rate()) {
    text += "rate " + Limit(limit.rate().rate()) + ", burst " + std::to_string(limit.rate().burst());
    if (limit.rate().capped()) text += ", capped";
  } else {
    text += "max " + Limit(limit.concurrency().max());
  }
  text += ", queue " + std::to_string(limit.queue_max());
  if (limit.queue_time_ms() > 0) text += " for " + std::to_string(limit.queue_time_ms()) + " ms";
  return Printable(text + (limit.overridden() ? "; changed by RPC" : "; as configured")) + "\n";
}

namespace {

// "delay 100ms, reset after 3 messages"
std::string WhatFaultDoes(const v1::Fault& fault) {
  std::string text;
  const auto add = [&](const std::string& part) { text.append(text.empty() ? "" : ", ").append(part); };
  if (fault.delay_ms() > 0) add("delay " + std::to_string(fault.delay_ms()) + "ms");
  if (!fault.status().empty()) add("abort " + fault.status());
  if (fault.has_reset_after()) add("reset after " + std::to_string(fault.reset_after()));
  return text;
}

std::string TargetOf(const v1::Fault& fault) {
  return fault.route().empty() ? fault.method() : "route " + fault.route();
}

std::string LeftOf(const v1::Fault& fault) { return std::to_string((fault.left_ms() + 999) / 1000) + "s"; }

}  // namespace

std::string Print(const v1::ListFaultsResponse& faults) {
  if (faults.faults().empty()) return "no faults\n";
  std::vector<std::vector<std::string>> rows = {{"ID", "OF", "DOES", "PERCENT", "LEFT", "CALLS"}};
  for (const v1::Fault& fault : faults.faults()) {
    rows.push_back({std::to_string(fault.id()), TargetOf(fault), WhatFaultDoes(fault), Format("%.10g", fault.percent()),
                    LeftOf(fault), std::to_string(fault.calls())});
  }
  return Table(rows, {true, false, false, true, true, true});
}

std::string Print(const v1::Fault& fault) {
  return Printable("fault " + std::to_string(fault.id()) + ": " + TargetOf(fault) + ": " + WhatFaultDoes(fault) + ", " +
                   Format("%.10g", fault.percent()) + "% of the calls, for " + LeftOf(fault)) +
         "\n";
}

// A line under the table for each user whose new files cannot be used.
std::string Print(const v1::ListCertificatesResponse& certificates) {
  if (certificates.certificates().empty()) return "no listener, no cluster and not the admin RPC has TLS\n";
  std::vector<std::vector<std::string>> rows = {
      {"USED-BY", "PURPOSE", "SUBJECT", "NAMES", "NOT-AFTER", "DAYS", "FILE"}};
  std::string errors, last;
  for (const v1::Certificate& one : certificates.certificates()) {
    const bool system = one.subject().empty();
    std::string names;
    for (const std::string& name : one.names()) names += (names.empty() ? "" : ",") + name;
    rows.push_back({one.used_by(), one.purpose() == v1::Certificate::PURPOSE_OWN ? "own" : "trusted",
                    system ? "-" : one.subject(), names.empty() ? "-" : names, system ? "-" : Date(one.not_after()),
                    system ? "-" : std::to_string(one.days_left()), one.file()});
    if (one.error().empty() || one.used_by() == last) continue;
    last = one.used_by();
    errors += Printable(last + ": new files are not in force: " + one.error()) + "\n";
  }
  return Table(rows, {false, false, false, false, false, true, false}) + errors;
}

// A line under the table for each resource that was refused, or of which something is left out.
std::string Print(const v1::GetXdsResponse& xds) {
  if (!xds.enabled()) return "no cluster follows xDS\n";
  std::string servers;
  for (const std::string& server : xds.servers()) servers += (servers.empty() ? "" : ", ") + server;
  std::string text = Table({{"Node", xds.node_id().empty() ? "-" : xds.node_id()},
                            {"Servers", servers},
                            {"Stream", xds.server() + " " + xds.stream()},
                            {"Error", xds.error().empty() ? "-" : xds.error()}},
                           {false, false});
  const auto age = [](uint64_t milliseconds) { return AgeText(milliseconds / 1000) + " ago"; };
  std::string notes;
  std::vector<std::vector<std::string>> rows = {{"TYPE", "NAME", "STATE", "VERSION", "UPDATED"}};
  for (const v1::XdsResource& one : xds.resources()) {
    const std::string type = one.type_url().substr(one.type_url().rfind('.') + 1);
    rows.push_back({type, one.name(), one.state(), one.version().empty() ? "-" : one.version(),
                    one.has_updated_ago_ms() ? age(one.updated_ago_ms()) : "-"});
    if (!one.error().empty())
      notes += Printable(type + " " + one.name() + ": version " + one.refused_version() + " was refused " +
                         age(one.refused_ago_ms()) + ": " + one.error()) +
               "\n";
    if (!one.note().empty()) notes += Printable(type + " " + one.name() + ": " + one.note()) + "\n";
  }
  return text + "\n" + Table(rows, {false, false, false, false, false}) + notes;
}

std::string Print(const v1::GetCacheResponse& cache) {
  if (!cache.enabled()) return "no route caches\n";
  const uint64_t asked = cache.hits() + cache.stale() + cache.coalesced() + cache.misses();
  const double answered = static_cast<double>(asked - cache.misses());
  std::vector<std::vector<std::string>> rows = {
      {"Used", Size(cache.usage_bytes()) + " of " + Size(cache.capacity_bytes())},
      {"Responses", std::to_string(cache.entries())},
      {"Fetches", std::to_string(cache.fetches())},
      {"Hits", std::to_string(cache.hits())},
      {"Stale", std::to_string(cache.stale())},
      {"Coalesced", std::to_string(cache.coalesced())},
      {"Misses", std::to_string(cache.misses())},
      {"Answered", asked == 0 ? "-" : Percent(answered / static_cast<double>(asked))},
      {"Evicted", std::to_string(cache.evicted())},
      {"Expired", std::to_string(cache.expired())},
      {"Purged", std::to_string(cache.purged())}};
  for (const v1::NotCached& why : cache.not_cached()) {
    rows.push_back({"Not cached: " + why.reason(), std::to_string(why.count())});
  }
  return Table(rows, {false, false});
}

std::string Json(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string out;
  // Fails only for messages with Any, of which there are none.
  (void)google::protobuf::util::MessageToJsonString(message, &out, options);
  return out;
}

}  // namespace sluice::ctl
