#include "admin/audit.h"

#include <absl/strings/str_cat.h>

#include "base/log.h"
#include "sluice/admin/v1/admin.pb.h"

namespace sluice::admin {
namespace {

std::string Decimal(double value) { return absl::StrCat(value); }

}  // namespace

std::string AuditText(std::string_view text) {
  std::string out(text.substr(0, kAuditTextBytesMax));
  for (char& c : out) {
    if (c < ' ' || c > '~' || c == '"') c = '?';
  }
  if (text.size() > kAuditTextBytesMax) out += "...";
  return out;
}

std::string Summary(const v1::ChangeEndpointsRequest& request) {
  std::string kind = v1::ChangeEndpointsRequest::Kind_Name(request.kind());
  if (kind.empty()) kind = std::to_string(request.kind());
  std::string out = request.cluster() + " " + kind + (request.preview() ? " (preview)" : "");
  if (request.over_ms() > 0) out += " over " + std::to_string(request.over_ms()) + "ms";
  for (const v1::EndpointSpec& endpoint : request.endpoints()) {
    if (out.size() > kAuditTextBytesMax) break;
    out += " ";
    out += endpoint.name();
    if (!endpoint.address().empty()) {
      if (!endpoint.name().empty()) out += "=";  // without one the address is the name
      out += endpoint.address();
    }
    if (endpoint.has_weight()) out += "@" + Decimal(endpoint.weight());
  }
  return out;
}

std::string Summary(const v1::SetEndpointHealthRequest& request) {
  std::string action = v1::SetEndpointHealthRequest::Action_Name(request.action());
  if (action.empty()) action = std::to_string(request.action());
  return request.cluster() + " " + action + " " + request.endpoint();
}

std::string Summary(const v1::ChangeLimitRequest& request) {
  std::string out = request.name();
  if (request.reset()) out += " reset";
  if (request.has_rate()) out += " rate=" + Decimal(request.rate());
  if (request.has_burst()) out += " burst=" + std::to_string(request.burst());
  if (request.has_max()) out += " max=" + std::to_string(request.max());
  if (request.has_queue_max()) out += " queue=" + std::to_string(request.queue_max());
  if (request.has_queue_time_ms()) out += " queue_time=" + std::to_string(request.queue_time_ms()) + "ms";
  return out;
}

std::string Summary(const v1::AddFaultRequest& request) {
  std::string out = request.target();
  if (request.delay_ms() > 0) out += " delay=" + std::to_string(request.delay_ms()) + "ms";
  if (!request.status().empty()) out.append(" abort=").append(request.status());
  if (request.has_reset_after()) out += " reset_after=" + std::to_string(request.reset_after());
  if (request.has_percent()) out += " percent=" + Decimal(request.percent());
  return out + " for=" + std::to_string(request.for_ms()) + "ms";
}

std::string Summary(const v1::RemoveFaultRequest& request) { return std::to_string(request.id()); }

std::string Summary(const v1::PurgeCacheRequest& request) {
  if (request.service().empty()) return "all";
  return request.service() + (request.method().empty() ? "" : "/" + request.method()) +
         (request.has_key() ? " one key" : "");
}

std::string Summary(const v1::DrainRequest& request) {
  std::string text = request.has_timeout_ms() ? std::to_string(request.timeout_ms()) + "ms" : "";
  if (!request.has_delay_ms()) return text;
  return text + (text.empty() ? "" : " ") + "delay " + std::to_string(request.delay_ms()) + "ms";
}

std::string AuditLine(const Caller& caller, std::string_view method, std::string_view what, std::string_view result) {
  std::string line =
      "audit: who=\"" + AuditText(caller.ToString()) + "\" peer=\"" + AuditText(caller.peer) + "\" method=";
  line.append(method)
      .append(" what=\"")
      .append(AuditText(what))
      .append("\" result=\"")
      .append(AuditText(result))
      .append("\"");
  return line;
}

void LogAudit(const Caller& caller, std::string_view method, std::string_view what, std::string_view result,
              bool refused) {
  const std::string line = AuditLine(caller, method, what, result);
  if (refused) {
    SLUICE_LOG_WARN("{}", line);
  } else {
    SLUICE_LOG_INFO("{}", line);
  }
}

}  // namespace sluice::admin
