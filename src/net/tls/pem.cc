#include "net/tls/pem.h"

#include <arpa/inet.h>
#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <chrono>
#include <climits>

namespace sluice::net {
namespace {

OpenSslPtr<bio_st> Source(const TlsFile& file) {
  if (file.text.size() > INT_MAX) return nullptr;
  return OpenSslPtr<bio_st>(BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
}

// Empty unless all of it is printable: a name with a NUL or a line's end in it counts as none.
std::string Printable(const unsigned char* data, int size) {
  std::string out;
  if (data == nullptr || size <= 0) return out;
  out.assign(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
  for (char c : out) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) return {};
  }
  return out;
}

std::string ToString(const X509_NAME* name) {
  OpenSslPtr<bio_st> out(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(out.get(), name, 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return Printable(reinterpret_cast<unsigned char*>(text), static_cast<int>(size));
}

int64_t Seconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  using std::chrono::duration_cast, std::chrono::seconds, std::chrono::sys_days, std::chrono::year;
  const sys_days day = year(parts.tm_year + 1900) / (parts.tm_mon + 1) / parts.tm_mday;
  return duration_cast<seconds>(day.time_since_epoch()).count() + parts.tm_hour * 3600 + parts.tm_min * 60 +
         parts.tm_sec;
}

std::string CommonName(const X509_NAME* subject) {
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0 || X509_NAME_get_index_by_NID(subject, NID_commonName, at) >= 0) return {};
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  std::string out = Printable(utf8, size);
  OPENSSL_free(utf8);
  return out;
}

// Never asks: a daemon has no terminal.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

}  // namespace

base::Error BadFile(const TlsFile& file, std::string_view why) {
  return base::MakeError(base::ErrorKind::kInvalidArgument, std::string(file.name).append(": ").append(why));
}

base::Result<std::vector<OpenSslPtr<x509_st>>> ParseCertificates(const TlsFile& file) {
  ERR_clear_error();
  OpenSslPtr<bio_st> source = Source(file);
  if (source == nullptr) return BadFile(file, "is too large");
  std::vector<OpenSslPtr<x509_st>> out;
  while (OpenSslPtr<x509_st> one{PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr)}) {
    if (out.size() == kCertificatesMax) return BadFile(file, "has more than 2000 certificates");
    out.push_back(std::move(one));
  }
  // The end of the text is told as "no start line"; anything else is a block that is broken.
  const unsigned long error = ERR_peek_last_error();
  const bool end = ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE;
  if (!end) return BadFile(file, "has a certificate that cannot be read: " + TakeOpenSslError("unknown reason"));
  ERR_clear_error();
  if (out.empty()) return BadFile(file, "has no certificate: no PEM block \"BEGIN CERTIFICATE\"");
  return out;
}

base::Result<OpenSslPtr<evp_pkey_st>> ParseKey(const TlsFile& file) {
  ERR_clear_error();
  OpenSslPtr<bio_st> source = Source(file);
  if (source == nullptr) return BadFile(file, "is too large");
  bool asked = false;
  OpenSslPtr<evp_pkey_st> key(PEM_read_bio_PrivateKey(source.get(), nullptr, &NoPassphrase, &asked));
  if (key != nullptr) return key;
  const bool none = file.text.find("PRIVATE KEY-----") == std::string::npos;
  const std::string why = TakeOpenSslError("unknown reason");
  if (asked) return BadFile(file, "has an encrypted private key; a key without a passphrase is needed");
  if (none) return BadFile(file, "has no private key: no PEM block \"BEGIN PRIVATE KEY\"");
  return BadFile(file, "has a private key that cannot be read: " + why);
}

TlsNames NamesOf(x509_st* certificate) {
  TlsNames out;
  out.common_name = CommonName(X509_get_subject_name(certificate));
  auto* all = static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all, i);
    if (name->type == GEN_DNS || name->type == GEN_URI) {
      const ASN1_IA5STRING* value = name->type == GEN_DNS ? name->d.dNSName : name->d.uniformResourceIdentifier;
      std::string text = Printable(ASN1_STRING_get0_data(value), ASN1_STRING_length(value));
      if (!text.empty()) (name->type == GEN_DNS ? out.dns : out.uris).push_back(std::move(text));
    } else if (name->type == GEN_IPADD) {
      const int size = ASN1_STRING_length(name->d.iPAddress);
      char text[INET6_ADDRSTRLEN] = "";
      const int family = size == 4 ? AF_INET : AF_INET6;
      if ((size == 4 || size == 16) &&
          ::inet_ntop(family, ASN1_STRING_get0_data(name->d.iPAddress), text, sizeof(text))) {
        out.ips.emplace_back(text);
      }
    }
  }
  GENERAL_NAMES_free(all);
  return out;
}

CertificateInfo Describe(x509_st* certificate) {
  CertificateInfo out;
  out.subject = ToString(X509_get_subject_name(certificate));
  out.issuer = ToString(X509_get_issuer_name(certificate));
  out.names = NamesOf(certificate);
  out.not_before = Seconds(X509_get0_notBefore(certificate));
  out.not_after = Seconds(X509_get0_notAfter(certificate));
  return out;
}

}  // namespace sluice::net
