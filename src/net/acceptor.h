// Acceptor: accepts from a ListenSocket on one worker and hands each connection to a callback.
//
// One worker accepts for a listener and the owner spreads connections over workers, so that they are balanced by count
// and not by the kernel's hash.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "net/accept_loop.h"
#include "net/listen_socket.h"
#include "runtime/worker.h"

namespace sluice::net {

class Acceptor {
 public:
  // Called on the acceptor's worker with a connected, non-blocking socket, which the callee owns. May destroy the
  // Acceptor.
  using OnAccept = std::function<void(int fd, std::string peer_name)>;
  using Admit = AcceptLoop::Admit;

  // Make, use and destroy on `worker`. Destroying it closes the socket.
  Acceptor(runtime::Worker& worker, ListenSocket socket, OnAccept on_accept, Admit admit = nullptr);
  ~Acceptor();

  // As those of ListenSocket; options that cannot be had are logged.
  void Apply(const ListenSocket::Options& options);
  void SetShared(bool shared);
  // Last. Clients begin to connect no more: one that is turned away now tries again by itself (TCP, after a second) and
  // finds the next listener. The close would reset a handshake that is under way and what waits in the kernel's queue:
  // the former have kHandshakeGrace to end, the latter are accepted. Then the socket is closed and `done` is called,
  // which may destroy the Acceptor; at once for a Unix socket, which has no handshakes, and where the Acceptor is
  // destroyed before.
  void HandOver(std::function<void()> done);
  // Short, as each client that comes in this time connects a second late. A data centre's round trips are below 1 ms;
  // a busy machine delivers its own packets some ms late.
  static constexpr std::chrono::milliseconds kHandshakeGrace{50};

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
