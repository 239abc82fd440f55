// Options of TLS for listeners and clusters, as values: files by name, which server/tls_reloader.h reads. Parsed by
// config, with the ranges in option_table.h; documented in config/reference.yaml and docs/tls.md.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace sluice::net {

enum class TlsVersion : uint8_t { k12, k13 };
inline constexpr std::array<std::string_view, 2> kTlsVersions = {"1.2", "1.3"};
inline std::string_view ToString(TlsVersion version) { return kTlsVersions[static_cast<size_t>(version)]; }

// A certificate of ours besides the first, and its key: as certificate and key below.
struct TlsPairOptions {
  std::string certificate, key;
  bool operator==(const TlsPairOptions&) const = default;
};
inline constexpr size_t kTlsPairsMax = 100;

// What both sides have. Without a certificate (clients only) the peer cannot tell our identity.
struct TlsOptions {
  // PEM file: our certificate, then the intermediate ones, in the order of RFC 8446 4.4.2. Empty: none.
  std::string certificate;
  // PEM file: the certificate's private key, not encrypted.
  std::string key;
  // Listeners: for clients that ask for one of their names (SNI, RFC 6066 3); others get the first. At most
  // kTlsPairsMax.
  std::vector<TlsPairOptions> more;
  // PEM file: the authorities that we trust. "system" (clusters): the system's store. Empty (listeners): clients'
  // certificates are not asked for.
  std::string ca;
  // Names (CheckAllowedName) of the peers that may connect, or be connected to, of those that `ca` vouches for. Empty:
  // all of these (listeners); those with the name that was connected to (clusters). At most kAllowedNamesMax.
  std::vector<std::string> allowed_names;
  TlsVersion version_min = TlsVersion::k12;
  TlsVersion version_max = TlsVersion::k13;
  bool operator==(const TlsOptions&) const = default;
};
inline constexpr size_t kAllowedNamesMax = 1000;
// Of the certificates in their order, the first included.
inline const std::string& CertificateFile(const TlsOptions& options, size_t index) {
  return index == 0 ? options.certificate : options.more[index - 1].certificate;
}
inline constexpr std::string_view kSystemCa = "system";

struct ListenerTlsOptions : TlsOptions {
  bool enabled = false;
  // With `ca`: a client without a certificate is refused. False: it may come without one, but not with a bad one.
  bool require_client_certificate = true;
  // From accept to the end of the handshake.
  std::chrono::milliseconds handshake_timeout{5000};
  // Handshakes under way at once on this listener; more connections wait in the kernel's queue.
  uint32_t handshakes_max = 1000;
  bool operator==(const ListenerTlsOptions&) const = default;
};

struct ClusterTlsOptions : TlsOptions {
  bool enabled = false;
  // Sent as SNI and, without allowed_names, looked for in the certificate. Empty: the endpoint's DNS name; of an
  // endpoint by IP address no SNI is sent and the address must stand in the certificate (RFC 6066 3, RFC 9525 6).
  std::string server_name;
  bool operator==(const ClusterTlsOptions&) const = default;
};

// Whether `name` may stand in allowed_names; kInvalidArgument says what may:
//   a.example.com        a DNS name of the certificate (subjectAltName), without regard to case
//   *.example.com        any DNS name with exactly one label before .example.com
//   spiffe://domain/path a URI of the certificate, exactly; spiffe://domain/path/* any below it
//   CN=name              the subject's common name, exactly; for certificates that have only that
base::Status CheckAllowedName(std::string_view name);

}  // namespace sluice::net
