#include "proxy/call/hops.h"

#include <algorithm>
#include <string>
#include <string_view>

namespace sluice::proxy {
namespace {
constexpr std::string_view kHops = "sluice-hops";
}

uint32_t HopsOf(const http2::HeaderList& request) {
  const http2::Field* field = request.Find(kHops);
  if (field == nullptr) return 0;
  uint32_t hops = 0;
  for (const char c : field->value()) {
    if (c < '0' || c > '9') return 0;
    hops = std::min(hops * 10 + static_cast<uint32_t>(c - '0'), kHopsMax);
  }
  return hops;
}

void SetHops(http2::HeaderList& request, uint32_t hops) {
  request.Remove(kHops);
  request.Add(kHops, std::to_string(hops));
}

std::optional<base::Error> FindLoop(const http2::HeaderList& request) {
  if (HopsOf(request) < kHopsMax) return std::nullopt;
  return base::MakeError(base::ErrorKind::kLoop,
                         "the call has passed " + std::to_string(kHopsMax) +
                             " proxies (sluice-hops): an endpoint leads back to a listener of a proxy before it");
}

}  // namespace sluice::proxy
