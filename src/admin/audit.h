// Audit: one line in the log for each RPC that changes something, or was refused: its caller, what it asked for, how it
// ended.
#pragma once

#include <string>
#include <string_view>

#include "admin/access.h"

namespace sluice::admin::v1 {
class ChangeEndpointsRequest;
class ChangeLimitRequest;
class DrainRequest;
class AddFaultRequest;
class PurgeCacheRequest;
class RemoveFaultRequest;
class SetEndpointHealthRequest;
}  // namespace sluice::admin::v1

namespace sluice::admin {

// Bytes of any text of a caller's in a line.
inline constexpr size_t kAuditTextBytesMax = 400;

// A caller's text made fit for one field of one line: control characters and quotes are ?, what is too long is cut.
std::string AuditText(std::string_view text);

// What a request asks for, in a few words. Not yet fit for a line.
std::string Summary(const v1::ChangeEndpointsRequest& request);
std::string Summary(const v1::SetEndpointHealthRequest& request);
std::string Summary(const v1::ChangeLimitRequest& request);
std::string Summary(const v1::AddFaultRequest& request);
std::string Summary(const v1::RemoveFaultRequest& request);
std::string Summary(const v1::PurgeCacheRequest& request);
std::string Summary(const v1::DrainRequest& request);

// audit: who="spiffe://a/b" peer="ipv4:..." method=Drain what="5s" result="ok". Refused ones are warnings.
std::string AuditLine(const Caller& caller, std::string_view method, std::string_view what, std::string_view result);
void LogAudit(const Caller& caller, std::string_view method, std::string_view what, std::string_view result,
              bool refused);

}  // namespace sluice::admin
