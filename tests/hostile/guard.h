// Guard: what a backend must never see, because the configuration of tree.cc denies it or only proxies may set it.
// It reads paths, authorities and lists as the most generous server would. honest_backend.js has the same rules.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::hostile {

using GuardFields = std::vector<std::pair<std::string, std::string>>;

inline std::string GuardLower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

inline std::string GuardTrim(std::string_view text) {
  const size_t from = text.find_first_not_of(" \t"), to = text.find_last_not_of(" \t");
  return from == std::string_view::npos ? std::string() : std::string(text.substr(from, to - from + 1));
}

inline std::string GuardUnescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '%' && i + 2 < text.size() &&
                        std::isxdigit(static_cast<unsigned char>(text[i + 1])) &&
                        std::isxdigit(static_cast<unsigned char>(text[i + 2]));
    if (escape) {
      out += static_cast<char>(std::strtoul(std::string(text.substr(i + 1, 2)).c_str(), nullptr, 16));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Query, parameters, escapes, case, empty and dotted segments, a "/" at the end: all gone.
inline std::string GuardPath(std::string_view path) {
  const std::string text = GuardLower(GuardUnescape(path.substr(0, path.find_first_of("?#"))));
  std::vector<std::string> segments;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('/', at), text.size());
    std::string segment = text.substr(at, end - at);
    segment = GuardTrim(segment.substr(0, segment.find(';')));
    if (segment == "..") {
      if (!segments.empty()) segments.pop_back();
    } else if (!segment.empty() && segment != ".") {
      segments.push_back(segment);
    }
    at = end + 1;
  }
  std::string out;
  for (const std::string& segment : segments) out += "/" + segment;
  return out;
}

// The host alone, as a reader takes it that stops at the first byte that no name has.
inline std::string GuardHost(std::string_view authority) {
  std::string host = GuardLower(GuardTrim(authority));
  if (const size_t user = host.rfind('@'); user != std::string::npos) host.erase(0, user + 1);
  const size_t end = host.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-_");
  host.resize(std::min(end, host.size()));
  while (!host.empty() && host.back() == '.') host.pop_back();
  return host;
}

inline std::vector<std::string> GuardMembers(std::string_view value) {
  std::vector<std::string> out;
  for (size_t at = 0; at <= value.size();) {
    const size_t end = std::min(value.find(',', at), value.size());
    out.push_back(GuardTrim(value.substr(at, end - at)));
    at = end + 1;
  }
  return out;
}

// Base64 of either alphabet, padded or not; nothing where it is none.
inline std::optional<std::string> GuardBase64(std::string_view text) {
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  uint32_t bits = 0;
  int have = 0;
  for (const char c : text) {
    static constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const size_t digit = kAlphabet.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    have += 6;
    if (have >= 8) out += static_cast<char>(bits >> (have -= 8));
  }
  return out;
}

// Why these fields (of headers or trailers) must not be here; empty: they may. `text`: -bin values are as on the wire.
inline std::string GuardFieldsReason(const GuardFields& fields, bool guarded, bool text) {
  static constexpr std::string_view kOurs[] = {"x-user",           "x-forwarded-for", "x-forwarded-proto",
                                               "x-forwarded-host", "x-request-id",    "x-forwarded-client-cert",
                                               "authorization",    "grpc-timeout",    "grpc-previous-rpc-attempts",
                                               "sluice-reason",    "sluice-hops"};
  for (const auto& [name, value] : fields) {
    std::string alias = GuardLower(name);
    std::replace(alias.begin(), alias.end(), '_', '-');
    if (value.find("evil") != std::string::npos &&
        std::find(std::begin(kOurs), std::end(kOurs), alias) != std::end(kOurs))
      return "a client's own " + name + ": " + value;
    const bool binary = name.size() >= 4 && name.ends_with("-bin");
    for (const std::string& member : GuardMembers(value)) {
      const auto bytes = binary && text ? GuardBase64(member) : member;
      if (!bytes) return name + " is no base64: " + member;
      if (guarded && (name == "x-role" || name == "x-role-bin") && *bytes == "admin")
        return name + " has the member admin: " + value;
      if (guarded && name == "x-scope" && !bytes->starts_with("read"))
        return "x-scope has another member than read: " + value;
    }
  }
  return {};
}

// The same of a whole request.
inline std::string GuardReason(std::string_view path, std::string_view authority, const GuardFields& fields,
                               bool text) {
  const std::string plain = GuardPath(path);
  if (plain == "/t.admin/delete") return "the path " + std::string(path);
  if (GuardHost(authority) == "admin.test") return "the authority " + std::string(authority);
  return GuardFieldsReason(fields, plain.starts_with("/t.guarded/"), text);
}

}  // namespace sluice::hostile
