// The server's listeners: their sockets, also where one takes over another one's port.
#include <algorithm>
#include <latch>

#include "base/log.h"
#include "proxy/listener.h"
#include "server/server.h"

namespace sluice::server {

base::Result<net::ListenSocket> Server::OpenSocket(const proxy::ListenerOptions& options, bool beside_shared) {
  return net::ListenSocket::Open(options.address,
                                 {static_cast<int>(options.backlog), options.unix_mode, beside_shared});
}

// A socket for a new address. A listener that the reload takes away may have its port, at 0.0.0.0 where the new one is
// at 127.0.0.1 or the other way round: then both stand side by side until the former one has handed over. Nobody is
// without a listener meanwhile, and if something fails the former one was never touched.
base::Result<net::ListenSocket> Server::OpenBeside(const proxy::ListenerOptions& options,
                                                   const config::Config& wanted) {
  auto socket = OpenSocket(options);
  if (socket || options.address.kind() != net::Address::Kind::kIp) return socket;
  std::vector<proxy::Listener*> leaving;
  for (const auto& listener : listeners_) {
    const net::Address& address = listener->options().address;
    const bool stays = std::any_of(wanted.listeners.begin(), wanted.listeners.end(),
                                   [&](const auto& l) { return l.address == address; });
    if (!stays && address.kind() == net::Address::Kind::kIp && address.port() == options.address.port())
      leaving.push_back(listener.get());
  }
  if (leaving.empty()) return socket;
  const auto share = [&leaving](bool shared) {
    std::latch done(static_cast<std::ptrdiff_t>(leaving.size()));
    for (proxy::Listener* listener : leaving) listener->SetShared(shared, [&done] { done.count_down(); });
    done.wait();
  };
  share(true);
  socket = OpenSocket(options, /*beside_shared=*/true);
  share(false);
  return socket;
}

void Server::AddListener(const proxy::ListenerOptions& options, net::ListenSocket socket) {
  // Listeners take turns in which worker accepts for them; the list starts with it.
  std::vector<proxy::WorkerContext*> order;
  for (size_t i = 0; i < workers_.size(); ++i)
    order.push_back(workers_[(listeners_.size() + i) % workers_.size()].get());
  listeners_.push_back(std::make_unique<proxy::Listener>(options, std::move(socket), std::move(order)));
  listeners_.back()->Start();
  SLUICE_LOG_INFO("listening on {}", listeners_.back()->address().ToString());
}

}  // namespace sluice::server
