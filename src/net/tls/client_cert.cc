#include "net/tls/client_cert.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <string_view>

#include "net/tls/pem.h"

namespace sluice::net {
namespace {

std::string HexDigest(x509_st* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &size) != 1) return {};
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += kHex[digest[i] >> 4];
    out += kHex[digest[i] & 15];
  }
  return out;
}

// Certificates are any text that an authority signs: what is no visible ASCII goes as '?', so that the value is one
// that HTTP/2 allows (RFC 9113 8.2.1).
std::string Value(std::string_view text, bool quoted) {
  if (text.find_first_of(",;=\"\\ ") != text.npos) quoted = true;
  std::string out;
  if (quoted) out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c >= ' ' && c <= '~' ? c : '?';
  }
  if (quoted) out += '"';
  return out;
}

void Append(std::string_view key, std::string_view text, bool quoted, std::string* out) {
  if (text.empty()) return;
  const std::string value = Value(text, quoted);
  if (out->size() + key.size() + value.size() + 2 > kClientCertBytesMax) return;
  if (!out->empty()) *out += ';';
  out->append(key);
  *out += '=';
  *out += value;
}

}  // namespace

std::string ClientCertElement(x509_st* client, x509_st* own) {
  std::string out;
  if (own != nullptr) {
    const TlsNames names = NamesOf(own);
    if (!names.uris.empty()) Append("By", names.uris.front(), false, &out);
  }
  const CertificateInfo info = Describe(client);
  Append("Hash", HexDigest(client), false, &out);
  Append("Subject", info.subject, true, &out);
  for (const std::string& uri : info.names.uris) Append("URI", uri, false, &out);
  for (const std::string& dns : info.names.dns) Append("DNS", dns, false, &out);
  return out;
}

}  // namespace sluice::net
