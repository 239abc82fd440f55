#include "proxy/listener.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>

#include "base/hash.h"
#include "base/log.h"
#include "net/socket_stream.h"
#include "proxy/call.h"
#include "proxy/call_mover.h"
#include "runtime/runtime.h"

namespace sluice::proxy {
namespace {

// Calls of one connection, with those that were reset and whose tasks have yet to see it. A client that resets as fast
// as it asks (CVE-2023-44487) stays within concurrent_streams_max and would grow this without bound. What EarlyHits
// holds until the turn's I/O ends is not in it: those are open streams, at most concurrent_streams_max, and counted
// once they are reset.
constexpr uint32_t kCallsPerStream = 2;

ClientPtr MakeClient(std::string peer_name, const net::TlsPeer* tls) {
  static std::atomic<uint64_t> flows{0};  // one a connection: not on the path of a call
  Client client{std::move(peer_name), 0, flows.fetch_add(1, std::memory_order_relaxed), tls != nullptr, {}};
  if (tls != nullptr) client.identity = tls->names.Best();
  client.peer_hash = base::Hash64(client.address());
  return std::make_shared<const Client>(std::move(client));
}

}  // namespace

DownstreamConnection::DownstreamConnection(WorkerContext& context, std::unique_ptr<net::Stream> transport,
                                           const ListenerOptions& options, std::shared_ptr<std::atomic<int64_t>> open,
                                           const net::TlsPeer* tls)
    : context_(context),
      open_(std::move(open)),
      connection_(context.connection, std::move(transport), http2::Role::kServer,
                  http2::ConnectionOptions{options.http2, options.keepalive, options.life}, *this),
      client_(MakeClient(connection_.peer_name(), tls)),
      calls_max_(static_cast<long>(
          std::min<uint64_t>(uint64_t{kCallsPerStream} * options.http2.concurrent_streams_max, LONG_MAX))) {
  context_.metrics.downstream_connections->Add(context_.index(), 1);
  context_.metrics.downstream_connections_total->Add(context_.index());
}

DownstreamConnection::~DownstreamConnection() {
  context_.metrics.downstream_connections->Add(context_.index(), -1);
  context_.connections.fetch_sub(1, std::memory_order_relaxed);
  open_->fetch_sub(1, std::memory_order_relaxed);
  context_.OnDownstreamClosed();
}

void DownstreamConnection::Start() {
  connection_.Start();
  if (context_.draining) connection_.Drain();
}

void DownstreamConnection::CloseNow() { connection_.CloseNow("the proxy is stopping"); }

const HeldForClient& DownstreamConnection::LookAtHeld() {
  const http2::Session& session = connection_.session();
  if (connection_.closed() || connection_.ending()) return held_ = {.leaving = session.output().size()};
  const uint64_t data = session.stats().data_bytes_sent + session.stats().data_bytes_received;
  const http2::Session::Held now = session.LookAtHeld();
  const http2::Session::Held before = std::exchange(seen_held_, now);
  const size_t sum_before = before.waiting + before.resting, sum_now = now.waiting + now.resting;
  held_ = {.waiting = std::min(before.waiting, now.waiting),
           .resting = std::min(before.resting, now.resting),
           .moved = static_cast<size_t>(data - std::exchange(seen_moved_, data))};
  // Or output that the socket took, or calls that ended.
  if (sum_before > sum_now) held_.moved = std::max(held_.moved, sum_before - sum_now);
  return held_;
}

void DownstreamConnection::CloseForMemory() {
  if (connection_.closed() || connection_.ending()) return;
  context_.metrics.memory_connections_closed->Add(context_.index());
  if (auto note = context_.connection.peer_log.Allow(context_.worker().now())) {
    SLUICE_LOG_WARN("client {}: connection ended: memory is scarce, and of {} bytes held for it {} moved in {} ms{}",
                    connection_.peer_name(), held_.bytes(), held_.moved,
                    std::chrono::milliseconds(MemoryRelief::kPatience).count(), *note);
  }
  connection_.Close(http2::ErrorCode::kEnhanceYourCalm, "the proxy is out of memory for this connection");
}

http2::StreamEvents* DownstreamConnection::OnRequest(http2::Connection& connection, http2::Stream& stream,
                                                     http2::HeaderList fields, bool end_stream) {
  if (client_.use_count() + static_cast<long>(away_.open()) > calls_max_) {
    stream.Reset(http2::ErrorCode::kRefusedStream);
    stream.Release();
    return nullptr;
  }
  if (context_.mover != nullptr && context_.mover->active()) {
    return context_.mover->Hold(stream, client_, away_, calls_max_, std::move(fields), end_stream);
  }
  if (!end_stream && context_.early_hits.May(fields))
    return context_.early_hits.Hold(stream, client_, std::move(fields));
  return Call::Start(context_, stream, client_, std::move(fields), end_stream, context_.worker().now());
}

void DownstreamConnection::OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) {
  context_.metrics.timeouts[static_cast<size_t>(which)]->Add(context_.index(), std::max<size_t>(streams, 1));
  if (which == http2::Timeout::kIdle || which == http2::Timeout::kAge) return;  // in good order
  if (auto note = context_.connection.peer_log.Allow(context_.worker().now())) {
    SLUICE_LOG_WARN("client {}: {}_timeout: {}{}", connection.peer_name(), ToString(which),
                    streams > 0 ? std::to_string(streams) + " calls reset" : "connection ended", *note);
  }
}

void DownstreamConnection::OnClosed(http2::Connection& connection, std::string_view why) {
  SLUICE_LOG_DEBUG("client {}: connection ended: {}", connection.peer_name(), why);
  base::ListNode<DownstreamConnection>::Unlink();
  // It is on the stack now: destroy it from the inbox.
  context_.worker().Post([dead = std::shared_ptr<DownstreamConnection>(this)] {});
}

// What the acceptor's worker uses; outlives the Listener until that worker has let it go.
struct Listener::State : std::enable_shared_from_this<State> {
  State(net::ListenSocket s, std::vector<WorkerContext*> w) : socket(std::move(s)), workers(std::move(w)) {}

  // Beyond a limit connections wait in the kernel's queue. Of handshakes too: closed ones would come again and cost
  // more, and clients that say nothing hold a place for handshake_timeout only.
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
  static void Begin(WorkerContext& context, std::unique_ptr<net::Stream> stream, const ListenerOptions& options,
                    const std::shared_ptr<std::atomic<int64_t>>& open, const ConnectionLimits::PlacePtr& place,
                    const net::TlsPeer* tls) {
    auto* connection = new DownstreamConnection(context, std::move(stream), options, open, tls);
    connection->Hold(place);
    context.downstream.PushBack(*connection);
    connection->Start();
  }
  static void GiveUp(WorkerContext& context, std::atomic<int64_t>& open) {
    open.fetch_sub(1, std::memory_order_relaxed);
    context.connections.fetch_sub(1, std::memory_order_relaxed);
    context.OnDownstreamClosed();
  }

  // False: the peer has as many as it may. Whose a connection is shows only when it has been accepted, and in the queue
  // it would hold up those behind it, so it is closed.
  bool Enter(const std::string& peer, ConnectionLimits::PlacePtr* place) {
    WorkerContext& home = *workers.front();
    if (home.connection_limits == nullptr) return true;
    *place = home.connection_limits->Enter(peer, options->connections_per_peer_max);
    if (*place != nullptr) return true;
    home.metrics.downstream_connections_refused->Add(home.index());
    if (auto note = home.connection.peer_log.Allow(home.worker().now())) {
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
    WorkerContext* target = *std::min_element(workers.begin(), workers.end(), [](const auto* a, const auto* b) {
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
      if (target->closed) return;
      auto stream = net::MakeSocketStream(target->worker(), std::exchange(*owned, -1), peer);
      if (stream == nullptr) {  // no memory left in the kernel for one more
        if (options->tls.enabled) handshakes->fetch_sub(1, std::memory_order_relaxed);
        return GiveUp(*target, *open);
      }
      if (!options->tls.enabled) return Begin(*target, std::move(stream), *options, open, place, nullptr);
      TlsAccept::Start(*target, std::move(stream), *options, handshakes,
                       [target, options, open, place](std::unique_ptr<net::TlsStream> secured) {
                         if (secured == nullptr) return GiveUp(*target, *open);
                         const net::TlsPeer whom = secured->peer();
                         Begin(*target, std::move(secured), *options, open, place, &whom);
                       });
    });
  }

  net::ListenSocket socket;
  std::vector<WorkerContext*> workers;
  std::shared_ptr<const ListenerOptions> options;  // acceptor's worker only
  std::shared_ptr<std::atomic<int64_t>> open = std::make_shared<std::atomic<int64_t>>(0);
  std::shared_ptr<std::atomic<int64_t>> handshakes = std::make_shared<std::atomic<int64_t>>(0);  // TLS, under way
  std::optional<net::Acceptor> acceptor;  // acceptor's worker only
  bool was_full = false;                  // acceptor's worker only
};

Listener::Listener(ListenerOptions options, net::ListenSocket socket, std::vector<WorkerContext*> workers)
    : address_(socket.address()),
      options_(std::make_shared<const ListenerOptions>(std::move(options))),
      state_(std::make_shared<State>(std::move(socket), std::move(workers))) {
  state_->options = options_;
}

Listener::~Listener() = default;

void Listener::Start() {
  WorkerContext* home = state_->workers.front();
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
    if (state->acceptor) state->acceptor->AcceptRest();
    state->acceptor.reset();
    done();
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
