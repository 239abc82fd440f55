// UnixSocketClaim: takes a path for a Unix socket, without taking it from a living process.
//
//   1. Lock the directory (flock): two daemons that start at once go through steps 2 and 3 one after the other.
//   2. Something is at the path: not a socket, error; a connect succeeds (or its backlog is full), another process
//      lives there, error; a connect is refused, its process is dead, remove it.
//   3. The caller binds and listens.
//   4. Unlock.
#pragma once

#include <utility>

#include "base/error.h"
#include "net/address.h"

namespace sluice::net {

class UnixSocketClaim {
 public:
  // Of a Unix socket. kConflict if a process listens there; kInvalidArgument if the path holds something else; kIo.
  // Waits a second at most for the lock: not for workers.
  static base::Result<UnixSocketClaim> Claim(const Address& address);
  UnixSocketClaim(UnixSocketClaim&& other) noexcept : directory_(std::exchange(other.directory_, -1)) {}
  UnixSocketClaim& operator=(UnixSocketClaim&&) = delete;
  ~UnixSocketClaim();

 private:
  explicit UnixSocketClaim(int directory) : directory_(directory) {}
  int directory_;  // descriptor that holds the lock; -1 after a move
};

}  // namespace sluice::net
