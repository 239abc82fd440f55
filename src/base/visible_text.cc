#include "base/visible_text.h"

#include <cstdint>
#include <cstdio>

namespace sluice::base {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: there is none at the beginning of the text
};

// RFC 3629 4: the shortest form only, no halves of UTF-16.
Character FirstOf(std::string_view text) {
  const auto byte = [text](size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xf0 ? 4 : (lead >= 0xe0 ? 3 : 2);
  if (lead < 0xc2 || lead > 0xf4 || text.size() < bytes) return {};
  uint32_t code = lead & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

bool Shows(uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  if ((code & 0xfffe) == 0xfffe || (code >= 0xfdd0 && code <= 0xfdef)) return false;  // no characters
  if (code == 0x61c || code == 0x200e || code == 0x200f || code == 0xfeff) return false;
  if (code >= 0x2028 && code <= 0x202e) return false;  // ends of lines, directions
  return code < 0x2066 || code > 0x2069;
}

}  // namespace

std::string VisibleText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character first = FirstOf(text);
    const size_t bytes = first.bytes == 0 ? 1 : first.bytes;
    if (first.bytes != 0 && Shows(first.code)) {
      out += text.substr(0, bytes);
    } else {
      for (size_t i = 0; i < bytes; ++i) {
        char hex[8];
        std::snprintf(hex, sizeof(hex), "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(text[i])));
        out += hex;
      }
    }
    text.remove_prefix(bytes);
  }
  return out;
}

}  // namespace sluice::base
