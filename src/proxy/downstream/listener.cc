#include "proxy/downstream/listener.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "net/socket_stream.h"
#include "proxy/downstream/connection.h"

namespace sluice::proxy {

// What the acceptor's worker uses; outlives the Listener until that worker has let it go.
struct Listener::State : std::enable_shared_from_this<State> {
  State(net::ListenSocket s, std::vector<WorkerFront*> w) : socket(std::move(s)), workers(std::move(w)) {}

  // Beyond a limit connections wait in the kernel's queue. Of handshakes too: closed ones would come again and cost
  // more, and clients that send nothing take a place for handshake_timeout only.
  bool Admit() {
    const ConnectionLimits* limits = workers.front()->connection_limits.get();
    const bool process = limits != nullptr && limits->Full();
    const bool connections = open->load(std::memory_order_relaxed) >= options->connections_max;
    const bool secrets =
        options->tls.enabled && handshakes->load(std::memory_order_relaxed) >= options->tls.handshakes_max;
    const bool full = process || connections || secrets;
    if (full && !was_full) {
      SLUICE_LOG_WARN("listener {}: {} ({}) is reached, more wait in the kernel's queue", options->name,
                      process       ? "connections_max of the process"
                      : connections ? "connections_max"
                                    : "handshakes_max",
                      process       ? limits->max()
                      : connections ? options->connections_max
                                    : options->tls.handshakes_max);
    }
    was_full = full;
    return !full;
  }

  // On the connection's worker.
  static void Begin(WorkerFront& front, std::unique_ptr<net::Stream> stream, const ListenerOptions& options,
                    const std::shared_ptr<std::atomic<int64_t>>& open, const ConnectionLimits::PlacePtr& place,
                    const net::TlsPeer* tls) {
    auto* connection = new DownstreamConnection(front, std::move(stream), options, open, tls);
    connection->Hold(place);
    front.downstream.PushBack(*connection);
    connection->Start();
  }
  static void GiveUp(WorkerFront& front, std::atomic<int64_t>& open) {
    open.fetch_sub(1, std::memory_order_relaxed);
    front.connections.fetch_sub(1, std::memory_order_relaxed);
    front.OnDownstreamClosed();
  }

  // False: the peer has as many as it may. Whose a connection is shows only when it has been accepted, and in the queue
  // it would delay those behind it, so it is closed.
  bool Enter(const std::string& peer, ConnectionLimits::PlacePtr* place) {
    WorkerFront& home = *workers.front();
    if (home.connection_limits == nullptr) return true;
    *place = home.connection_limits->Enter(peer, options->connections_per_peer_max);
    if (*place != nullptr) return true;
    home.context.metrics.downstream_connections_refused->Add(home.index());
    if (auto note = home.context.connection.peer_log.Allow(home.worker().now())) {
      SLUICE_LOG_WARN("listener {}: client {} refused: its address has connections_per_peer_max ({}){}", options->name,
                      peer, options->connections_per_peer_max, *note);
    }
    return false;
  }

  void OnAccept(int fd, std::string peer) {
    ConnectionLimits::PlacePtr place;
    if (!Enter(peer, &place)) {
      ::close(fd);
      return;
    }
    open->fetch_add(1, std::memory_order_relaxed);
    WorkerFront* target = *std::min_element(workers.begin(), workers.end(), [](const auto* a, const auto* b) {
      return a->connections.load(std::memory_order_relaxed) < b->connections.load(std::memory_order_relaxed);
    });
    target->connections.fetch_add(1, std::memory_order_relaxed);
    // The descriptor is closed if the worker never gets to it.
    auto owned = std::shared_ptr<int>(new int(fd), [](int* p) {
      if (*p >= 0) ::close(*p);
      delete p;
    });
    if (options->tls.enabled) handshakes->fetch_add(1, std::memory_order_relaxed);
    target->worker().Post([target, owned, place = std::move(place), peer = std::move(peer), options = options,
                           open = open, handshakes = handshakes] {
      if (target->context.closed) return;
      auto stream = net::MakeSocketStream(target->worker(), std::exchange(*owned, -1), peer);
      if (stream == nullptr) {  // no memory left in the kernel for one more
        if (options->tls.enabled) handshakes->fetch_sub(1, std::memory_order_relaxed);
        return GiveUp(*target, *open);
      }
      if (!options->tls.enabled) return Begin(*target, std::move(stream), *options, open, place, nullptr);
      TlsAccept::Start(*target, target->handshakes, std::move(stream), *options, handshakes,
                       [target, options, open, place](std::unique_ptr<net::TlsStream> secured) {
                         if (secured == nullptr) return GiveUp(*target, *open);
                         const net::TlsPeer peer = secured->peer();
                         Begin(*target, std::move(secured), *options, open, place, &peer);
                       });
    });
  }

  net::ListenSocket socket;
  std::vector<WorkerFront*> workers;
  std::shared_ptr<const ListenerOptions> options;  // acceptor's worker only
  std::shared_ptr<std::atomic<int64_t>> open = std::make_shared<std::atomic<int64_t>>(0);
  std::shared_ptr<std::atomic<int64_t>> handshakes = std::make_shared<std::atomic<int64_t>>(0);  // TLS, under way
  std::optional<net::Acceptor> acceptor;  // acceptor's worker only
  bool was_full = false;                  // acceptor's worker only
};

Listener::Listener(ListenerOptions options, net::ListenSocket socket, std::vector<WorkerFront*> workers)
    : address_(socket.address()),
      fd_(socket.fd()),
      borrowed_(socket.borrowed()),
      options_(std::make_shared<const ListenerOptions>(std::move(options))),
      state_(std::make_shared<State>(std::move(socket), std::move(workers))) {
  state_->options = options_;
}

Listener::~Listener() = default;

void Listener::Start() {
  WorkerFront* home = state_->workers.front();
  home->worker().Post([state = state_, home] {
    state->acceptor.emplace(
        home->worker(), std::move(state->socket),
        [state = state.get()](int fd, std::string peer) { state->OnAccept(fd, std::move(peer)); },
        [state = state.get()] { return state->Admit(); });
  });
}

void Listener::Stop(std::function<void()> done) {
  state_->workers.front()->worker().Post([state = state_, done = std::move(done)] {
    state->acceptor.reset();
    if (done) done();
  });
}

void Listener::HandOver(std::function<void()> done) {
  state_->workers.front()->worker().Post([state = state_, done = std::move(done)] {
    if (!state->acceptor) return done();
    state->acceptor->HandOver([state, done] {
      state->acceptor.reset();
      done();
    });
  });
}

void Listener::SetShared(bool shared, std::function<void()> done) {
  state_->workers.front()->worker().Post([state = state_, shared, done = std::move(done)] {
    if (state->acceptor) state->acceptor->SetShared(shared);
    done();
  });
}

void Listener::Update(const ListenerOptions& options, std::function<void()> done) {
  options_ = std::make_shared<const ListenerOptions>(options);
  state_->workers.front()->worker().Post([state = state_, options = options_, done = std::move(done)] {
    const bool socket_changed =
        options->backlog != state->options->backlog || options->unix_mode != state->options->unix_mode;
    state->options = options;
    if (socket_changed && state->acceptor) {
      state->acceptor->Apply({static_cast<int>(options->backlog), options->unix_mode});
    }
    done();
  });
}

}  // namespace sluice::proxy
