// The certificates of a TlsContext as `sluicectl certs` and the metric of their end show them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "net/tls/context.h"

namespace sluice::server {

// Seconds since 1970, by the wall clock, as certificates have dates.
int64_t WallSeconds();

inline bool HasExpired(const net::CertificateInfo& info, int64_t now) { return info.not_after < now; }
// "FILE: the certificate has expired at 2026-01-31 12:00:00 UTC".
std::string ExpiredText(const std::string& file, const net::CertificateInfo& info);
// It has not expired and will within 14 days: time to find out why no new one has come.
inline constexpr int64_t kEndsSoonSeconds = 14 * 86400;
inline bool EndsSoon(const net::CertificateInfo& info, int64_t now) {
  return !HasExpired(info, now) && info.not_after - now < kEndsSoonSeconds;
}
// "FILE: the certificate ends at 2026-01-31 12:00:00 UTC, in 3 days".
std::string EndsSoonText(const std::string& file, const net::CertificateInfo& info, int64_t now);

// Appends the context's own certificate and those that it trusts. `options` names their files, `used_by` and `error`
// stand in each view.
void AppendViews(const net::TlsContext& context, const net::TlsOptions& options, const std::string& used_by,
                 const std::string& error, std::vector<admin::CertificateView>* out);

}  // namespace sluice::server
