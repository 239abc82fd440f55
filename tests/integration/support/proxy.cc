#include "support/proxy.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "config/config.h"
#include "support/echo_call.h"

namespace sluice::integration {

namespace {

[[noreturn]] void Die(const std::string& what) {
  std::fprintf(stderr, "the proxy under test does not start: %s\n", what.c_str());
  std::abort();
}

}  // namespace

Proxy::Proxy(ProxyConfig config) {
  // In a run with SLUICE_TEST_MOVED every call runs on another worker than its connection's.
  const bool moved = std::getenv("SLUICE_TEST_MOVED") != nullptr;
  const bool has_workers = std::any_of(config.top.begin(), config.top.end(),
                                       [](const std::string& line) { return line.starts_with("workers:"); });
  if (moved && !has_workers) config.top.push_back("workers: 4");
  Rewrite(std::move(config));
  config::ParseResult parsed = config::Load(dir_.File("sluice.yaml"));
  if (!parsed.ok()) Die(parsed.errors.front().ToString());
  server::ServerOptions options;
  options.config_file = dir_.File("sluice.yaml");
  options.move_all_calls_for_test = moved;
  auto server = server::Server::Start(std::move(parsed.config), options);
  if (!server.ok()) Die(server.error().ToString());
  server_ = std::move(*server);
  admin_ = admin::v1::Admin::NewStub(Connect(server_->AdminAddress()));
}

Proxy::~Proxy() { server_->Stop(); }

void Proxy::Rewrite(ProxyConfig config) {
  config.admin = "unix:" + dir_.File("admin.sock");
  dir_.Write("sluice.yaml", config.ToYaml());
}

double Proxy::Metric(const std::string& name) {
  std::istringstream lines(server_->backend().RenderMetrics());
  double sum = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(name, 0) != 0) continue;
    const char next = line.size() > name.size() ? line[name.size()] : '\0';
    if (next == ' ' || next == '{') sum += std::strtod(line.c_str() + line.rfind(' '), nullptr);
  }
  return sum;
}

std::vector<std::string> Proxy::EndpointNames() {
  grpc::ClientContext context;
  admin::v1::ListClustersResponse response;
  const grpc::Status status = admin_->ListClusters(&context, {}, &response);
  if (!status.ok()) Die("cannot list clusters: " + Describe(status));
  std::vector<std::string> names;
  for (const auto& cluster : response.clusters()) {
    for (const auto& endpoint : cluster.endpoints()) {
      if (endpoint.state() != admin::v1::Endpoint::STATE_REMOVED) names.push_back(endpoint.name());
    }
  }
  return names;
}

}  // namespace sluice::integration
