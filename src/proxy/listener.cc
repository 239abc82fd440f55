#include "proxy/listener.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "base/hash.h"
#include "base/log.h"
#include "net/socket_stream.h"
#include "proxy/call.h"
#include "runtime/runtime.h"

namespace sluice::proxy {
namespace {

std::string_view WithoutPort(std::string_view peer) {
  return peer.substr(0, peer.starts_with("unix:") ? peer.size() : peer.rfind(':'));
}

}  // namespace

DownstreamConnection::DownstreamConnection(WorkerContext& context, std::unique_ptr<net::Stream> transport,
                                           const ListenerOptions& options, std::shared_ptr<std::atomic<int64_t>> open)
    : context_(context),
      open_(std::move(open)),
      connection_(context.connection, std::move(transport), http2::Role::kServer,
                  http2::ConnectionOptions{options.http2, options.keepalive, {}}, *this),
      peer_hash_(base::Hash64(WithoutPort(connection_.peer_name()))) {
  context_.metrics.downstream_connections->Add(context_.index(), 1);
  context_.metrics.downstream_connections_total->Add(context_.index());
}

DownstreamConnection::~DownstreamConnection() {
  context_.metrics.downstream_connections->Add(context_.index(), -1);
  context_.connections.fetch_sub(1, std::memory_order_relaxed);
  open_->fetch_sub(1, std::memory_order_relaxed);
}

void DownstreamConnection::Start() {
  connection_.Start();
  if (context_.draining) connection_.Drain();
}

void DownstreamConnection::CloseNow() {
  connection_.session().TransportClosed("the proxy is stopping");
}

http2::StreamEvents* DownstreamConnection::OnRequest(http2::Connection& connection, http2::Stream& stream,
                                                     http2::HeaderList fields, bool end_stream) {
  return &Call::Start(context_, stream, connection.peer_name(), peer_hash_, std::move(fields), end_stream);
}

void DownstreamConnection::OnClosed(http2::Connection& connection, std::string_view why) {
  SLUICE_LOG_DEBUG("client {}: connection ended: {}", connection.peer_name(), why);
  base::ListNode<DownstreamConnection>::Unlink();
  // It is on the stack now: destroy it from the inbox.
  context_.worker().Post([dead = std::shared_ptr<DownstreamConnection>(this)] {});
  context_.OnDownstreamClosed();
}

// What the acceptor's worker uses; outlives the Listener until that worker has let it go.
struct Listener::State : std::enable_shared_from_this<State> {
  State(net::ListenSocket s, std::vector<WorkerContext*> w) : socket(std::move(s)), workers(std::move(w)) {}

  void OnAccept(int fd, std::string peer) {
    if (open->load(std::memory_order_relaxed) >= options->connections_max) {
      SLUICE_LOG_WARN("listener {}: connections_max ({}) reached, closing {}", socket_name, options->connections_max, peer);
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
    target->worker().Post([target, owned, peer = std::move(peer), options = options, open = open] {
      if (target->closed) return;
      auto stream = net::MakeSocketStream(target->worker(), std::exchange(*owned, -1), peer);
      auto* connection = new DownstreamConnection(*target, std::move(stream), *options, open);
      target->downstream.PushBack(*connection);
      connection->Start();
    });
  }

  net::ListenSocket socket;
  std::string socket_name;
  std::vector<WorkerContext*> workers;
  std::shared_ptr<const ListenerOptions> options;  // acceptor's worker only
  std::shared_ptr<std::atomic<int64_t>> open = std::make_shared<std::atomic<int64_t>>(0);
  std::optional<net::Acceptor> acceptor;  // acceptor's worker only
};

Listener::Listener(ListenerOptions options, net::ListenSocket socket, std::vector<WorkerContext*> workers)
    : address_(socket.address()),
      options_(std::make_shared<const ListenerOptions>(std::move(options))),
      state_(std::make_shared<State>(std::move(socket), std::move(workers))) {
  state_->options = options_;
  state_->socket_name = address_.ToString();
}

Listener::~Listener() = default;

void Listener::Start() {
  WorkerContext* home = state_->workers.front();
  home->worker().Post([state = state_, home] {
    state->acceptor.emplace(home->worker(), std::move(state->socket),
                            [state = state.get()](int fd, std::string peer) { state->OnAccept(fd, std::move(peer)); });
  });
}

void Listener::Stop() {
  state_->workers.front()->worker().Post([state = state_] { state->acceptor.reset(); });
}

void Listener::Update(const ListenerOptions& options) {
  options_ = std::make_shared<const ListenerOptions>(options);
  state_->workers.front()->worker().Post([state = state_, options = options_] { state->options = options; });
}

}  // namespace sluice::proxy
