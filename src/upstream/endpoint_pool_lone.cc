// A pool's part in calls that have a connection each.
#include <utility>

#include "net/tls/dialer.h"
#include "upstream/endpoint_pool.h"

namespace sluice::upstream {

bool EndpointPool::WaitAlone(Waiter& waiter) {
  if (closing_ || draining_) return false;
  if (lone_ == nullptr) lone_ = std::make_unique<LoneCalls>(context_, static_cast<LoneCalls::Owner&>(*this));
  return lone_->Add(waiter, {options_->http2, options_->keepalive, options_->life},
                    base::DeadlineAfter(context_.worker.now(), options_->connect_timeout));
}

std::unique_ptr<net::Attempt> EndpointPool::DialLone(base::TimePoint deadline, net::Dialer::OnDone done) {
  return options_->tls.enabled ? net::DialTls(context_.dial, context_.worker, endpoint_->address(), deadline,
                                              options_->tls_slot, std::move(done))
                               : context_.dial(context_.worker, endpoint_->address(), deadline, std::move(done));
}

void EndpointPool::OnLoneConnected(http2::Connection& connection) {
  Report(Outcome::kConnected);
  endpoint_->metrics().connections->Add(context_.worker.index(), 1);
  connection.session().SetScheme(options_->tls.enabled);
}

void EndpointPool::OnLoneClosed(const http2::Session& session) {
  const uint32_t w = context_.worker.index();
  endpoint_->metrics().connections->Add(w, -1);
  if (session.lost_streams()) endpoint_->metrics().lost->Add(w);
}

}  // namespace sluice::upstream
