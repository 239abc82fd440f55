// ListenSocket: a bound and listening TCP or Unix socket, of a data listener or of the control side. It is opened
// before anything accepts from it, so that errors are known at start; AcceptLoop takes connections from it.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/error.h"
#include "net/address.h"

namespace sluice::net {

// Not thread-safe. Opening one may wait for a lock (UnixSocketClaim): not for workers.
class ListenSocket {
 public:
  struct Options {
    int backlog = 1024;          // connections in the kernel's queue
    uint32_t unix_mode = 0666;   // of a Unix socket's file
    bool beside_shared = false;  // may stand beside sockets of this process that share the port now: SetShared
  };
  // kInvalidArgument (a name that is not an address, a file that is no socket), kConflict (in use), kIo; says why. A
  // stale Unix socket file, left by a process that has died, is replaced. The new file never has more rights than
  // `unix_mode`.
  static base::Result<ListenSocket> Open(const Address& address, const Options& options);

  // Takes over a socket that another process has made and may still have: a supervisor. Owns `fd` in any case.
  // `removes_file`: it was made by this daemon, which takes away a Unix socket's file at the end. kInvalidArgument:
  // no stream socket of IP or with a path that listens.
  static base::Result<ListenSocket> Adopt(int fd, bool removes_file);

  ListenSocket(ListenSocket&& other) noexcept;
  ListenSocket& operator=(ListenSocket&& other) noexcept;
  // Closes it and removes a Unix socket's file, unless that is another process's by now.
  ~ListenSocket();

  // With the port that the kernel chose where 0 was asked for.
  const Address& address() const { return address_; }
  // Not blocking. -1 when moved from.
  int fd() const { return fd_; }
  // Made by a supervisor, which has it whatever happens here.
  bool borrowed() const { return borrowed_; }

  // From now on this process has the socket only as long as `ours` is true: where it is false, another process has
  // taken it over, as if a supervisor had made it. It may change at any time, on any thread.
  void SetTenure(std::shared_ptr<const std::atomic<bool>> ours) { ours_ = std::move(ours); }

  // New options for the socket that is there. kIo: some could not be had and stay as they were.
  base::Status Apply(const Options& options);
  // While `shared`, a ListenSocket with beside_shared may have an address that covers this one's, or that this one's
  // covers. Otherwise, as by default, the port is exclusive. No effect on a Unix socket.
  void SetShared(bool shared);
  // From now on the kernel's queue takes no further connection; those in it can still be accepted. A client whose SYN
  // is dropped sends it again after a second (RFC 6298 2.1). Last, before it is destroyed. No effect on a Unix socket,
  // nor on one that a supervisor has too: there clients wait for the next process.
  void DropNewConnections();

 private:
  using File = std::pair<dev_t, ino_t>;
  static File FileAt(const Address& address);

  ListenSocket(int fd, const Address& address) : fd_(fd), address_(address) {}
  bool is_unix() const { return address_.kind() == Address::Kind::kUnix; }
  base::Status Bind(const Options& options);

  bool left() const { return ours_ != nullptr && !ours_->load(std::memory_order_relaxed); }

  int fd_ = -1;
  Address address_;
  std::shared_ptr<const std::atomic<bool>> ours_;  // null: it is
  bool borrowed_ = false;
  File file_{};  // the file that a Unix socket made; zeros: none
};

}  // namespace sluice::net
