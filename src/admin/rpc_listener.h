// RpcListener: the sockets on which clients of the admin RPC arrive, and the thread that accepts them.
//
// gRPC 1.51 can listen by itself, but never accepts again once accept(2) has failed for want of a descriptor
// (CVE-2023-4785). This one waits and tries again. It also leaves the last descriptors to backends, logs and the state
// file.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "admin/listen_address.h"
#include "base/error.h"

namespace sluice::admin {

class RpcListener {
 public:
  static constexpr int kBacklog = 128;
  // Pause while no descriptor may be taken, and how often the log says so.
  static constexpr std::chrono::milliseconds kPause{100};
  static constexpr std::chrono::seconds kSayAgain{10};

  // Binds and listens, on every address of a name; port 0: any, the same one for all. kIo. For a Unix path its
  // UnixSocketClaim is held meanwhile.
  static base::Result<std::unique_ptr<RpcListener>> Open(ListenAddress address);
  // Ends the thread, closes what waits, removes a Unix socket's file if it is still this one's.
  ~RpcListener();

  // With the port in force.
  const ListenAddress& address() const;
  // Once. `on_accept` gets each client's socket, not blocking, and owns it; on the listener's thread.
  void Start(std::function<void(int listener, int fd)> on_accept);

 private:
  struct Impl;
  explicit RpcListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin
