// SocketWorker: a ManualWorker with real sockets on it: turns until something has happened, time stands still
// meanwhile.
#pragma once

#include <unistd.h>

#include <functional>
#include <string>
#include <thread>

#include "support/manual_worker.h"

namespace sluice::test {

struct SocketWorker : ManualWorker {
  // Until the kernel or a helper thread has done its part. The test program's time limit bounds it.
  void RunUntil(const std::function<bool()>& done) {
    while (Run(), !done()) std::this_thread::yield();
  }
};

// A path for a Unix socket that no other process uses.
inline std::string SocketPath(const std::string& name) {
  return "/tmp/sluice-" + std::to_string(::getpid()) + "-" + name + ".sock";
}

}  // namespace sluice::test
