// Acceptor: a listening TCP or Unix socket on one worker; hands each accepted socket to a callback.
//
// One worker accepts for a listener and the owner spreads connections over workers, so that they are balanced by count
// and not by the kernel's hash. Out of file descriptors it pauses and tries again: it neither spins nor wedges. The
// last descriptors are not for clients (DescriptorReserve).
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "net/address.h"
#include "runtime/worker.h"

namespace sluice::net {

// A bound and listening socket, made before workers run so that errors are known at start. Closes what was not
// released, and removes its file.
class ListenSocket {
 public:
  struct Options {
    int backlog = 1024;
    uint32_t unix_mode = 0666;
    // May stand beside sockets of this process that have the same port now: Acceptor::SetShared.
    bool beside_shared = false;
  };
  // kInvalidArgument (a name that is not an address), kIo (bind or listen failed; says why). A stale Unix socket file,
  // to which nobody listens any more, is replaced.
  static base::Result<ListenSocket> Open(const Address& address, const Options& options);

  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) noexcept;
  ~ListenSocket();
  // The address in force: with the port the kernel chose where 0 was asked for.
  const Address& address() const { return address_; }
  // Of a Unix socket, which file it made (device, number); zeros for others.
  using File = std::pair<dev_t, ino_t>;
  File file() const { return file_; }
  // The caller closes it and removes the file.
  int Release();

 private:
  ListenSocket(int fd, Address address) : fd_(fd), address_(std::move(address)) {}
  int fd_ = -1;
  Address address_;
  File file_{};
};

class Acceptor {
 public:
  // Called on the acceptor's worker with a connected, non-blocking socket, which the callee owns.
  using OnAccept = std::function<void(int fd, std::string peer_name)>;

  // Asked before each: false leaves connections in the kernel's queue for a while (kPause), then it is asked again.
  using Admit = std::function<bool()>;

  // Make, use and destroy on `worker`. Destroying it removes a Unix socket's file.
  Acceptor(runtime::Worker& worker, ListenSocket socket, OnAccept on_accept, Admit admit = nullptr);
  ~Acceptor();

  // New options for the socket that is there. What cannot be had is logged, and stays as it was.
  void Apply(const ListenSocket::Options& options);
  // While `shared`, a ListenSocket with beside_shared may have an address that covers this one's, or that this one's
  // covers. Otherwise, as by default, the port is nobody else's. Nothing for a Unix socket.
  void SetShared(bool shared);
  // Last, before it is destroyed: no client begins to connect any more, and those in the kernel's queue are accepted,
  // which would be reset. A client that is turned away just now tries again by itself (TCP), and finds who listens
  // then.
  void AcceptRest();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
