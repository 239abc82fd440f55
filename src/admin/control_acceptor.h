// ControlAcceptor: accepts from a ListenSocket of the control side, on a ControlLoop.
//
// gRPC 1.51 can listen by itself, but never accepts again once accept(2) has failed for want of a descriptor
// (CVE-2023-4785). net::AcceptLoop pauses and tries again.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "net/listen_socket.h"

namespace boost::asio {
class io_context;
}

namespace sluice::admin {

class ControlAcceptor {
 public:
  // Gets a connected, non-blocking socket, which it owns. On the context's thread.
  using OnAccept = std::function<void(int fd)>;

  // Accepts from the context's first turn on. `name` stands in log lines; `share` is one of net::DescriptorReserve's.
  ControlAcceptor(boost::asio::io_context& context, net::ListenSocket socket, const std::string& name, int share,
                  OnAccept on_accept);
  // Closes the socket. When no handler of the context runs, and none will.
  ~ControlAcceptor();

  const net::Address& address() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin
