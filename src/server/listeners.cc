#include "server/listeners.h"

#include <algorithm>
#include <atomic>
#include <latch>

#include "base/log.h"
#include "proxy/downstream/listener.h"
#include "server/supervisor.h"

namespace sluice::server {
namespace {

base::Result<net::ListenSocket> OpenSocket(const proxy::ListenerOptions& options, bool beside_shared = false) {
  return net::ListenSocket::Open(options.address,
                                 {static_cast<int>(options.backlog), options.unix_mode, beside_shared});
}

// The one with that address in `wanted`, or null.
const proxy::ListenerOptions* Find(const std::vector<proxy::ListenerOptions>& wanted, const net::Address& address) {
  auto it = std::ranges::find(wanted, address, &proxy::ListenerOptions::address);
  return it == wanted.end() ? nullptr : &*it;
}

}  // namespace

Listeners::Listeners() = default;
Listeners::~Listeners() = default;

base::Result<Listeners::Added> Listeners::Prepare(const std::vector<proxy::ListenerOptions>& wanted) {
  Added added;
  for (const proxy::ListenerOptions& options : wanted) {
    const bool known = std::ranges::any_of(
        listeners_, [&](const auto& listener) { return listener->options().address == options.address; });
    if (known) continue;
    if (auto inherited = TakeInherited(options)) {
      added.emplace_back(options, std::move(*inherited));
      continue;
    }
    if (auto passed = supervisor_ != nullptr ? supervisor_->Find(options) : std::nullopt) {
      added.emplace_back(options, std::move(*passed));
      continue;
    }
    auto socket = OpenBeside(options, wanted);
    if (!socket) return socket.error();
    added.emplace_back(options, std::move(*socket));
  }
  return added;
}

// By the address as it is written, for port 0 is another port each time; or, of a supervisor's, by the name.
std::optional<net::ListenSocket> Listeners::TakeInherited(const proxy::ListenerOptions& options) {
  auto found = std::ranges::find(inherited_, options.address.ToString(), &Inherited::configured);
  if (found == inherited_.end())
    found = std::ranges::find_if(inherited_, [&](const Inherited& i) {
      return i.socket.borrowed() && !i.name.empty() && i.name == options.name;
    });
  if (found == inherited_.end()) return std::nullopt;
  net::ListenSocket socket = std::move(found->socket);
  inherited_.erase(found);
  return socket;
}

void Listeners::DropInherited() {
  for (const Inherited& inherited : inherited_) {
    if (supervisor_ != nullptr && !inherited.socket.borrowed())
      supervisor_->ForgetInherited(inherited.socket.address());
  }
  inherited_.clear();
}

std::vector<const proxy::Listener*> Listeners::All() const {
  std::vector<const proxy::Listener*> out;
  for (const auto& listener : listeners_) out.push_back(listener.get());
  return out;
}

// A listener that leaves may have the port of a new one, at 0.0.0.0 where the new one is at 127.0.0.1 or the other way
// round. Then both sockets stand side by side until the former one has handed over; if something fails, the former one
// was never touched.
base::Result<net::ListenSocket> Listeners::OpenBeside(const proxy::ListenerOptions& options,
                                                      const std::vector<proxy::ListenerOptions>& wanted) {
  auto socket = OpenSocket(options);
  if (socket || options.address.kind() != net::Address::Kind::kIp) return socket;
  std::vector<proxy::Listener*> leaving;
  for (const auto& listener : listeners_) {
    const net::Address& address = listener->options().address;
    const bool same_port = address.kind() == net::Address::Kind::kIp && address.port() == options.address.port();
    if (same_port && Find(wanted, address) == nullptr) leaving.push_back(listener.get());
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

void Listeners::Apply(const std::vector<proxy::ListenerOptions>& wanted, Added added) {
  std::vector<std::unique_ptr<proxy::Listener>> kept, gone;
  for (auto& listener : listeners_) {
    const proxy::ListenerOptions* options = Find(wanted, listener->options().address);
    if (options != nullptr && !(*options == listener->options())) {
      // Waited for: a client that connects after the reload was answered meets the new options, such as the
      // certificate that is asked for.
      std::latch in_force(1);
      listener->Update(*options, [&in_force] { in_force.count_down(); });
      in_force.wait();
    }
    (options != nullptr ? kept : gone).push_back(std::move(listener));
  }
  listeners_ = std::move(kept);
  // Their addresses are free when this returns: the next reload may want them.
  std::latch closed(static_cast<std::ptrdiff_t>(gone.size()));
  for (auto& listener : gone) {
    if (supervisor_ != nullptr) supervisor_->Forget(listener->address());
  }
  for (auto& listener : gone) listener->HandOver([&closed] { closed.count_down(); });
  closed.wait();
  for (auto& [options, socket] : added) Add(options, std::move(socket));
}

void Listeners::Add(const proxy::ListenerOptions& options, net::ListenSocket socket) {
  if (supervisor_ != nullptr) supervisor_->Keep(socket);
  socket.SetTenure(ours_);
  // Of one that another process has made; it listens, whatever its queue.
  (void)socket.Apply({static_cast<int>(options.backlog), options.unix_mode, false});
  // Listeners take turns in which worker accepts for them; the list starts with it.
  std::vector<proxy::WorkerFront*> order(workers_);
  std::rotate(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(listeners_.size() % order.size()),
              order.end());
  listeners_.push_back(std::make_unique<proxy::Listener>(options, std::move(socket), std::move(order)));
  listeners_.back()->Start();
  SLUICE_LOG_INFO("listening on {}", listeners_.back()->address().ToString());
}

void Listeners::StopAll(std::function<void()> done) {
  if (supervisor_ != nullptr) supervisor_->ForgetAll();  // clients are refused, and go elsewhere
  auto left = std::make_shared<std::atomic<size_t>>(listeners_.size() + 1);
  auto stopped = [left, done = std::move(done)] {
    if (left->fetch_sub(1, std::memory_order_acq_rel) == 1) done();
  };
  for (auto& listener : listeners_) listener->Stop(stopped);
  stopped();
}

void Listeners::Clear() { listeners_.clear(); }

uint16_t Listeners::port(size_t index) const {
  return index < listeners_.size() ? listeners_[index]->address().port() : 0;
}

}  // namespace sluice::server
