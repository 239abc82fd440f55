// DnsLookup: the addresses of a host, to connect to: those in /etc/hosts, else those that DNS servers give, by name and
// search domains; the best first (RFC 6724).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/dns/dns_system.h"
#include "runtime/worker.h"

namespace sluice::net {

class DnsLookup {
 public:
  // Called once, on the worker, not from inside the constructor: addresses as text, at least one; kNotFound: no such
  // name, or one without addresses; kConnectFailed: no answer.
  using OnDone = std::function<void(base::Result<std::vector<std::string>>)>;

  // Starts at once. Make and destroy on `worker`; destroying it cancels it, and `on_done` is not called.
  DnsLookup(runtime::Worker& worker, const std::string& host, OnDone on_done, DnsSettings settings = {});
  ~DnsLookup();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace sluice::net
