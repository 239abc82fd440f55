// LocalPeers: which process is behind a connection of the admin RPC's Unix socket, as the kernel knows it
// (SO_PEERCRED). gRPC tells of such a connection no more than its descriptor's number, "fd:17", so the numbers are kept
// beside it.
//
// Thread-safe.
#pragma once

#include <sys/types.h>

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace sluice::admin {

class LocalPeers {
 public:
  // A connection that was accepted; before gRPC gets it. What the number meant before is forgotten, so there are never
  // more than the process may have descriptors.
  void Remember(int fd);
  // "unix: uid=1000 pid=4711" for "fd:17"; `peer` itself, if it is none that is remembered. The process is the one that
  // connected: it may have ended since, or given the connection to another.
  std::string NameOf(std::string_view peer) const;

 private:
  struct Process {
    uid_t uid;
    pid_t pid;
  };

  mutable std::mutex mutex_;
  std::unordered_map<int, Process> processes_;  // under mutex_; by descriptor
};

}  // namespace sluice::admin
