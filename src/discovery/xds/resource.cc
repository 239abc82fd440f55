#include "discovery/xds/resource.h"

namespace sluice::discovery {

constexpr size_t kShownBytesMax = 80;

std::string ShownText(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kShownBytesMax)) out += c >= ' ' && c <= '~' ? c : '?';
  if (text.size() > kShownBytesMax) out += "...";
  return out + "\"";
}

}  // namespace sluice::discovery
