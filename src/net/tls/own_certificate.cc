#include "net/tls/own_certificate.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/ascii.h"

namespace sluice::net {
namespace {

// Up to here a signature (0.3 ms) costs less than the way to a helper and back may.
constexpr int kQuickRsaBits = 2048;

struct FreeStack {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using Chain = std::unique_ptr<STACK_OF(X509), FreeStack>;

// The certificates stay ours: OpenSSL counts those that it keeps.
Chain StackOf(const OwnCertificate& own) {
  Chain out(sk_X509_new_null());
  for (const auto& certificate : own.chain) sk_X509_push(out.get(), certificate.get());
  return out;
}

bool NamesExactly(const OwnCertificate& own, std::string_view host) {
  return std::any_of(own.info.names.dns.begin(), own.info.names.dns.end(),
                     [&](const std::string& name) { return base::EqualsIgnoreCase(name, host); });
}

bool Covers(const OwnCertificate& own, std::string_view host) {
  constexpr unsigned kRules = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT;
  return X509_check_host(own.certificate.get(), host.data(), host.size(), kRules, nullptr) == 1;
}

}  // namespace

base::Result<OwnCertificate> ReadOwnCertificate(const TlsFile& certificate, const TlsFile& key) {
  auto chain = ParseCertificates(certificate);
  if (!chain) return chain.error();
  auto parsed = ParseKey(key);
  if (!parsed) return parsed.error();
  OwnCertificate own;
  own.certificate = std::move(chain->front());
  own.key = std::move(*parsed);
  for (size_t i = 1; i < chain->size(); ++i) own.chain.push_back(std::move((*chain)[i]));
  if (X509_check_private_key(own.certificate.get(), own.key.get()) != 1) {
    ERR_clear_error();
    return BadFile(key, "is not the key of the first certificate in " + certificate.name);
  }
  own.info = Describe(own.certificate.get());
  const bool rsa = EVP_PKEY_is_a(own.key.get(), "RSA") == 1 || EVP_PKEY_is_a(own.key.get(), "RSA-PSS") == 1;
  own.slow_key = rsa && EVP_PKEY_get_bits(own.key.get()) > kQuickRsaBits;
  return own;
}

const OwnCertificate* ChooseCertificate(const std::vector<OwnCertificate>& all, std::string_view host) {
  if (host.empty()) return nullptr;
  for (const auto fits : {&NamesExactly, &Covers}) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& own) { return fits(own, host); });
    if (found != all.end()) return &*found;
  }
  return nullptr;
}

bool UseCertificate(const OwnCertificate& own, ssl_ctx_st* context) {
  return SSL_CTX_use_cert_and_key(context, own.certificate.get(), own.key.get(), StackOf(own).get(), 1) == 1;
}

bool UseCertificate(const OwnCertificate& own, ssl_st* connection) {
  SSL_certs_clear(connection);  // also a certificate with a key of another kind, which the client might prefer
  return SSL_use_cert_and_key(connection, own.certificate.get(), own.key.get(), StackOf(own).get(), 1) == 1;
}

}  // namespace sluice::net
