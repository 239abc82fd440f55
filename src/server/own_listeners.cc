#include "server/own_listeners.h"

#include "base/log.h"
#include "net/own_listener.h"

namespace sluice::server {

void OwnListeners::Set(const std::vector<proxy::ListenerOptions>& listeners) {
  std::lock_guard lock(mutex_);
  listeners_.clear();
  for (const proxy::ListenerOptions& listener : listeners) listeners_.push_back(listener.address);
}

std::optional<std::string> OwnListeners::Find(const net::Address& to) const {
  std::lock_guard lock(mutex_);
  for (const net::Address& listener : listeners_) {
    if (net::LeadsToListener(to, listener)) return listener.ToString();
  }
  return std::nullopt;
}

discovery::List OwnListeners::Without(std::string_view cluster, const discovery::List& list) const {
  discovery::List kept;
  for (const auto& endpoint : list) {
    if (const auto listener = Find(endpoint.address)) {
      SLUICE_LOG_WARN("cluster {}: endpoint {} ({}) is left out: it leads to this process's own listener {}", cluster,
                      endpoint.name, endpoint.address.ToString(), *listener);
    } else {
      kept.push_back(endpoint);
    }
  }
  return kept;
}

base::Status OwnListeners::Check(const upstream::ListChange& change) const {
  for (const upstream::WantedEndpoint& endpoint : change.added) {
    if (const auto listener = Find(endpoint.address)) {
      return base::MakeError(base::ErrorKind::kInvalidArgument, "endpoint " + endpoint.name + ": " +
                                                                    endpoint.address.ToString() +
                                                                    " leads to this process's own listener " +
                                                                    *listener + ": calls would go round in a circle");
    }
  }
  return base::Ok();
}

}  // namespace sluice::server
