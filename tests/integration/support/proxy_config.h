// ProxyConfig: the YAML of a proxy in front of echo servers, with what a test wants changed.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace sluice::integration {

struct ProxyConfig {
  std::string listen = "127.0.0.1:0";
  std::string admin;  // "unix:/path"
  std::string http = "127.0.0.1:0";
  // Endpoints of the cluster "echo": name and address.
  std::vector<std::pair<std::string, std::string>> endpoints;
  std::string policy = "ring_hash";
  std::string hash_by = "{metadata: x-key}";
  std::string to = "cluster: echo";  // where the route's calls go
  // Whole entries of `clusters`.
  std::string more_clusters;
  // More keys, one "key: value" each.
  std::vector<std::string> cluster, route, listener, top;

  std::string ToYaml() const {
    std::string yaml = "listeners:\n  - address: " + listen + "\n";
    for (const std::string& line : listener) yaml += "    " + line + "\n";
    yaml += "admin: {grpc: \"" + admin + "\", http: \"" + http + "\"}\n";
    yaml += "clusters:\n  - name: echo\n    policy: " + policy + "\n";
    for (const std::string& line : cluster) yaml += "    " + line + "\n";
    yaml += endpoints.empty() ? "    endpoints: []\n" : "    endpoints:\n";
    for (const auto& [name, address] : endpoints) {
      yaml += "      - {name: " + name + ", address: \"" + address + "\"}\n";
    }
    yaml += more_clusters;
    yaml += "routes:\n  - " + to + "\n    hash_by: " + hash_by + "\n";
    for (const std::string& line : route) yaml += "    " + line + "\n";
    for (const std::string& line : top) yaml += line + "\n";
    return yaml;
  }
};

}  // namespace sluice::integration
