#include "proxy/downstream/connection.h"

#include <algorithm>
#include <climits>

#include "base/hash.h"
#include "base/log.h"
#include "net/peer_address.h"
#include "proxy/call/call.h"
#include "proxy/call/hops.h"
#include "proxy/grpc_status.h"
#include "proxy/grpc_web/media_type.h"
#include "proxy/grpc_web/web_headers.h"
#include "proxy/grpc_web/web_stream.h"

namespace sluice::proxy {
namespace {

// Bound of a connection's calls for each stream it may have open: calls include those that were reset and whose tasks
// have yet to run. A client that resets as fast as it asks (CVE-2023-44487) stays within concurrent_streams_max, and
// only this stops it. Requests that CacheFastPath buffers until the turn's I/O ends are not counted before they are
// reset: they are open streams, at most concurrent_streams_max.
constexpr uint32_t kCallsPerStream = 2;

// Whether the peer is a proxy whose word on its clients is taken.
void Trust(const TrustedProxies& proxies, Client& client) {
  if (proxies.hops == 0) return;
  const bool by_address = std::any_of(proxies.addresses.begin(), proxies.addresses.end(),
                                      [&](const net::AddressRange& range) { return range.Contains(client.address()); });
  const bool by_name = client.certificate != nullptr && net::NameAllowed(client.certificate->names, proxies.names);
  if (!by_address && !by_name) return;
  client.trusted_hops = proxies.hops;
  if (!by_address) client.trusted_until = client.certificate->ends;
}

std::unique_ptr<Client> MakeClient(std::string peer_name, const ListenerOptions& listener, const net::TlsPeer* tls) {
  static std::atomic<uint64_t> flows{0};  // one a connection: not on the path of a call
  Client client{std::move(peer_name), 0, flows.fetch_add(1, std::memory_order_relaxed)};
  client.listener = ListenerId(listener.name);
  client.paths = listener.paths;
  client.tls = tls != nullptr;
  if (tls != nullptr) client.identity = tls->names.Best();
  if (tls != nullptr && tls->has_certificate) {
    client.certificate = std::make_shared<const ClientCertificate>(
        ClientCertificate{tls->names, tls->certificate_ends, tls->client_cert});
  }
  client.peer_hash = base::Hash64(client.address());
  client.limit_key = net::PeerAddressKey(client.peer_name).value_or(client.peer_hash);
  Trust(listener.trusted_proxies, client);
  return std::make_unique<Client>(std::move(client));
}

}  // namespace

DownstreamConnection::DownstreamConnection(ConnectionHost& host, std::unique_ptr<net::Stream> transport,
                                           const ListenerOptions& options, std::shared_ptr<std::atomic<int64_t>> open,
                                           const net::TlsPeer* tls)
    : host_(host),
      open_(std::move(open)),
      connection_(host.context.connection, std::move(transport), http2::Role::kServer,
                  http2::ConnectionOptions{options.http2, options.keepalive, options.life}, *this),
      own_client_(*MakeClient(connection_.peer_name(), options, tls).release()),
      client_(&own_client_),
      calls_max_(static_cast<long>(
          std::min<uint64_t>(uint64_t{kCallsPerStream} * options.http2.concurrent_streams_max, LONG_MAX))),
      web_(options.grpc_web.enabled ? std::make_shared<const grpc_web::Cors>(options.grpc_web.cors) : nullptr) {
  host_.context.metrics.downstream_connections->Add(host_.context.index(), 1);
  host_.context.metrics.downstream_connections_total->Add(host_.context.index());
}

DownstreamConnection::~DownstreamConnection() {
  host_.context.metrics.downstream_connections->Add(host_.context.index(), -1);
  host_.connections.fetch_sub(1, std::memory_order_relaxed);
  open_->fetch_sub(1, std::memory_order_relaxed);
  host_.OnDownstreamClosed();
}

void DownstreamConnection::Start() {
  connection_.Start();
  if (host_.draining) connection_.Drain();
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

void DownstreamConnection::CloseForMemory(std::chrono::milliseconds watched) {
  if (connection_.closed() || connection_.ending()) return;
  host_.context.metrics.memory_connections_closed->Add(host_.context.index());
  if (auto note = host_.context.connection.peer_log.Allow(host_.context.worker().now())) {
    SLUICE_LOG_WARN("client {}: closed to free memory: {} bytes buffered, {} drained in {} ms{}",
                    connection_.peer_name(), held_.bytes(), held_.moved, watched.count(), *note);
  }
  connection_.Close(http2::ErrorCode::kEnhanceYourCalm, "the proxy is out of memory for this connection");
}

http2::StreamEvents* DownstreamConnection::OnRequest(http2::Connection& connection, http2::Stream& stream,
                                                     http2::HeaderList&& fields, bool end_stream) {
  if (client_.use_count() + static_cast<long>(away_.open()) > calls_max_) {
    stream.Reset(http2::ErrorCode::kRefusedStream);
    stream.Release();
    return nullptr;
  }
  if (connection.session().peer_is_proxy() && HopsOf(fields) == 0) [[unlikely]]
    SetHops(fields, 1);
  http2::StreamEvents* events = nullptr;
  if (web_ != nullptr && TakeWeb(stream, fields, end_stream, &events)) [[unlikely]]
    return events;
  return Take(stream, std::move(fields), end_stream);
}

http2::StreamEvents* DownstreamConnection::Take(http2::RequestStream& stream, http2::HeaderList&& fields,
                                                bool end_stream) {
  const bool moves = host_.handoff != nullptr && host_.handoff->active();
  if (moves || (!end_stream && host_.cache_fast_path.on())) return TakeBuffered(stream, std::move(fields), end_stream);
  return Call::Start(host_.context, stream, client_, {std::move(fields), client_->paths}, end_stream,
                     host_.context.worker().now());
}

// Where another worker or the cache may answer.
http2::StreamEvents* DownstreamConnection::TakeBuffered(http2::RequestStream& stream, http2::HeaderList&& fields,
                                                        bool end_stream) {
  CanonicalRequest request = Canonicalize(std::move(fields), client_->paths);
  // One with a fault is refused here: neither is asked.
  if (request.fault() == CanonicalRequest::Fault::kNone) [[likely]] {
    if (host_.handoff != nullptr && host_.handoff->active()) {
      return host_.handoff->Buffer(stream, client_, away_, calls_max_, std::move(request), end_stream);
    }
    const KnownPlan known = end_stream ? KnownPlan() : host_.cache_fast_path.May(*client_, request);
    if (known.plan != nullptr) return host_.cache_fast_path.Buffer(stream, client_, std::move(request), known);
  }
  return Call::Start(host_.context, stream, client_, std::move(request), end_stream, host_.context.worker().now());
}

void DownstreamConnection::OnHeaderListMax(http2::Connection&, uint32_t bytes) { own_client_.header_list_max = bytes; }

http2::HeaderList DownstreamConnection::AnswerRefused(const base::Error& error, const http2::HeaderList& fields) {
  const http2::Field* content = web_ != nullptr ? fields.Find(http2::Token::kContentType) : nullptr;
  const auto type = content != nullptr ? grpc_web::ParseMediaType(content->value()) : std::nullopt;
  return type ? grpc_web::WebAnswer(error, fields, *type, *web_) : MakeAnswer(error, fields);
}

// Not inlined: a listener without gRPC-Web pays a load and a branch.
[[gnu::noinline]] bool DownstreamConnection::TakeWeb(http2::Stream& stream, http2::HeaderList& fields, bool end_stream,
                                                     http2::StreamEvents** events) {
  ProxyMetrics& metrics = host_.context.metrics;
  if (web_->enabled() && grpc_web::Cors::IsPreflight(fields)) {
    const bool allowed = web_->Allows(fields.Find("origin")->value());
    metrics.cors_preflights[allowed ? 1 : 0]->Add(host_.context.index());
    stream.SendHeaders(web_->AnswerPreflight(fields), true);
    stream.Release();
    return true;
  }
  const http2::Field* method = fields.Find(http2::Token::kMethod);
  const http2::Field* content = fields.Find(http2::Token::kContentType);
  if (content == nullptr || method == nullptr || method->value() != "POST") return false;
  const auto type = grpc_web::ParseMediaType(content->value());
  if (!type) return false;
  metrics.grpc_web_requests[type->text ? 1 : 0]->Add(host_.context.index());
  auto* web = new grpc_web::WebStream(stream, web_, *type, fields);
  // Null: it was released, and is gone.
  http2::StreamEvents* above = Take(*web, std::move(fields), end_stream);
  if (above == nullptr) return true;
  web->SetEvents(*above);
  *events = web;
  return true;
}

void DownstreamConnection::OnTimeout(http2::Connection& connection, http2::Timeout which, size_t streams) {
  host_.context.metrics.timeouts[static_cast<size_t>(which)]->Add(host_.context.index(), std::max<size_t>(streams, 1));
  if (which == http2::Timeout::kIdle || which == http2::Timeout::kAge) return;  // in good order
  if (auto note = host_.context.connection.peer_log.Allow(host_.context.worker().now())) {
    SLUICE_LOG_WARN("client {}: {}_timeout: {}{}", connection.peer_name(), ToString(which),
                    streams > 0 ? std::to_string(streams) + " calls reset" : "connection ended", *note);
  }
}

void DownstreamConnection::OnClosed(http2::Connection& connection, std::string_view why) {
  SLUICE_LOG_DEBUG("client {}: connection ended: {}", connection.peer_name(), why);
  base::ListNode<DownstreamConnection>::Unlink();
  // It is on the stack now: destroy it from the inbox.
  host_.context.worker().Post([dead = std::shared_ptr<DownstreamConnection>(this)] {});
}

}  // namespace sluice::proxy
