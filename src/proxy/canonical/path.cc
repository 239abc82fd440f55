#include "proxy/canonical/path.h"

#include <array>
#include <vector>

#include "base/ascii.h"

namespace sluice::proxy {
namespace {

constexpr std::array<bool, 256> MakeNameBytes() {
  std::array<bool, 256> in{};
  for (int c = 0; c < 256; ++c) {
    in[static_cast<size_t>(c)] =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  }
  return in;
}
constexpr std::array<bool, 256> kNameBytes = MakeNameBytes();

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = base::ToLower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// RFC 3986 2.1. A "%" that encodes nothing stays.
std::string Decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const bool encoded =
        text[i] == '%' && i + 2 < text.size() && HexDigit(text[i + 1]) >= 0 && HexDigit(text[i + 2]) >= 0;
    if (!encoded) {
      out += text[i];
      continue;
    }
    out += static_cast<char>(HexDigit(text[i + 1]) * 16 + HexDigit(text[i + 2]));
    i += 2;
  }
  return out;
}

}  // namespace

bool IsGrpcPath(std::string_view path) {
  if (path.empty() || path[0] != '/') return false;
  size_t slashes = 0;
  bool after_name = true;  // a dot or a slash may follow; of the first slash this is said for the loop
  for (char c : path) {
    if (kNameBytes[static_cast<uint8_t>(c)]) {
      after_name = true;
      continue;
    }
    if (!after_name) return false;
    after_name = false;
    if (c == '/' && ++slashes <= 2) continue;
    if (c != '.' || slashes != 1) return false;
  }
  return after_name && slashes == 2;
}

std::string LenientPath(std::string_view path) {
  // Twice: a server behind another one may decode what that one has decoded.
  std::string text = Decoded(Decoded(path));
  text.resize(std::min(text.size(), text.find_first_of("?#")));
  std::vector<std::string> segments;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.size(), text.find_first_of("/\\", at));
    std::string_view segment = std::string_view(text).substr(at, end - at);
    at = end + 1;
    segment = segment.substr(0, segment.find(';'));
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
      continue;
    }
    // A file system of Windows takes "name. " for "name".
    while (!segment.empty() && (segment.back() == '.' || static_cast<uint8_t>(segment.back()) <= ' '))
      segment.remove_suffix(1);
    if (!segment.empty()) segments.push_back(base::ToLower(segment));
  }
  std::string out;
  for (const std::string& segment : segments) (out += '/') += segment;
  return out.empty() ? "/" : out;
}

}  // namespace sluice::proxy
