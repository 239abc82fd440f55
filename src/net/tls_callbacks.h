// What OpenSSL asks us during a handshake: is this name allowed, which protocol, which key is this ticket under, who
// keeps this session. Private to this folder.
#pragma once

#include "net/tls_openssl.h"

namespace sluice::net {

// Of the server's side: ALPN, which must be there and have h2; session tickets under TlsContext::tickets().
void InstallServerCallbacks(ssl_ctx_st* native);
// Of the client's: asks for h2; sessions go to TlsContext::sessions().
void InstallClientCallbacks(ssl_ctx_st* native);
// Verify the peer: its chain, and of its own certificate the name.
void InstallVerification(ssl_ctx_st* native, bool required);

}  // namespace sluice::net
