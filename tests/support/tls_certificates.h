// Certificates and keys made in the test: no files checked in, none that expires one day. P-256 keys, so they are
// quick.
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <string>

namespace sluice::test {

struct TlsCert {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
  std::string certificate_pem, key_pem;
  TlsCert() = default;
  TlsCert(TlsCert&& other) noexcept { *this = std::move(other); }
  TlsCert& operator=(TlsCert&& other) noexcept {
    std::swap(certificate, other.certificate);
    std::swap(key, other.key);
    std::swap(certificate_pem, other.certificate_pem);
    std::swap(key_pem, other.key_pem);
    return *this;
  }
  ~TlsCert() {
    X509_free(certificate);
    EVP_PKEY_free(key);
  }
};

struct TlsCertSpec {
  std::string common_name;  // empty: none
  std::string names;        // OpenSSL's form: "DNS:a.example.com,URI:spiffe://a/b,IP:127.0.0.1"; empty: none
  bool authority = false;
  unsigned rsa_bits = 0;             // 0: P-256
  long from = -3600, until = 86400;  // seconds from now
  std::string common_name_too;       // one more; empty: none
};

inline std::string TakeText(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string out(data, static_cast<size_t>(size));
  BIO_free(bio);
  return out;
}

// Signed by `issuer`, or by itself.
inline TlsCert MakeCert(const TlsCertSpec& spec, const TlsCert* issuer = nullptr) {
  static int64_t serial = 1;
  TlsCert out;
  out.key = spec.rsa_bits != 0 ? EVP_RSA_gen(spec.rsa_bits) : EVP_EC_gen("P-256");
  X509* cert = out.certificate = X509_new();
  X509_set_version(cert, 2);
  ASN1_INTEGER_set_int64(X509_get_serialNumber(cert), serial++);
  X509_gmtime_adj(X509_getm_notBefore(cert), spec.from);
  X509_gmtime_adj(X509_getm_notAfter(cert), spec.until);
  X509_set_pubkey(cert, out.key);
  X509_NAME* subject = X509_get_subject_name(cert);
  for (const std::string& name : {spec.common_name, spec.common_name_too}) {
    if (name.empty()) continue;
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.data()),
                               static_cast<int>(name.size()), -1, 0);
  }
  X509* signer = issuer != nullptr ? issuer->certificate : cert;
  X509_set_issuer_name(cert, X509_get_subject_name(signer));
  X509V3_CTX context;
  X509V3_set_ctx(&context, signer, cert, nullptr, nullptr, 0);
  auto add = [&](int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
  };
  add(NID_basic_constraints, spec.authority ? "critical,CA:TRUE" : "critical,CA:FALSE");
  if (!spec.names.empty()) add(NID_subject_alt_name, spec.names);
  X509_sign(cert, issuer != nullptr ? issuer->key : out.key, EVP_sha256());
  BIO* text = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(text, cert);
  out.certificate_pem = TakeText(text);
  text = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(text, out.key, nullptr, nullptr, 0, nullptr, nullptr);
  out.key_pem = TakeText(text);
  return out;
}

}  // namespace sluice::test
