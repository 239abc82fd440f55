// DownstreamConnection: one client's connection on its worker: where its requests go, and what is held for the client.
//
// Owned by the worker's list of connections; destroys itself when it has closed. Thread safety: its worker's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/intrusive_list.h"
#include "http2/connection/connection.h"
#include "net/tls/stream.h"
#include "proxy/client.h"
#include "proxy/downstream/connection_host.h"
#include "proxy/downstream/connection_limits.h"
#include "proxy/grpc_web/cors.h"
#include "proxy/handoff/remote_call.h"
#include "proxy/options.h"

namespace sluice::proxy {

// What was held for a client at the last look and still is, and how much moved meanwhile.
struct HeldForClient {
  size_t waiting = 0;  // data that has yet to go somewhere
  size_t resting = 0;  // calls and their metadata
  size_t moved = 0;
  size_t leaving = 0;  // of a connection that has ended: what is left of its output. Then all else is 0

  size_t bytes() const { return waiting + resting; }
  size_t still() const { return bytes() > moved ? bytes() - moved : 0; }
};

class DownstreamConnection final : public base::ListNode<DownstreamConnection>, private http2::ConnectionEvents {
 public:
  // `open` is the listener's count of connections, already raised for this one. `tls`: the peer, where it is TLS;
  // else null.
  DownstreamConnection(ConnectionHost& host, std::unique_ptr<net::Stream> transport, const ListenerOptions& options,
                       std::shared_ptr<std::atomic<int64_t>> open, const net::TlsPeer* tls = nullptr);
  ~DownstreamConnection();
  void Start();
  // Held until the connection has closed.
  void Hold(ConnectionLimits::PlacePtr place) { place_ = std::move(place); }
  void Drain() { connection_.Drain(); }
  // Its client may begin a call: it was not told to go, or has not answered that yet (RFC 9113 6.8).
  bool may_begin() const {
    const http2::Session& session = connection_.session();
    return !connection_.ending() && (!session.closing() || session.goaway_announced());
  }
  // GOAWAY as far as the socket takes it, and the end. Calls have been answered, or are reset.
  void CloseNow();
  const std::string& peer_name() const { return connection_.peer_name(); }
  // For OverloadManager: what is held for this client since the last look; what that found; and the end of it.
  const HeldForClient& LookAtHeld();
  const HeldForClient& held() const { return held_; }
  // `watched`: for how long held() was looked at.
  void CloseForMemory(std::chrono::milliseconds watched);

 private:
  http2::StreamEvents* OnRequest(http2::Connection& connection, http2::Stream& stream, http2::HeaderList&& fields,
                                 bool end_stream) override;
  // To a call, or buffered first.
  http2::StreamEvents* Take(http2::RequestStream& stream, http2::HeaderList&& fields, bool end_stream);
  http2::StreamEvents* TakeBuffered(http2::RequestStream& stream, http2::HeaderList&& fields, bool end_stream);
  // Of a listener with grpc_web. True: the request was one of gRPC-Web, or a browser's question, and `*events` is what
  // OnRequest returns.
  bool TakeWeb(http2::Stream& stream, http2::HeaderList& fields, bool end_stream, http2::StreamEvents** events);
  http2::HeaderList AnswerRefused(const base::Error& error, const http2::HeaderList& fields) override;
  void OnHeaderListMax(http2::Connection&, uint32_t bytes) override;
  void OnCapacity(http2::Connection&) override {}
  void OnGoaway(http2::Connection&) override {}
  void OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) override;
  void OnClosed(http2::Connection& connection, std::string_view why) override;

  ConnectionHost& host_;
  std::shared_ptr<std::atomic<int64_t>> open_;
  ConnectionLimits::PlacePtr place_;
  HeldForClient held_;              // found by the last look
  http2::Session::Held seen_held_;  // at the last look
  uint64_t seen_moved_ = 0;         // DATA both ways until then
  AwayClients away_;                // outlives the streams
  http2::Connection connection_;
  Client& own_client_;  // *client_, which calls only read
  ClientPtr client_;
  const long calls_max_;
  const std::shared_ptr<const grpc_web::Cors> web_;  // null: gRPC-Web is off
};

using ClientConnections = base::IntrusiveList<DownstreamConnection, DownstreamConnection>;

}  // namespace sluice::proxy
