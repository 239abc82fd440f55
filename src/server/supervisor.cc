#include "server/supervisor.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "base/log.h"

namespace sluice::server {

base::Result<std::shared_ptr<Supervisor>> Supervisor::FromEnvironment() {
  const char* set = std::getenv("NOTIFY_SOCKET");
  std::string address(set != nullptr ? set : "");
  base::Result<net::NotifySocket> notify = net::NotifySocket();
  if (set != nullptr) notify = net::NotifySocket::Open(address);
  auto passed = net::PassedSockets::Take(std::getenv("LISTEN_PID"), std::getenv("LISTEN_FDS"),
                                         std::getenv("LISTEN_FDNAMES"), ::getpid());
  for (const char* name : {"NOTIFY_SOCKET", "LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  if (!notify) return notify.error();
  if (!passed) return passed.error();
  return std::make_shared<Supervisor>(std::move(*notify), std::move(*passed), std::move(address));
}

std::vector<std::string> Supervisor::Environment() const {
  if (address_.empty()) return {};
  std::string variable("NOTIFY_SOCKET=");
  variable += address_;
  return {std::move(variable)};
}

void Supervisor::LeaveTo(uint64_t pid) {
  Send("MAINPID=" + std::to_string(pid));
  left_.store(true, std::memory_order_relaxed);
}

std::optional<net::ListenSocket> Supervisor::Find(const proxy::ListenerOptions& options) {
  std::lock_guard lock(mutex_);
  auto socket =
      passed_.Find(options.address, options.name, {static_cast<int>(options.backlog), options.unix_mode, false});
  if (socket) SLUICE_LOG_INFO("listener {}: takes the socket that was passed to it", options.name);
  return socket;
}

base::Status Supervisor::EndSearch() {
  std::lock_guard lock(mutex_);
  for (const std::string& name : passed_.DropKept()) Send("FDSTOREREMOVE=1\nFDNAME=" + name);
  const std::string strangers = passed_.Strangers();
  if (strangers.empty()) return base::Ok();
  return base::MakeError(base::ErrorKind::kInvalidArgument,
                         "sockets that were passed and that no listener has by its address or name: " + strangers);
}

void Supervisor::Ready() { Send("READY=1\nSTATUS=accepting calls"); }

void Supervisor::Reloading(base::TimePoint now) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(now.time_since_epoch());
  Send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(since.count()) + "\nSTATUS=reading the configuration");
}

void Supervisor::Stopping() { Send("STOPPING=1\nSTATUS=draining"); }

void Supervisor::Keep(const net::ListenSocket& socket) {
  const auto name = net::PassedSockets::NameOfKept(socket.address());
  if (!notify_.open() || socket.borrowed() || !name) return;
  std::lock_guard lock(mutex_);
  if (!kept_.insert(*name).second) return;
  const int fd = socket.fd();
  if (!Send("FDSTORE=1\nFDNAME=" + *name, {&fd, 1})) kept_.erase(*name);  // another listener's start may find it again
}

void Supervisor::Forget(const net::Address& address) {
  const auto name = net::PassedSockets::NameOfKept(address);
  std::lock_guard lock(mutex_);
  if (name && kept_.erase(*name) > 0) Send("FDSTOREREMOVE=1\nFDNAME=" + *name);
}

void Supervisor::ForgetInherited(const net::Address& address) {
  const auto name = net::PassedSockets::NameOfKept(address);
  if (notify_.open() && name) Send("FDSTOREREMOVE=1\nFDNAME=" + *name);
}

void Supervisor::ForgetAll() {
  std::lock_guard lock(mutex_);
  for (const std::string& name : kept_) Send("FDSTOREREMOVE=1\nFDNAME=" + name);
  kept_.clear();
}

bool Supervisor::Send(const std::string& lines, std::span<const int> fds) {
  if (left_.load(std::memory_order_relaxed)) return true;
  const auto status = notify_.Send(lines, fds);
  if (!status) SLUICE_LOG_WARN("{}", status.error().detail);
  return status.ok();
}

}  // namespace sluice::server
