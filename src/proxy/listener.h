// Listener: accepts connections on one address and hands each to the worker with the fewest.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "net/acceptor.h"
#include "proxy/client.h"
#include "proxy/moved_call.h"
#include "proxy/options.h"
#include "proxy/worker_context.h"

namespace sluice::proxy {

// One client's connection on its worker. Owned by the worker's list; destroys itself when it has closed.
class DownstreamConnection final : public base::ListNode<DownstreamConnection>, private http2::ConnectionEvents {
 public:
  // `open` is the listener's count of connections, already raised for this one. `tls`: with whom, where it is TLS; else
  // null.
  DownstreamConnection(WorkerContext& context, std::unique_ptr<net::Stream> transport, const ListenerOptions& options,
                       std::shared_ptr<std::atomic<int64_t>> open, const net::TlsPeer* tls = nullptr);
  ~DownstreamConnection();
  void Start();
  // Held until the connection has closed.
  void Hold(ConnectionLimits::PlacePtr place) { place_ = std::move(place); }
  void Drain() { connection_.Drain(); }
  // GOAWAY as far as the socket takes it, and the end. Calls have been answered, or are reset.
  void CloseNow();
  const std::string& peer_name() const { return connection_.peer_name(); }
  // For MemoryRelief: what is held for this client since the last look; what that found; and the end of it.
  const HeldForClient& LookAtHeld();
  const HeldForClient& held() const { return held_; }
  void CloseForMemory();

 private:
  http2::StreamEvents* OnRequest(http2::Connection& connection, http2::Stream& stream, http2::HeaderList fields,
                                 bool end_stream) override;
  void OnCapacity(http2::Connection&) override {}
  void OnGoaway(http2::Connection&) override {}
  void OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) override;
  void OnClosed(http2::Connection& connection, std::string_view why) override;

  WorkerContext& context_;
  std::shared_ptr<std::atomic<int64_t>> open_;
  ConnectionLimits::PlacePtr place_;
  HeldForClient held_;              // found by the last look
  http2::Session::Held seen_held_;  // at the last look
  uint64_t seen_moved_ = 0;         // DATA both ways until then
  AwayClients away_;                // outlives the streams
  http2::Connection connection_;
  ClientPtr client_;
  const long calls_max_;
};

// Thread safety: made and stopped by the server's control thread; accepts on its worker.
class Listener {
 public:
  Listener(ListenerOptions options, net::ListenSocket socket, std::vector<WorkerContext*> workers);
  // Stop has been called, or the workers never ran.
  ~Listener();

  // Begins to accept, on the worker chosen for this listener.
  void Start();
  // Stops accepting; connections go on. Returns at once; the socket is closed on its worker, which then calls `done`.
  void Stop(std::function<void()> done = nullptr);
  // As Stop, and those that wait in the kernel's queue are accepted first, as far as the limits let them in.
  void HandOver(std::function<void()> done);
  // net::Acceptor::SetShared, on its worker, which then calls `done`.
  void SetShared(bool shared, std::function<void()> done);
  // New options for connections still to come, and for the socket; the address stays. Returns at once; they hold when
  // its worker has called `done`.
  void Update(const ListenerOptions& options, std::function<void()> done);

  const net::Address& address() const { return address_; }
  const ListenerOptions& options() const { return *options_; }

 private:
  struct State;
  net::Address address_;
  std::shared_ptr<const ListenerOptions> options_;
  std::shared_ptr<State> state_;
};

}  // namespace sluice::proxy
