// What OpenSSL asks us during a handshake: is this name allowed, which protocol, which key is this ticket under, where
// is this session kept. Private to this folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/tls/openssl.h"
#include "net/tls/own_certificate.h"
#include "net/tls/sessions.h"
#include "net/tls/tickets.h"

namespace sluice::net {

// What the callbacks of one connection use and what they leave for it; SSL_get_app_data points here. It outlives the
// connection, and the connection's TlsContext owns the first four.
struct TlsNotes {
  const std::vector<std::string>* allowed_names = nullptr;
  TlsSessions* sessions = nullptr;
  const TlsTicketKeys* tickets = nullptr;  // null: none (clients)
  const std::vector<OwnCertificate>* own = nullptr;
  std::string session_key;  // client: the peer that sessions are with; empty: none are kept
  std::string refused;      // the peer's name, where its certificate is good and its name is not allowed
  bool no_alpn = false;     // the peer has no h2
  bool settled = false;     // the handshake is over
  bool in_message = false;  // OpenSSL is at one of those that are counted
  uint32_t useless = 0;     // messages of TLS's own since it was: KeyUpdates and answers to them, tickets, warnings
};

// Counts TlsNotes::useless, on both sides.
void InstallCounting(ssl_ctx_st* native);
// Of the server's side: ALPN, which must be there and have h2; session tickets under TlsContext::tickets(); with
// `several` certificates of ours the one for the name that the client asks for.
void InstallServerCallbacks(ssl_ctx_st* native, bool several);
// Of the client's: asks for h2; sessions go to TlsContext::sessions().
void InstallClientCallbacks(ssl_ctx_st* native);
// Verify the peer: its chain, and of its own certificate the name.
void InstallVerification(ssl_ctx_st* native, bool required);

}  // namespace sluice::net
