// NotifySocket: tells the process's supervisor where the process stands: sd_notify(3), a datagram of lines "KEY=value".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace sluice::net {

// Thread safety: Send from any thread.
class NotifySocket {
 public:
  // Descriptors in one message.
  static constexpr size_t kDescriptorsMax = 16;

  // One that says nothing to any process.
  NotifySocket() = default;
  // `address`: of $NOTIFY_SOCKET: "/path", or "@name" in the abstract namespace. kInvalidArgument for another one, kIo.
  static base::Result<NotifySocket> Open(std::string_view address);
  NotifySocket(NotifySocket&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), address_(std::move(other.address_)) {}
  NotifySocket& operator=(NotifySocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~NotifySocket();

  bool open() const { return fd_ >= 0; }
  // `lines`: of the protocol, joined by '\n'. `fds`, kDescriptorsMax at most, go along. kIo where it could not be sent,
  // for a second at most while the supervisor takes nothing; a closed one takes everything.
  base::Status Send(std::string_view lines, std::span<const int> fds = {}) const;

 private:
  int fd_ = -1;
  std::string address_;  // a path, or '\0' and an abstract name
};

}  // namespace sluice::net
