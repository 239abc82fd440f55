// RawBackend: a TCP server whose every connection is handled by a function of the test: a backend that misbehaves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/raw_peer.h"

namespace sluice::integration {

class RawBackend {
 public:
  // `handle` runs on a thread of its own per connection; when it returns the connection is closed.
  explicit RawBackend(std::function<void(RawPeer&)> handle);
  ~RawBackend();

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int connections() const { return connections_.load(std::memory_order_relaxed); }

 private:
  void AcceptLoop();

  const std::function<void(RawPeer&)> handle_;
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::vector<std::thread> handlers_;  // the accepting thread's until it is joined
  std::thread acceptor_;
};

}  // namespace sluice::integration
