// OwnCertificate: one of our own certificates with its key and the certificates between it and its authority, checked;
// and which of several is for the name that a client asks for (SNI).
#pragma once

#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/tls/openssl.h"
#include "net/tls/pem.h"

namespace sluice::net {

struct OwnCertificate {
  OpenSslPtr<x509_st> certificate;
  OpenSslPtr<evp_pkey_st> key;
  std::vector<OpenSslPtr<x509_st>> chain;  // in the order of the file
  CertificateInfo info;
  bool slow_key = false;  // RSA of more than 2048 bits (docs/tls.md, "What a handshake costs")
};

// kInvalidArgument names the file and the reason: no certificate, no key, another one's key.
base::Result<OwnCertificate> ReadOwnCertificate(const TlsFile& certificate, const TlsFile& key);

// The first that has `host` among its DNS names, without regard to case; else the first with a wildcard that covers it
// (RFC 9525 6.3: a whole label); else null. Thread safety: all.
const OwnCertificate* ChooseCertificate(const std::vector<OwnCertificate>& all, std::string_view host);

// Makes it the certificate of all connections of `context`, or of one in place of that of its context. False: OpenSSL
// has said why in its queue.
bool UseCertificate(const OwnCertificate& own, ssl_ctx_st* context);
bool UseCertificate(const OwnCertificate& own, ssl_st* connection);

}  // namespace sluice::net
