#include "proxy/downstream/tls_accept.h"

#include "net/tls/current_context.h"

namespace sluice::proxy {

TlsAccept::TlsAccept(CallContext& context, std::shared_ptr<net::CurrentTlsContext> slot, std::string peer,
                     std::shared_ptr<std::atomic<int64_t>> under_way, OnDone on_done)
    : context_(context),
      slot_(std::move(slot)),
      peer_(std::move(peer)),
      under_way_(std::move(under_way)),
      on_done_(std::move(on_done)) {}

TlsAccept::~TlsAccept() { under_way_->fetch_sub(1, std::memory_order_relaxed); }

void TlsAccept::Start(ConnectionHost& host, TlsHandshakes& all, std::unique_ptr<net::Stream> transport,
                      const ListenerOptions& options, std::shared_ptr<std::atomic<int64_t>> under_way, OnDone on_done) {
  auto* self =
      new TlsAccept(host.context, options.tls_slot, transport->PeerName(), std::move(under_way), std::move(on_done));
  all.PushBack(*self);
  auto tls = self->slot_ == nullptr ? nullptr : self->slot_->context();
  if ((host.draining && !host.handshakes_go_on) || tls == nullptr)
    return self->Cancel();  // never plain text where TLS was asked for
  runtime::Worker& worker = host.worker();
  self->handshake_ = std::make_unique<net::TlsHandshake>(
      worker, std::move(transport), std::move(tls), base::DeadlineAfter(worker.now(), options.tls.handshake_timeout),
      [self](net::TlsOutcome outcome) { self->OnOutcome(std::move(outcome)); });
}

void TlsAccept::OnOutcome(net::TlsOutcome outcome) {
  slot_->Ended(context_.index(), context_.worker().now(), outcome.failure, peer_, outcome.detail);
  End(std::move(outcome.stream));
}

void TlsAccept::End(std::unique_ptr<net::TlsStream> stream) {
  auto callback = std::move(on_done_);
  delete this;  // first: the callback may end the drain, and with it the worker's context
  callback(std::move(stream));
}

}  // namespace sluice::proxy
