// TlsContext: one side's certificate, key, trust and rules, checked and ready for handshakes. Immutable; a reload makes
// another one, and connections keep theirs.
//
// What is fixed (docs/tls.md says why): TLS 1.2 and 1.3; of 1.2 only ECDHE with AEAD ciphers (RFC 9113 9.2.2); security
// level 2 of OpenSSL; ALPN must be h2, else no_application_protocol (RFC 7301 3.2, RFC 9113 3.2); no renegotiation, no
// compression, no early data.
//
// Thread safety: all of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "net/tls/openssl.h"
#include "net/tls/options.h"
#include "net/tls/own_certificate.h"
#include "net/tls/pem.h"
#include "net/tls/sessions.h"
#include "net/tls/tickets.h"

namespace sluice::net {

// For so long a session may be resumed. A peer's certificate is verified when the session begins, and looked at again
// for its end of validity when it is resumed.
inline constexpr std::chrono::hours kTlsSessionLifetime{2};

// The files of TlsOptions, read. Without a name: not given.
struct TlsContents {
  TlsFile certificate, key, ca;
  std::vector<std::pair<TlsFile, TlsFile>> more;  // certificates and keys, as TlsOptions::more
};

class TlsContext {
 public:
  enum class Role : uint8_t { kServer, kClient };

  // kInvalidArgument names the file and the reason. A certificate whose time is over, or has not come, is no error: see
  // certificate().
  static base::Result<std::shared_ptr<const TlsContext>> ForListener(const ListenerTlsOptions& options,
                                                                     const TlsContents& contents,
                                                                     std::shared_ptr<TlsTicketKeys> tickets);
  static base::Result<std::shared_ptr<const TlsContext>> ForCluster(const ClusterTlsOptions& options,
                                                                    const TlsContents& contents);

  Role role() const { return role_; }
  // Our own certificates, the first of them for peers that ask for none of their names. Empty: none.
  const std::vector<OwnCertificate>& own() const { return own_; }
  // The authorities that we trust; for views.
  const std::vector<CertificateInfo>& trusted() const { return trusted_; }
  const std::vector<std::string>& allowed_names() const { return allowed_names_; }
  // Of a cluster's: what is asked for in SNI whatever the endpoint; may be empty.
  const std::string& server_name() const { return server_name_; }
  // One of our private keys takes long to sign with.
  bool slow_key() const { return slow_key_; }

  // For the other files of this folder.
  ssl_ctx_st* native() const { return native_.get(); }
  TlsSessions& sessions() const { return sessions_; }
  const TlsTicketKeys* tickets() const { return tickets_.get(); }

 private:
  TlsContext(Role role, const TlsOptions& options);
  base::Status Fill(const TlsOptions& options, const TlsContents& contents);
  base::Status AddOwn(const TlsFile& certificate, const TlsFile& key);
  base::Status UseTrust(const TlsOptions& options, const TlsContents& contents);
  void UseTickets(std::shared_ptr<TlsTicketKeys> tickets, const TlsContents& contents, bool required);

  const Role role_;
  const std::vector<std::string> allowed_names_;
  std::string server_name_;
  std::vector<OwnCertificate> own_;
  std::vector<CertificateInfo> trusted_;
  bool slow_key_ = false;
  std::shared_ptr<TlsTicketKeys> tickets_;
  mutable TlsSessions sessions_;
  OpenSslPtr<ssl_ctx_st> native_;  // goes first: its sessions and callbacks know the rest
};

}  // namespace sluice::net
