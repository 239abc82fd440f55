// The certificates of a TlsContext as `sluicectl certs` and the metric of their end show them.
#pragma once

#include <string>
#include <vector>

#include "admin/backend.h"
#include "net/tls/context.h"

namespace sluice::server {

// Appends the context's own certificate and those that it trusts. `options` names their files, `used_by` and `error`
// stand in each view. Days are left by the wall clock, as certificates have dates.
void AppendViews(const net::TlsContext& context, const net::TlsOptions& options, const std::string& used_by,
                 const std::string& error, std::vector<admin::CertificateView>* out);

}  // namespace sluice::server
