#include "admin/http_routes.h"

namespace sluice::admin {
namespace {

HttpReply Text(int status, std::string body) { return {status, "text/plain; charset=utf-8", std::move(body)}; }

HttpReply StatusPage(Backend& backend) {
  base::Result<std::vector<ClusterView>> clusters = backend.ListClusters("");
  if (!clusters.ok()) {
    // Busy: a reload or a change holds a cluster at the moment.
    return Text(clusters.error().kind == base::ErrorKind::kBusy ? 503 : 500, clusters.error().ToString() + "\n");
  }
  return {200, "text/html; charset=utf-8", RenderStatusPage(backend.DescribeServer(), *clusters)};
}

}  // namespace

HttpReply HandleHttp(Backend& backend, std::string_view method, std::string_view target) {
  const std::string_view path = target.substr(0, target.find('?'));
  const bool known = path == "/" || path == "/metrics" || path == "/healthz" || path == "/readyz";
  if (!known) return Text(404, "not found; there are /, /metrics, /healthz and /readyz\n");
  if (method != "GET" && method != "HEAD") {
    HttpReply reply = Text(405, "only GET and HEAD; changes are made with sluicectl\n");
    reply.wrong_method = true;
    return reply;
  }
  if (path == "/metrics") return {200, "text/plain; version=0.0.4; charset=utf-8", backend.RenderMetrics()};
  if (path == "/healthz") return Text(200, "alive\n");
  if (path == "/readyz") return backend.Ready() ? Text(200, "ready\n") : Text(503, "not ready\n");
  return StatusPage(backend);
}

}  // namespace sluice::admin
