#include "net/tls/openssl.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

namespace sluice::net {

void OpenSslFree::operator()(bio_st* object) const { BIO_free_all(object); }
void OpenSslFree::operator()(evp_pkey_st* object) const { EVP_PKEY_free(object); }
void OpenSslFree::operator()(ssl_ctx_st* object) const { SSL_CTX_free(object); }
void OpenSslFree::operator()(ssl_session_st* object) const { SSL_SESSION_free(object); }
void OpenSslFree::operator()(ssl_st* object) const { SSL_free(object); }
void OpenSslFree::operator()(x509_st* object) const { X509_free(object); }

std::string TakeOpenSslError(std::string_view otherwise) {
  const unsigned long code = ERR_peek_error();
  ERR_clear_error();
  const char* reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason != nullptr ? std::string(reason) : std::string(otherwise);
}

}  // namespace sluice::net
