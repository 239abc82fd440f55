#include "support/raw_backend.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::integration {

RawBackend::RawBackend(std::function<void(RawPeer&)> handle) : handle_(std::move(handle)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, 128), 0);
  getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { AcceptLoop(); });
}

// Its connections end when the proxy closes them, so destroy the proxy first.
RawBackend::~RawBackend() {
  shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  for (std::thread& handler : handlers_) handler.join();
  close(listener_);
}

void RawBackend::AcceptLoop() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return;
    connections_.fetch_add(1, std::memory_order_relaxed);
    handlers_.emplace_back([this, fd] {
      RawPeer peer(fd);
      handle_(peer);
    });
  }
}

}  // namespace sluice::integration
