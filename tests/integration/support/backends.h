// Backends: echo servers in this process, "echo-1" and so on, on free ports, as endpoints for a ProxyConfig.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice-echo/echo_server.h"

namespace sluice::integration {

class Backends {
 public:
  explicit Backends(int count);
  std::vector<std::pair<std::string, std::string>> endpoints() const;
  echo::EchoServer& operator[](size_t i) { return *servers_[i]; }
  size_t size() const { return servers_.size(); }
  std::string address(size_t i) const { return "127.0.0.1:" + std::to_string(servers_[i]->port()); }
  // Over all of them.
  uint64_t calls() const;
  uint64_t cancelled() const;
  int64_t in_flight() const;

 private:
  std::vector<std::unique_ptr<echo::EchoServer>> servers_;
};

}  // namespace sluice::integration
