#include "admin/http_routes.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <charconv>

#include "admin/accept.h"
#include "admin/page_assets.h"
#include "admin/status_json.h"
#include "admin/status_page.h"
#include "base/ascii.h"
#include "metrics/open_metrics.h"

namespace sluice::admin {
namespace {

constexpr std::string_view kPaths[] = {"/",        "/cluster", "/calls",     "/status.json", "/metrics",
                                       "/healthz", "/readyz",  "/style.css", "/refresh.js",  "/icon.svg"};
constexpr const char* kHtml = "text/html; charset=utf-8";
constexpr const char* kJson = "application/json";

HttpReply Text(int status, std::string body) { return {status, "text/plain; charset=utf-8", std::move(body)}; }

HttpReply Failed(const base::Error& error) {
  switch (error.kind) {
    case base::ErrorKind::kBusy:  // a reload or a change holds a cluster at the moment
      return Text(503, error.ToString() + "\n");
    case base::ErrorKind::kNotFound:
      return Text(404, error.ToString() + "\n");
    default:
      return Text(500, error.ToString() + "\n");
  }
}

// 1 for what is no number.
size_t PageOf(std::string_view target) {
  const std::string text = QueryValue(target, "page").value_or("1");
  size_t page = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), page);
  return error == std::errc() && end == text.data() + text.size() ? page : 1;
}

StatusParts PartsOf(Backend& backend) {
  return {backend.DescribeServer(),   backend.ListLimits(),      backend.DescribeCache(),
          backend.ListCertificates(), backend.ListReasons(),     backend.DescribeXds(),
          backend.DescribeReload(),   backend.ListFailedCalls(), backend.ListHotKeys()};
}

HttpReply StatusPage(Backend& backend, const TrafficHistory& history, std::string_view target) {
  const auto clusters = backend.ListClusters("");
  if (!clusters.ok()) return Failed(clusters.error());
  return {200, kHtml, RenderStatusPage(PartsOf(backend), *clusters, history, PageOf(target))};
}

HttpReply ClusterPage(Backend& backend, const TrafficHistory& history, std::string_view target) {
  const auto name = QueryValue(target, "name");
  if (!name || name->empty()) return Text(400, "which cluster? /cluster?name=NAME\n");
  const auto clusters = backend.ListClusters(*name);
  if (!clusters.ok()) return Failed(clusters.error());
  return {200, kHtml, RenderClusterPage(clusters->front(), history, PageOf(target))};
}

HttpReply StatusJson(Backend& backend, const TrafficHistory& history, std::string_view target) {
  const std::string name = QueryValue(target, "cluster").value_or("");
  const auto clusters = backend.ListClusters(name);
  if (!clusters.ok()) return Failed(clusters.error());
  return {200, kJson,
          name.empty() ? RenderStatusJson(PartsOf(backend), *clusters, history)
                       : RenderClusterJson(clusters->front(), history)};
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> Decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    out += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return out;
}

}  // namespace

std::optional<std::string> QueryValue(std::string_view target, std::string_view name) {
  size_t at = target.find('?');
  while (at != std::string_view::npos) {
    const size_t begin = at + 1;
    at = target.find('&', begin);
    const std::string_view pair = target.substr(begin, at == std::string_view::npos ? at : at - begin);
    const size_t equals = pair.find('=');
    if (pair.substr(0, equals) != name) continue;
    return Decoded(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
  }
  return std::nullopt;
}

HttpReply HandleHttp(Backend& backend, const TrafficHistory& history, std::string_view method, std::string_view target,
                     std::string_view accept) {
  const std::string_view path = target.substr(0, target.find('?'));
  if (!std::ranges::count(kPaths, path))
    return Text(404, "not found; there are /, /cluster, /calls, /status.json, /metrics, /healthz and /readyz\n");
  if (method != "GET" && method != "HEAD") {
    HttpReply reply = Text(405, "only GET and HEAD; changes are made with sluicectl\n");
    reply.wrong_method = true;
    return reply;
  }
  if (path == "/metrics") {
    if (WantsOpenMetrics(accept)) return {200, metrics::kOpenMetricsType, backend.RenderOpenMetrics()};
    return {200, "text/plain; version=0.0.4; charset=utf-8", backend.RenderMetrics()};
  }
  if (path == "/healthz") return Text(200, "alive\n");
  if (path == "/readyz") return backend.Ready() ? Text(200, "ready\n") : Text(503, "not ready\n");
  if (path == "/refresh.js") return {200, "text/javascript; charset=utf-8", std::string(RefreshScript())};
  if (path == "/style.css") return {200, "text/css; charset=utf-8", std::string(PageStyle())};
  if (path == "/icon.svg") return {200, "image/svg+xml", std::string(PageIcon())};
  if (path == "/status.json") return StatusJson(backend, history, target);
  if (path == "/calls") return {200, kHtml, RenderCallsPage(backend.ListFailedCalls())};
  if (path == "/cluster") return ClusterPage(backend, history, target);
  return StatusPage(backend, history, target);
}

bool IsLocalHost(std::string_view host) {
  if (host.starts_with('[')) {
    const size_t close = host.find(']');
    host = close == host.npos ? "" : host.substr(1, close - 1);
  } else if (const size_t colon = host.find(':'); colon != host.npos && colon == host.rfind(':')) {
    host = host.substr(0, colon);
  }
  if (base::EqualsIgnoreCase(host, "localhost")) return true;
  unsigned char bytes[sizeof(in6_addr)];
  const std::string text(host);
  return ::inet_pton(AF_INET, text.c_str(), bytes) == 1 || ::inet_pton(AF_INET6, text.c_str(), bytes) == 1;
}

bool AnsweredAtOnce(std::string_view method, std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  const bool long_one =
      path == "/" || path == "/cluster" || path == "/calls" || path == "/status.json" || path == "/metrics";
  return !long_one || (method != "GET" && method != "HEAD");
}

}  // namespace sluice::admin
