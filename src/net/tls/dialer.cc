#include "net/tls/dialer.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using base::MakeError;

class TlsDialer final : public Attempt {
 public:
  TlsDialer(runtime::Worker& worker, const Address& address, base::TimePoint deadline,
            std::shared_ptr<CurrentTlsContext> slot, Dialer::OnDone on_done)
      : worker_(worker), address_(address), deadline_(deadline), slot_(std::move(slot)), on_done_(std::move(on_done)) {}

  void Start(const DialFunction& dial) {
    attempt_ = dial(worker_, address_, deadline_,
                    [this](base::Result<std::unique_ptr<Stream>> connected) { OnConnected(std::move(connected)); });
  }

 private:
  void OnConnected(base::Result<std::unique_ptr<Stream>> connected) {
    if (!connected) return Done(std::move(connected));
    std::shared_ptr<const TlsContext> context = slot_ == nullptr ? nullptr : slot_->context();
    // Never without TLS where it was asked for.
    if (context == nullptr)
      return Done(MakeError(ErrorKind::kConnectFailed, "TLS with " + address_.ToString() + ": not set up"));
    attempt_ = std::make_unique<TlsHandshake>(worker_, std::move(*connected), std::move(context), address_, deadline_,
                                              [this](TlsOutcome outcome) { OnSecured(std::move(outcome)); });
  }

  void OnSecured(TlsOutcome outcome) {
    slot_->Ended(worker_.index(), worker_.now(), outcome.failure, address_.ToString(), outcome.detail);
    if (outcome.stream != nullptr) return Done(std::unique_ptr<Stream>(std::move(outcome.stream)));
    const bool late = outcome.failure == TlsFailure::kTimeout;
    Done(MakeError(late ? ErrorKind::kConnectTimeout : ErrorKind::kConnectFailed,
                   "TLS with " + address_.ToString() + ": " + outcome.detail));
  }

  void Done(base::Result<std::unique_ptr<Stream>> result) {
    auto callback = std::move(on_done_);  // it may destroy this
    callback(std::move(result));
  }

  runtime::Worker& worker_;
  const Address address_;
  const base::TimePoint deadline_;
  const std::shared_ptr<CurrentTlsContext> slot_;
  Dialer::OnDone on_done_;
  std::unique_ptr<Attempt> attempt_;  // the connection's, then the handshake's
};

}  // namespace

std::unique_ptr<Attempt> DialTls(const DialFunction& dial, runtime::Worker& worker, const Address& address,
                                 base::TimePoint deadline, std::shared_ptr<CurrentTlsContext> slot,
                                 Dialer::OnDone on_done) {
  auto out = std::make_unique<TlsDialer>(worker, address, deadline, std::move(slot), std::move(on_done));
  out->Start(dial);
  return out;
}

}  // namespace sluice::net
