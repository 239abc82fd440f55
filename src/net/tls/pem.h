// TlsPem: certificates and keys from PEM text (RFC 7468), with errors that name the file and what is wrong with it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "net/tls/names.h"
#include "net/tls/openssl.h"

namespace sluice::net {

// A file that has been read. The name is for messages and views.
struct TlsFile {
  std::string name;
  std::string text;
};

// kInvalidArgument: "NAME: why".
base::Error BadFile(const TlsFile& file, std::string_view why);

// What people want to know of a certificate. Times are seconds since 1970 UTC.
struct CertificateInfo {
  std::string subject;  // RFC 2253: "CN=a,O=b"
  std::string issuer;
  TlsNames names;
  int64_t not_before = 0;
  int64_t not_after = 0;
};

// All certificates of the file in their order, at least one, at most kCertificatesMax. kInvalidArgument.
inline constexpr size_t kCertificatesMax = 2000;  // a system's trust bundle has some hundred
base::Result<std::vector<OpenSslPtr<x509_st>>> ParseCertificates(const TlsFile& file);
// The file's one private key. kInvalidArgument: none, encrypted, broken.
base::Result<OpenSslPtr<evp_pkey_st>> ParseKey(const TlsFile& file);

CertificateInfo Describe(x509_st* certificate);
TlsNames NamesOf(x509_st* certificate);

}  // namespace sluice::net
