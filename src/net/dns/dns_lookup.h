// DnsLookup: the addresses of a host, to connect to: those in /etc/hosts, else those that DNS servers give, by name and
// search domains; of each family the best first (RFC 6724).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "net/dns/dns_system.h"
#include "runtime/worker.h"

namespace sluice::net {

class DnsLookup {
 public:
  // When one family is there the other one is waited for so long (RFC 8305 3, "Resolution Delay").
  static constexpr base::Nanos kOtherFamilyWait = std::chrono::milliseconds(50);

  // Called once, on the worker, not from inside the constructor: addresses as text, at least one; kNotFound: the
  // servers have none, or fail; kConnectFailed: none has answered in time.
  using OnDone = std::function<void(base::Result<std::vector<std::string>>)>;

  // Starts at once. Make and destroy on `worker`; destroying it cancels it, and `on_done` is not called.
  DnsLookup(runtime::Worker& worker, const std::string& host, OnDone on_done, DnsSettings settings = {});
  ~DnsLookup();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
