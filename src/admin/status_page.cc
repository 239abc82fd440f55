// The status page: one table of the process, one table a cluster; no scripts, nothing loaded from elsewhere.
#include <cinttypes>
#include <cstdio>

#include "admin/http_routes.h"

namespace sluice::admin {
namespace {

constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Sluice</title>\n<style>"
    "body{font:14px/1.4 "
    "system-ui,sans-serif;margin:2em;color:#222}table{border-collapse:collapse;margin:.5em 0 1.5em}"
    "th,td{border-bottom:1px solid #ddd;padding:.2em .8em;text-align:left}td.n{text-align:right}"
    "</style></head><body>\n<h1>Sluice</h1>\n";

template <typename... Parts>
void Append(std::string& out, const Parts&... parts) {
  ((out += parts), ...);
}

template <typename T>
std::string Format(const char* format, T value) {
  char text[64];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

void Row(std::string& out, std::string_view name, std::string_view value) {
  Append(out, "<tr><th>", name, "</th><td>", EscapeHtml(value), "</td></tr>\n");
}

void Cell(std::string& out, std::string_view text) { Append(out, "<td>", EscapeHtml(text), "</td>"); }
void Number(std::string& out, std::string_view text) { Append(out, "<td class=\"n\">", text, "</td>"); }

void AppendServer(std::string& out, const ServerView& server) {
  out += "<table>\n";
  Row(out, "Version", server.version);
  Row(out, "State", server.draining ? "draining" : (server.ready ? "ready" : "not ready"));
  Row(out, "Configuration", server.config_file);
  Row(out, "Process", std::to_string(server.pid));
  Row(out, "Uptime", std::to_string(server.uptime_seconds) + " s");
  Row(out, "Workers", std::to_string(server.workers));
  Row(out, "Connections", std::to_string(server.downstream_connections));
  Row(out, "Calls in flight", std::to_string(server.calls_in_flight));
  out += "</table>\n";
}

void AppendCluster(std::string& out, const ClusterView& cluster) {
  Append(out, "<h2>", EscapeHtml(cluster.name), "</h2>\n<p>", EscapeHtml(cluster.policy), ", version ",
         std::to_string(cluster.version), ", digest ", Format("%016" PRIx64, cluster.digest),
         cluster.source == upstream::ListSource::kRpc ? ", changed by RPC" : "");
  if (cluster.discovery) {
    const discovery::DiscoveryView& source = *cluster.discovery;
    Append(out, ", list from ", EscapeHtml(source.source), " (", ToString(source.state), ")");
    if (!source.error.empty()) Append(out, ": ", EscapeHtml(source.error));
  }
  out += "</p>\n<table>\n<tr>";
  for (const char* title : {"Endpoint", "Address", "State", "Connection", "Weight", "Share", "In flight", "Calls",
                            "Failures", "Connections"}) {
    Append(out, "<th>", title, "</th>");
  }
  out += "</tr>\n";
  for (const EndpointView& endpoint : cluster.endpoints) {
    out += "<tr>";
    for (std::string_view text : {std::string_view(endpoint.name), std::string_view(endpoint.address),
                                  ToString(endpoint.state), ToString(endpoint.connection)}) {
      Cell(out, text);
    }
    Number(out, Format("%g", endpoint.weight));
    Number(out, Format("%.1f%%", endpoint.share * 100));
    for (uint64_t n : {endpoint.in_flight, endpoint.calls, endpoint.failures, endpoint.connections}) {
      Number(out, std::to_string(n));
    }
    out += "</tr>\n";
  }
  out += "</table>\n";
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string RenderStatusPage(const ServerView& server, const std::vector<ClusterView>& clusters) {
  std::string out(kHead);
  AppendServer(out, server);
  for (const ClusterView& cluster : clusters) AppendCluster(out, cluster);
  out += "<p><a href=\"/metrics\">metrics</a></p>\n</body></html>\n";
  return out;
}

}  // namespace sluice::admin
