// What may stand in the map `tls` of a listener, besides names of files and of peers.
#pragma once

#include "base/option.h"
#include "net/tls/options.h"

namespace sluice::net {

inline constexpr base::Option<ListenerTlsOptions> kListenerTlsOptions[] = {
    {"require_client_certificate", &ListenerTlsOptions::require_client_certificate},
    {"handshake_timeout", &ListenerTlsOptions::handshake_timeout, 1, 10 * base::kMinute},
    {"handshakes_max", &ListenerTlsOptions::handshakes_max, 1, 1e6},
};

}  // namespace sluice::net
