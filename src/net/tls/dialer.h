// DialTls: a connection as `dial` makes it, and the TLS handshake on it, within one deadline.
#pragma once

#include <memory>

#include "net/dialer.h"
#include "net/tls/current_context.h"

namespace sluice::net {

// As Dial; `slot` of the endpoint's cluster is asked for its context when the connection is there. `on_done` gets a
// TlsStream; kConnectTimeout, or kConnectFailed with what was wrong: "TLS with 10.0.0.1:1: ...". Destroying the Attempt
// cancels it.
std::unique_ptr<Attempt> DialTls(const DialFunction& dial, runtime::Worker& worker, const Address& address,
                                 base::TimePoint deadline, std::shared_ptr<CurrentTlsContext> slot,
                                 Dialer::OnDone on_done);

}  // namespace sluice::net
