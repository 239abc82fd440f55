// Supervisor: what a service manager such as systemd gives the daemon and hears of it: sockets that listen already,
// where the daemon stands (Type=notify), and sockets to keep over a crash (FileDescriptorStoreMax=).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/notify_socket.h"
#include "net/passed_sockets.h"
#include "proxy/options.h"

namespace sluice::server {

// Thread safety: all of it, but for FromEnvironment. A message that cannot be sent is a line in the log.
class Supervisor {
 public:
  // There is none.
  Supervisor() = default;
  // By NOTIFY_SOCKET, LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, which it takes out of the environment: before there
  // are threads. kInvalidArgument, kIo.
  static base::Result<std::shared_ptr<Supervisor>> FromEnvironment();
  Supervisor(net::NotifySocket notify, net::PassedSockets passed, std::string address = {})
      : notify_(std::move(notify)), address_(std::move(address)), passed_(std::move(passed)) {}

  // A process that takes over: "NAME=value" for its environment; from now on that one speaks for the daemon, and this
  // one says nothing any more.
  std::vector<std::string> Environment() const;
  void LeaveTo(uint64_t pid);

  // A socket that was passed, by the listener's address or else by its name.
  std::optional<net::ListenSocket> Find(const proxy::ListenerOptions& options);
  // All listeners have asked. What was kept and is wanted no more is given up; kInvalidArgument names sockets that a
  // supervisor has made and no listener takes: clients would wait there for ever.
  base::Status EndSearch();

  // It accepts calls; also at the end of a reload.
  void Ready();
  // `now`: of the monotonic clock.
  void Reloading(base::TimePoint now);
  void Stopping();

  // The supervisor keeps a copy of `socket`, unless it is its own, until Forget or an end that is no crash.
  void Keep(const net::ListenSocket& socket);
  void Forget(const net::Address& address);
  // The same of a socket that a former process has given it.
  void ForgetInherited(const net::Address& address);
  void ForgetAll();

 private:
  bool Send(const std::string& lines, std::span<const int> fds = {});

  net::NotifySocket notify_;
  std::string address_;  // of notify_; empty: none
  std::atomic<bool> left_{false};
  std::mutex mutex_;
  net::PassedSockets passed_;   // under mutex_
  std::set<std::string> kept_;  // under mutex_: names in the supervisor's store
};

}  // namespace sluice::server
