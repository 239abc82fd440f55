// ViewOf: a certificate as `sluicectl certs` and the metric of its end show it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "admin/backend.h"
#include "net/tls_pem.h"

namespace sluice::admin {

// `purpose`: "own" or "trusted". `now`: seconds since 1970. Leaves used_by and error to the caller.
CertificateView ViewOf(const net::CertificateInfo& info, std::string file, std::string_view purpose, int64_t now);
// For `now`: the wall clock, as certificates have dates.
int64_t WallSeconds();

}  // namespace sluice::admin
