// TlsAccept: a client's connection while TLS begins on it, between accept and its first byte of HTTP/2.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "base/intrusive_list.h"
#include "net/tls/handshake.h"
#include "proxy/downstream/connection_host.h"
#include "proxy/options.h"

namespace sluice::proxy {

class TlsAccept;
using TlsHandshakes = base::IntrusiveList<TlsAccept, TlsAccept>;

// In its worker's list of handshakes, so that a drain or a stop ends it; owns itself. One worker.
class TlsAccept final : public base::ListNode<TlsAccept> {
 public:
  // Called once: with the stream, or null when there will be no connection (which has been counted and logged where it
  // is the handshake that failed).
  using OnDone = std::function<void(std::unique_ptr<net::TlsStream>)>;

  // `all`: the worker's list. `under_way` is the listener's count of handshakes, already raised for this one. `on_done`
  // may come from inside.
  static void Start(ConnectionHost& host, TlsHandshakes& all, std::unique_ptr<net::Stream> transport,
                    const ListenerOptions& options, std::shared_ptr<std::atomic<int64_t>> under_way, OnDone on_done);
  // Ends without a connection, and destroys itself.
  void Cancel() { End(nullptr); }

 private:
  TlsAccept(CallContext& context, std::shared_ptr<net::CurrentTlsContext> slot, std::string peer,
            std::shared_ptr<std::atomic<int64_t>> under_way, OnDone on_done);
  ~TlsAccept();
  void OnOutcome(net::TlsOutcome outcome);
  void End(std::unique_ptr<net::TlsStream> stream);

  CallContext& context_;
  const std::shared_ptr<net::CurrentTlsContext> slot_;
  const std::string peer_;
  const std::shared_ptr<std::atomic<int64_t>> under_way_;
  OnDone on_done_;
  std::unique_ptr<net::TlsHandshake> handshake_;
};

}  // namespace sluice::proxy
