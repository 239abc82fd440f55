#include "support/backends.h"

#include <cstdio>
#include <cstdlib>

namespace sluice::integration {

Backends::Backends(int count) {
  for (int i = 1; i <= count; ++i) {
    servers_.push_back(echo::EchoServer::Start("127.0.0.1:0", "echo-" + std::to_string(i)));
    if (!servers_.back()) {
      std::fprintf(stderr, "an echo server cannot listen on 127.0.0.1\n");
      std::abort();
    }
  }
}

std::vector<std::pair<std::string, std::string>> Backends::endpoints() const {
  std::vector<std::pair<std::string, std::string>> endpoints;
  for (size_t i = 0; i < servers_.size(); ++i) endpoints.emplace_back(servers_[i]->service().name(), address(i));
  return endpoints;
}

uint64_t Backends::calls() const {
  uint64_t sum = 0;
  for (const auto& server : servers_) sum += server->service().calls();
  return sum;
}

uint64_t Backends::cancelled() const {
  uint64_t sum = 0;
  for (const auto& server : servers_) sum += server->service().cancelled();
  return sum;
}

int64_t Backends::in_flight() const {
  int64_t sum = 0;
  for (const auto& server : servers_) sum += server->service().in_flight();
  return sum;
}

}  // namespace sluice::integration
