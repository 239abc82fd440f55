// UnixSocketClaim: taking a path for a Unix socket, without taking it from a living process.
//
//   1. Lock the directory (flock): two daemons that start at once go through steps 2 to 4 one after the
//   other.
//   2. Something is at the path: not a socket, error; a connect succeeds (or its backlog is full), another
//   process lives
//      there, error; a connect is refused, its process is dead, remove it.
//   3. The caller binds, under the umask that Claim set: the file has mode 0600 from its first moment.
//   4. Release: chmod for certainty, umask back, unlock.
// The umask belongs to the process: a file that another thread makes between 2 and 4 may come out with fewer
// rights than intended, never with more.
#pragma once

#include <sys/types.h>

#include <string>

#include "base/error.h"

namespace sluice::admin {

class UnixSocketClaim {
 public:
  // kConflict if a process listens there; kInvalidArgument if the path holds something else; kIo.
  static base::Result<UnixSocketClaim> Claim(const std::string& path);
  UnixSocketClaim(UnixSocketClaim&& other) noexcept;
  UnixSocketClaim& operator=(UnixSocketClaim&&) = delete;
  ~UnixSocketClaim();

  // After bind: the file gets its mode. kIo.
  base::Status SetMode();

 private:
  UnixSocketClaim(std::string path, int directory, mode_t umask)
      : path_(std::move(path)), directory_(directory), umask_(umask) {}
  std::string path_;
  int directory_;  // descriptor that holds the lock; -1 after a move
  mode_t umask_;   // to be restored
};

}  // namespace sluice::admin
