// PathSocket: the far end of a TCP connection over loopback whose near end is the proxy's, moved by hand: what a
// PathRig uses in place of streams in memory when the kernel's part matters.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "base/check.h"
#include "support/path_peers.h"

namespace sluice::test {

// Two connected, non-blocking sockets.
inline std::pair<int, int> TcpPair() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
            far = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  SLUICE_CHECK(bind(listener, any, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, any, &size) == 0);
  SLUICE_CHECK(connect(far, any, size) == 0);
  const int near = accept4(listener, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  SLUICE_CHECK(near >= 0 && fcntl(far, F_SETFL, O_NONBLOCK) == 0);
  close(listener);
  return {near, far};
}

class PathSocket {
 public:
  PathSocket(std::shared_ptr<PathWire> wire, int far) : wire_(std::move(wire)), far_(far) {}
  ~PathSocket() { close(far_); }
  PathSocket(const PathSocket&) = delete;
  PathSocket& operator=(const PathSocket&) = delete;

  // Writes the peer's bytes, as far as the socket takes them.
  void Send() {
    while (wire_->at < wire_->in.size()) {
      const ssize_t n = send(far_, wire_->in.data() + wire_->at, wire_->in.size() - wire_->at, MSG_NOSIGNAL);
      if (n <= 0) return;
      wire_->at += static_cast<size_t>(n);
    }
    wire_->in.clear();
    wire_->at = 0;
  }
  // Reads what the proxy has written. True if there was something.
  bool Receive() {
    char bytes[65536];
    bool moved = false;
    for (ssize_t n; (n = recv(far_, bytes, sizeof(bytes), 0)) > 0; moved = true)
      wire_->out.append(bytes, static_cast<size_t>(n));
    return moved;
  }
  // There is something to send.
  bool Due() const { return wire_->at < wire_->in.size(); }

 private:
  const std::shared_ptr<PathWire> wire_;
  const int far_;
};

}  // namespace sluice::test
