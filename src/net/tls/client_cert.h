// The element of x-forwarded-client-cert that says which certificate a client has shown: what Envoy, Istio and the
// services behind them read ("By=...;Hash=...;Subject="...";URI=...;DNS=...").
#pragma once

#include <cstddef>
#include <string>

#include "net/tls/openssl.h"

namespace sluice::net {

// Names that do not fit any more are left out; what is there is whole.
inline constexpr size_t kClientCertBytesMax = 4096;

// `own`: our certificate of this connection, whose first URI is said in By; null: none. Keys in this order: By, Hash
// (SHA-256 of the client's certificate, hex), Subject (RFC 2253), each URI, each DNS name. A value that could be taken
// for the end of its element or key is in quotes. Any thread.
std::string ClientCertElement(x509_st* client, x509_st* own);

}  // namespace sluice::net
