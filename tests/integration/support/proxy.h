// Proxy: a whole Sluice server in this process, on free ports, with its admin RPC and its counters at hand.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/server.h"
#include "sluice/admin/v1/admin.grpc.pb.h"
#include "support/proxy_config.h"
#include "support/temp_dir.h"

namespace sluice::integration {

class Proxy {
 public:
  // Fails the process with the reason if it does not start: no test makes sense then. `config.admin` is filled in.
  explicit Proxy(ProxyConfig config);
  ~Proxy();

  std::string target() const { return "127.0.0.1:" + std::to_string(port()); }
  uint16_t port() const { return server_->ListenerPort(0); }
  server::Server& server() { return *server_; }
  admin::v1::Admin::Stub& admin() { return *admin_; }
  const TempDir& dir() const { return dir_; }

  // Writes the file anew; takes effect with a reload.
  void Rewrite(ProxyConfig config);
  // The sum over all labels; 0 if there is no such metric.
  double Metric(const std::string& name);
  // The list as the admin RPC shows it, without removed ones.
  std::vector<std::string> EndpointNames();

 private:
  TempDir dir_;
  std::unique_ptr<server::Server> server_;
  std::unique_ptr<admin::v1::Admin::Stub> admin_;
};

}  // namespace sluice::integration
