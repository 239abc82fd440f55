// AcceptLoop: takes connections from a listening socket, as long as there are descriptors for them. It does not wait:
// its owner calls Run when the socket is readable, and again as the outcome says.
//
// The last descriptors of the process are not for clients (DescriptorReserve). Out of descriptors or memory it asks for
// a pause and neither spins nor wedges; clients wait in the kernel's queue meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/log_limit.h"
#include "net/descriptor_reserve.h"
#include "net/socket_address.h"

namespace sluice::net {

// Not thread-safe.
class AcceptLoop {
 public:
  // Accepted in one run, so that a storm of connections leaves room for other work.
  static constexpr int kAcceptsMax = 64;
  static constexpr std::chrono::milliseconds kPause{100};
  // While descriptors are short this is logged once in this time.
  static constexpr std::chrono::seconds kLogPeriod{10};

  enum class Outcome : uint8_t {
    kDrained,  // the queue was empty: run again at the next edge
    kMore,     // connections may be left: run again soon, without a further edge
    kPause,    // none may be taken now: run again after kPause, without a further edge
  };
  // Gets a connected, non-blocking socket, which it owns. False: nothing further may be accepted. May not destroy the
  // loop.
  using OnAccept = std::function<bool(int fd, const SocketAddress& peer)>;
  // Asked before each: false leaves connections in the kernel's queue (kPause).
  using Admit = std::function<bool()>;

  // `name` stands at the beginning of its log lines; `share` is one of DescriptorReserve's.
  AcceptLoop(std::string name, int share, OnAccept on_accept, Admit admit = nullptr)
      : name_(std::move(name)), on_accept_(std::move(on_accept)), admit_(std::move(admit)), reserve_(share) {}

  // Accepts at most `count` connections from `listener`.
  Outcome Run(int listener, base::TimePoint now, int count = kAcceptsMax);

 private:
  Outcome Pause(base::TimePoint now, const char* why);

  const std::string name_;
  const OnAccept on_accept_;
  const Admit admit_;
  DescriptorReserve reserve_;
  base::LogLimit log_{1, kLogPeriod};
};

}  // namespace sluice::net
