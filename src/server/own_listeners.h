// OwnListeners: keeps endpoints out of lists that are listeners of this process: calls to them would go round in a
// circle.
//
// Thread safety: every function from any thread.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/list.h"
#include "net/address.h"
#include "proxy/options.h"
#include "upstream/cluster.h"

namespace sluice::server {

class OwnListeners {
 public:
  void Set(const std::vector<proxy::ListenerOptions>& listeners);
  // The list of a source without them. A log line names each that is left out.
  discovery::List Without(std::string_view cluster, const discovery::List& list) const;
  // kInvalidArgument: one of the endpoints that are added is a listener.
  base::Status Check(const upstream::ListChange& change) const;

 private:
  // The listener that `to` leads to; nullopt: none.
  std::optional<std::string> Find(const net::Address& to) const;

  mutable std::mutex mutex_;
  std::vector<net::Address> listeners_;  // under mutex_
};

}  // namespace sluice::server
