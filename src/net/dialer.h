// Dialer: one attempt to connect to an Address, with a deadline. Names are resolved by net/dns; those that neither
// /etc/hosts nor a DNS server has, by the C library on a helper thread: nsswitch.conf(5) may name other sources.
//
// A name's addresses are tried as RFC 8305 says ("happy eyeballs"): IPv6 and IPv4 in turn, the next one as soon as one
// is refused, or beside it when it has not answered for a while; the first that connects wins and the others are
// closed. So an address that answers nothing costs a part of the time and not all of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/address.h"
#include "net/stream.h"
#include "runtime/worker.h"

namespace sluice::net {

struct SocketAddress;

// An attempt to connect that is under way; destroying it cancels it.
class Attempt {
 public:
  virtual ~Attempt() = default;
};

class Dialer final : public Attempt {
 public:
  // Called once, on the worker, not from inside the constructor: a connected stream, or kConnectFailed /
  // kConnectTimeout.
  using OnDone = std::function<void(base::Result<std::unique_ptr<Stream>>)>;
  // All addresses of a name; may block.
  using Resolve = std::function<base::Result<std::vector<SocketAddress>>(const Address&)>;

  // RFC 8305 5, "Connection Attempt Delay". Less where the deadline would come before the last address had its turn.
  static constexpr std::chrono::milliseconds kNextAddressAfter{250};
  // Sockets that connect at once; beyond it the oldest is given up. And addresses of a name that are looked at.
  static constexpr size_t kConnectingMax = 4;
  static constexpr size_t kAddressesMax = 64;

  // Starts at once. Make and destroy on `worker`; destroying it cancels the attempt and `on_done` is not called.
  // `resolve`: on a helper thread, and first; null: as said above.
  Dialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline, OnDone on_done,
         Resolve resolve = nullptr);
  ~Dialer() override;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// How connections are made: as Dialer does, which is the default, or in memory for tests.
using DialFunction =
    std::function<std::unique_ptr<Attempt>(runtime::Worker&, const Address&, base::TimePoint deadline, Dialer::OnDone)>;
std::unique_ptr<Attempt> Dial(runtime::Worker& worker, const Address& address, base::TimePoint deadline,
                              Dialer::OnDone on_done);

}  // namespace sluice::net
