// Successor: a new process of the daemon, started by the running one, with the socket between the two.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "handover/channel.h"
#include "handover/program.h"

namespace sluice::handover {

// Not thread-safe.
class Successor {
 public:
  // The descriptor that the new process has of the socket, by this variable of its environment.
  static constexpr const char* kVariable = "SLUICE_HANDOVER_FD";

  // kIo: it cannot be started. It inherits the standard streams, the folder and the signal mask of this thread.
  static base::Result<Successor> Start(const Program& program);
  Successor(Successor&& other) noexcept : pid_(std::exchange(other.pid_, 0)), channel_(std::move(other.channel_)) {}
  Successor& operator=(Successor&&) = delete;
  // Ends it, unless it was let go.
  ~Successor();

  pid_t pid() const { return pid_; }
  Channel& channel() { return channel_; }
  // It lives on, and is the daemon from now on.
  Channel LetGo();
  // Takes the exit of `pid` away, if it has ended, so that no dead process is left.
  static void Reap(pid_t pid);

 private:
  Successor(pid_t pid, Channel channel) : pid_(pid), channel_(std::move(channel)) {}
  pid_t pid_ = 0;  // 0: moved from, or let go
  Channel channel_;
};

}  // namespace sluice::handover
