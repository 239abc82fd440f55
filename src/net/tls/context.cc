#include "net/tls/context.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/ascii.h"
#include "net/tls/callbacks.h"

namespace sluice::net {
namespace {

using base::ErrorKind;
using base::MakeError;

// RFC 9113 9.2.2 and appendix A: forward secrecy and an AEAD. Those of TLS 1.3 are all of that kind.
constexpr char kCiphersOf12[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
// Below it: RSA and DH of less than 2048 bits, SHA-1 signatures.
constexpr int kSecurityLevel = 2;
// One read of the socket may bring several records, RFC 8446 5.1: of 16 KiB. Given back when it is empty.
constexpr size_t kReadBufferBytes = 64 * 1024;
// Names of authorities that clients are told (RFC 8446 4.2.4), all or none: a client sends no certificate of an
// authority that is missing from the list, and any that it has where there is no list. The list has to fit 64 KiB of a
// message.
constexpr size_t kToldAuthoritiesMax = 100;
constexpr size_t kToldAuthorityBytesMax = 16 * 1024;

int Native(TlsVersion version) { return version == TlsVersion::k12 ? TLS1_2_VERSION : TLS1_3_VERSION; }

}  // namespace

TlsContext::TlsContext(Role role, const TlsOptions& options)
    : role_(role),
      allowed_names_(options.allowed_names),
      native_(SSL_CTX_new(role == Role::kServer ? TLS_server_method() : TLS_client_method())) {}

base::Status TlsContext::Fill(const TlsOptions& options, const TlsContents& contents) {
  ERR_clear_error();
  if (native_ == nullptr) return MakeError(ErrorKind::kInternal, "TLS: " + TakeOpenSslError("out of memory"));
  for (const std::string& name : allowed_names_) {
    if (auto status = CheckAllowedName(name); !status) return status;
  }
  if (options.version_min > options.version_max) {
    return MakeError(ErrorKind::kInvalidArgument, "TLS: version_min is above version_max");
  }
  SSL_CTX* ctx = native_.get();
  SSL_CTX_set_security_level(ctx, kSecurityLevel);
  SSL_CTX_set_min_proto_version(ctx, Native(options.version_min));
  SSL_CTX_set_max_proto_version(ctx, Native(options.version_max));
  SSL_CTX_set_options(ctx, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Chains are sent as the file has them: NO_AUTO_CHAIN.
  SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS |
                            SSL_MODE_NO_AUTO_CHAIN);
  InstallCounting(ctx);
  SSL_CTX_set_read_ahead(ctx, 1);
  SSL_CTX_set_default_read_buffer_len(ctx, kReadBufferBytes);
  SSL_CTX_set_timeout(ctx, static_cast<long>(std::chrono::seconds(kTlsSessionLifetime).count()));
  if (SSL_CTX_set_cipher_list(ctx, kCiphersOf12) != 1) {
    return MakeError(ErrorKind::kInternal, "TLS: " + TakeOpenSslError("no ciphers"));
  }
  if (!contents.certificate.name.empty()) {
    if (auto status = AddOwn(contents.certificate, contents.key); !status) return status;
  }
  for (const auto& [certificate, key] : contents.more) {
    if (auto status = AddOwn(certificate, key); !status) return status;
  }
  return UseTrust(options, contents);
}

base::Status TlsContext::AddOwn(const TlsFile& certificate, const TlsFile& key) {
  auto own = ReadOwnCertificate(certificate, key);
  if (!own) return own.error();
  // The first is that of the context. Whether OpenSSL can use the others shows now as well, not in a handshake.
  OpenSslPtr<ssl_st> trial(own_.empty() ? nullptr : SSL_new(native_.get()));
  const bool used =
      own_.empty() ? UseCertificate(*own, native_.get()) : trial != nullptr && UseCertificate(*own, trial.get());
  if (!used) return BadFile(certificate, "cannot be used: " + TakeOpenSslError("unknown reason"));
  slow_key_ = slow_key_ || own->slow_key;
  own_.push_back(std::move(*own));
  return base::Ok();
}

base::Status TlsContext::UseTrust(const TlsOptions& options, const TlsContents& contents) {
  SSL_CTX* ctx = native_.get();
  if (options.ca == kSystemCa) {
    if (SSL_CTX_set_default_verify_paths(ctx) == 1) return base::Ok();
    return MakeError(ErrorKind::kInvalidArgument, "the system's certificates: " + TakeOpenSslError("cannot be read"));
  }
  if (contents.ca.name.empty()) return base::Ok();
  auto bundle = ParseCertificates(contents.ca);
  if (!bundle) return bundle.error();
  X509_STORE* store = SSL_CTX_get_cert_store(ctx);
  // Each certificate of the bundle is trusted as it stands, also that of an authority below another one.
  X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
  for (const auto& certificate : *bundle) {
    if (X509_STORE_add_cert(store, certificate.get()) != 1)
      return BadFile(contents.ca, TakeOpenSslError("cannot be used"));
    trusted_.push_back(Describe(certificate.get()));
  }
  if (role_ == Role::kClient || bundle->size() > kToldAuthoritiesMax) return base::Ok();
  size_t bytes = 0;
  for (const auto& certificate : *bundle) {
    bytes += static_cast<size_t>(std::max(0, i2d_X509_NAME(X509_get_subject_name(certificate.get()), nullptr)));
  }
  for (const auto& certificate : *bundle) {
    if (bytes <= kToldAuthorityBytesMax) SSL_CTX_add_client_CA(ctx, certificate.get());
  }
  return base::Ok();
}

// A ticket says that its holder was verified, so it is good only where the same would be verified now: the context of a
// session names the trust that it was made under. (Without a name OpenSSL refuses to resume verified sessions at all.)
void TlsContext::UseTickets(std::shared_ptr<TlsTicketKeys> tickets, const TlsContents& contents, bool required) {
  tickets_ = std::move(tickets);
  std::string trust = required ? "required\n" : "asked\n";
  for (const std::string& name : allowed_names_) trust.append(name).push_back('\n');
  trust.append(contents.ca.text);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned size = 0;
  EVP_Digest(trust.data(), trust.size(), digest.data(), &size, EVP_sha256(), nullptr);
  SSL_CTX_set_session_id_context(native_.get(), digest.data(), size);
  if (tickets_ == nullptr) SSL_CTX_set_options(native_.get(), SSL_OP_NO_TICKET);
}

base::Result<std::shared_ptr<const TlsContext>> TlsContext::ForListener(const ListenerTlsOptions& options,
                                                                        const TlsContents& contents,
                                                                        std::shared_ptr<TlsTicketKeys> tickets) {
  if (contents.certificate.name.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "TLS of a listener needs a certificate and its key");
  }
  // A public authority certifies every applicant, so trust in it would keep no client out.
  if (options.ca == kSystemCa)
    return MakeError(ErrorKind::kInvalidArgument, "client_ca must be a file, not \"system\"");
  const bool verifies = !contents.ca.name.empty();
  if (verifies != !options.ca.empty()) return MakeError(ErrorKind::kInvalidArgument, "client_ca was not read");
  if (!options.allowed_names.empty() && !(verifies && options.require_client_certificate)) {
    return MakeError(ErrorKind::kInvalidArgument, "allowed_names needs client_ca and require_client_certificate");
  }
  std::shared_ptr<TlsContext> out(new TlsContext(Role::kServer, options));
  if (auto status = out->Fill(options, contents); !status) return status.error();
  InstallServerCallbacks(out->native(), /*several=*/out->own().size() > 1);
  if (verifies) InstallVerification(out->native(), options.require_client_certificate);
  out->UseTickets(std::move(tickets), contents, options.require_client_certificate);
  return std::shared_ptr<const TlsContext>(std::move(out));
}

base::Result<std::shared_ptr<const TlsContext>> TlsContext::ForCluster(const ClusterTlsOptions& options,
                                                                       const TlsContents& contents) {
  std::shared_ptr<TlsContext> out(new TlsContext(Role::kClient, options));
  out->server_name_ = base::HostAsNamed(options.server_name);
  if (auto status = out->Fill(options, contents); !status) return status.error();
  InstallClientCallbacks(out->native());
  InstallVerification(out->native(), true);
  return std::shared_ptr<const TlsContext>(std::move(out));
}

}  // namespace sluice::net
