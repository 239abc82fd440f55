#include "net/tls/callbacks.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>

#include "net/tls/names.h"
#include "net/tls/pem.h"

namespace sluice::net {
namespace {

constexpr unsigned char kH2[] = {2, 'h', '2'};  // RFC 7301 3.1: a length, the name

TlsNotes& NotesOf(SSL* ssl) { return *static_cast<TlsNotes*>(SSL_get_app_data(ssl)); }

// RFC 7301 has no say about a client without the extension, RFC 9113 3.2 has: HTTP/2 over TLS is what ALPN chose.
int OnClientHello(SSL* ssl, int* alert, void*) {
  const unsigned char* data = nullptr;
  size_t size = 0;
  if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_application_layer_protocol_negotiation, &data, &size) == 1) {
    return SSL_CLIENT_HELLO_SUCCESS;
  }
  NotesOf(ssl).no_alpn = true;
  *alert = SSL_AD_NO_APPLICATION_PROTOCOL;
  return SSL_CLIENT_HELLO_ERROR;
}

int OnAlpn(SSL* ssl, const unsigned char** out, unsigned char* out_size, const unsigned char* in, unsigned in_size,
           void*) {
  for (unsigned at = 0; at < in_size; at += in[at] + 1u) {  // OpenSSL has checked the lengths
    if (in[at] == 2 && in[at + 1] == 'h' && in[at + 2] == '2') {
      *out = in + at + 1;
      *out_size = 2;
      return SSL_TLSEXT_ERR_OK;
    }
  }
  NotesOf(ssl).no_alpn = true;
  return SSL_TLSEXT_ERR_ALERT_FATAL;  // no_application_protocol
}

// RFC 6066 3: a name that is not ours may be served with the first certificate. 1: go on.
int OnCertificate(SSL* ssl, void*) {
  const std::vector<OwnCertificate>& all = *NotesOf(ssl).own;
  const char* host = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
  const OwnCertificate* own = host == nullptr ? nullptr : ChooseCertificate(all, host);
  return own == nullptr || own == &all.front() || UseCertificate(*own, ssl) ? 1 : 0;
}

// RFC 5077 4, with AES-256-CBC and HMAC-SHA-256. 2: opened, but give the client a new one.
int OnTicket(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher, EVP_MAC_CTX* mac, int seal) {
  const TlsTicketKeys* keys = NotesOf(ssl).tickets;
  if (keys == nullptr) return 0;
  TlsTicketKeys::Key key;
  auto found = TlsTicketKeys::Found::kCurrent;
  if (seal != 0) {
    key = keys->current();
    std::copy(key.name.begin(), key.name.end(), name);
    if (RAND_bytes(iv, EVP_MAX_IV_LENGTH) != 1) return -1;
  } else {
    found = keys->Find(name, &key);
    if (found == TlsTicketKeys::Found::kNo) return 0;  // a full handshake
  }
  char digest[] = "SHA256";
  const OSSL_PARAM params[] = {OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key.mac.data(), key.mac.size()),
                               OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                               OSSL_PARAM_construct_end()};
  const bool ok = EVP_CipherInit_ex(cipher, EVP_aes_256_cbc(), nullptr, key.cipher.data(), iv, seal) == 1 &&
                  EVP_MAC_CTX_set_params(mac, params) == 1;
  OPENSSL_cleanse(&key, sizeof(key));
  if (!ok) return -1;
  return found == TlsTicketKeys::Found::kFormer ? 2 : 1;
}

// 1: the session is ours.
int OnNewSession(SSL* ssl, SSL_SESSION* session) {
  const TlsNotes& notes = NotesOf(ssl);
  if (notes.session_key.empty()) return 0;
  notes.sessions->Put(notes.session_key, OpenSslPtr<ssl_session_st>(session));
  return 1;
}

// For each certificate of the chain, ours to overrule. Only the peer's own has a name that matters.
int OnVerify(int ok, X509_STORE_CTX* verification) {
  if (ok != 1 || X509_STORE_CTX_get_error_depth(verification) != 0) return ok;
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(verification, SSL_get_ex_data_X509_STORE_CTX_idx()));
  TlsNotes& notes = NotesOf(ssl);
  if (notes.allowed_names->empty()) return 1;
  const TlsNames names = NamesOf(X509_STORE_CTX_get_current_cert(verification));
  if (NameAllowed(names, *notes.allowed_names)) return 1;
  notes.refused = names.Best().empty() ? "(no name)" : names.Best();
  X509_STORE_CTX_set_error(verification, X509_V_ERR_APPLICATION_VERIFICATION);
  return 0;
}

// OpenSSL calls it several times for each message of the handshake's kind, read or to be written, and for alerts; not
// for data. Between two messages the state is TLS_ST_OK: a message is where it leaves that.
void OnInfo(const SSL* ssl, int where, int value) {
  TlsNotes& notes = *static_cast<TlsNotes*>(SSL_get_app_data(ssl));
  if (!notes.settled) return;
  if ((where & SSL_CB_ALERT) != 0) {
    if (value >> 8 == SSL3_AL_WARNING && (value & 0xff) != SSL_AD_CLOSE_NOTIFY) ++notes.useless;
    return;
  }
  const bool in_message = SSL_get_state(ssl) != TLS_ST_OK;
  if (in_message && !notes.in_message) ++notes.useless;
  notes.in_message = in_message;
}

}  // namespace

void InstallCounting(ssl_ctx_st* native) { SSL_CTX_set_info_callback(native, &OnInfo); }

void InstallServerCallbacks(ssl_ctx_st* native, bool several) {
  if (several) SSL_CTX_set_cert_cb(native, &OnCertificate, nullptr);
  SSL_CTX_set_client_hello_cb(native, &OnClientHello, nullptr);
  SSL_CTX_set_alpn_select_cb(native, &OnAlpn, nullptr);
  SSL_CTX_set_tlsext_ticket_key_evp_cb(native, &OnTicket);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);  // the client keeps them, in tickets
}

void InstallClientCallbacks(ssl_ctx_st* native) {
  SSL_CTX_set_alpn_protos(native, kH2, sizeof(kH2));
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
  SSL_CTX_sess_set_new_cb(native, &OnNewSession);
}

void InstallVerification(ssl_ctx_st* native, bool required) {
  SSL_CTX_set_verify(native, SSL_VERIFY_PEER | (required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0), &OnVerify);
}

}  // namespace sluice::net
