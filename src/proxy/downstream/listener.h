// Listener: accepts connections on one address and hands each to the worker with the fewest.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/error.h"
#include "net/acceptor.h"
#include "proxy/downstream/worker_front.h"
#include "proxy/options.h"

namespace sluice::proxy {

// Thread safety: made and stopped by the server's control thread; accepts on its worker.
class Listener {
 public:
  Listener(ListenerOptions options, net::ListenSocket socket, std::vector<WorkerFront*> workers);
  // Stop has been called, or the workers never ran.
  ~Listener();

  // Begins to accept, on the worker chosen for this listener.
  void Start();
  // Stops accepting; connections go on. Returns at once; the socket is closed on its worker, which then calls `done`.
  void Stop(std::function<void()> done = nullptr);
  // As Stop, and those that wait in the kernel's queue or are in a handshake are accepted first, as far as the limits
  // let them in (net::Acceptor::HandOver).
  void HandOver(std::function<void()> done);
  // net::Acceptor::SetShared, on its worker, which then calls `done`.
  void SetShared(bool shared, std::function<void()> done);
  // New options for connections still to come, and for the socket; the address stays. Returns at once; they apply when
  // its worker has called `done`.
  void Update(const ListenerOptions& options, std::function<void()> done);

  const net::Address& address() const { return address_; }
  // Of its socket, until Stop: for another process of the daemon; and whether a supervisor has made it.
  int fd() const { return fd_; }
  bool borrowed() const { return borrowed_; }
  const ListenerOptions& options() const { return *options_; }

 private:
  struct State;
  net::Address address_;
  int fd_;
  bool borrowed_;
  std::shared_ptr<const ListenerOptions> options_;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::proxy
