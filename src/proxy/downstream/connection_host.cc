#include "proxy/downstream/connection_host.h"

#include <utility>

namespace sluice::proxy {

void ConnectionHost::OnDownstreamClosed() {
  // `connections` also counts those that are on their way here from the acceptor.
  if (!draining || connections.load(std::memory_order_relaxed) != 0 || !on_drained) return;
  std::exchange(on_drained, nullptr)();
}

}  // namespace sluice::proxy
