// The server's control side: the admin RPC and the HTTP port, at new sockets or at those of a predecessor; and the
// routes as they are told there.
#include <cstdlib>

#include "admin/admin_server.h"
#include "admin/http_server.h"
#include "base/log.h"
#include "server/admin_address.h"
#include "server/call_explain.h"
#include "server/route_view.h"
#include "server/server.h"

namespace sluice::server {

// As it is configured.
std::string Server::AdminGrpcAddress() const {
  return config_.admin.grpc == config::kAdminAuto
             ? DefaultAdminAddress(std::getenv("RUNTIME_DIRECTORY"), std::getenv("XDG_RUNTIME_DIR"))
             : config_.admin.grpc;
}

base::Status Server::StartAdmin() {
  if (!config_.admin.grpc.empty()) {
    admin::AdminSecurity security{nullptr, {config_.admin.roles.read, config_.admin.roles.write}};
    if (config_.admin.tls.enabled()) {
      auto credentials = tls_->AddAdmin(config_.admin.tls);
      if (!credentials) return credentials.error();
      security.tls = std::move(*credentials);
    }
    const std::string address = AdminGrpcAddress();
    auto admin = admin::AdminServer::Start(address, *this, std::move(security),
                                           {AdoptAdmin(/*rpc=*/true, address), sockets_ours_});
    if (!admin) return admin.error();
    admin_ = std::move(*admin);
    SLUICE_LOG_INFO("admin RPC on {}{}", admin_->address(), config_.admin.tls.enabled() ? " with TLS" : "");
  }
  if (!config_.admin.http.empty()) {
    auto http = admin::HttpServer::Start(config_.admin.http, *this, {}, AdoptAdmin(/*rpc=*/false, config_.admin.http));
    if (!http) return http.error();
    http_ = std::move(*http);
    SLUICE_LOG_INFO("status page and metrics on http://{}/", http_->address());
    if (const auto address = net::Address::Parse(config_.admin.http); address.ok() && !address->is_loopback()) {
      SLUICE_LOG_WARN(
          "admin.http on {}: any client that reaches it can read metrics, names of clusters and addresses of endpoints",
          config_.admin.http);
    }
  }
  return base::Ok();
}

std::vector<admin::RouteView> Server::ListRoutes() { return MakeRouteViews(clusters_->snapshot()->config->routes); }

base::Result<admin::CallExplanation> Server::ExplainCall(const admin::CallQuestion& question) {
  std::vector<proxy::ListenerOptions> listeners;
  {
    std::lock_guard lock(reload_mutex_);
    listeners = config_.listeners;
  }
  return server::ExplainCall(question, listeners, *clusters_->snapshot(), base::Clock::Steady().Now());
}

}  // namespace sluice::server
