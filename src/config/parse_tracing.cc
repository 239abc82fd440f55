// Tracing: the collector, and which calls go to it.
#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::TracingOptions;

// Names are looked up by gRPC's library, so host may be one.
bool IsHostAndPort(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0 || text.find_first_of(" /\t") != text.npos) return false;
  const std::string_view port = text.substr(colon + 1), host = text.substr(0, colon);
  if (host.find(':') != host.npos && !(host.front() == '[' && host.back() == ']')) return false;
  if (port.empty() || port.size() > 5 || port.find_first_not_of("0123456789") != port.npos) return false;
  int number = 0;
  for (char c : port) number = number * 10 + (c - '0');
  return number >= 1 && number <= 65535;
}

}  // namespace

void ParseTracing(Section& section, TracingOptions* out) {
  std::string endpoint;
  if (section.Text("endpoint", &endpoint) && !endpoint.empty()) {
    if (endpoint.starts_with("unix:/") ? endpoint.size() <= 6 : !IsHostAndPort(endpoint)) {
      section.Fail("endpoint", Cat(Shown(endpoint), " is no collector; allowed: host:port, unix:/path, \"\" (off)"));
    } else {
      out->endpoint = std::move(endpoint);
    }
  }
  ParseName(section, "service_name", &out->service_name);
  section.Options(proxy::kTracingOptions, out);
  section.Choice("propagate", kTracePropagate, &out->propagate);
  section.Map("sample", proxy::kTraceSampleOptions, out);
}

}  // namespace sluice::config
