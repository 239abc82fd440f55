#include "proxy/grpc_web/media_type.h"

#include "base/ascii.h"

namespace sluice::proxy::grpc_web {
namespace {

constexpr std::string_view kGrpc = "application/grpc";
constexpr std::string_view kWeb = "application/grpc-web";
constexpr std::string_view kText = "-text";
constexpr std::string_view kBase64 = "-base64";  // the default encoding, which may be named
constexpr std::string_view kProto = "proto";

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Without its parameters (RFC 9110 8.3.1).
std::string_view Essence(std::string_view type) { return Trim(type.substr(0, type.find(';'))); }

// True, and the front is gone, if `text` begins with it.
bool Take(std::string_view front, std::string_view& text) {
  if (text.size() < front.size() || !base::EqualsIgnoreCase(text.substr(0, front.size()), front)) return false;
  text.remove_prefix(front.size());
  return true;
}

}  // namespace

std::optional<MediaType> ParseMediaType(std::string_view content_type) {
  std::string_view rest = Essence(content_type);
  if (!Take(kWeb, rest)) return std::nullopt;
  MediaType type;
  type.text = Take(kText, rest);
  if (type.text) Take(kBase64, rest);
  if (rest.empty()) return type;
  if (rest.size() == 1 || rest.front() != '+') return std::nullopt;
  type.message = rest.substr(1);
  return type;
}

std::optional<MediaType> ParseAccept(std::string_view accept) {
  while (!accept.empty()) {
    const size_t comma = accept.find(',');
    if (const auto type = ParseMediaType(accept.substr(0, comma))) return type;
    if (comma == accept.npos) break;
    accept.remove_prefix(comma + 1);
  }
  return std::nullopt;
}

std::string ToGrpcType(const MediaType& type) {
  std::string out(kGrpc);
  if (!type.message.empty() && !base::EqualsIgnoreCase(type.message, kProto)) out.append("+").append(type.message);
  return out;
}

std::string ToWebType(std::string_view grpc_type, bool text) {
  std::string_view rest = Essence(grpc_type);
  std::string_view message = kProto;
  if (Take(kGrpc, rest) && rest.size() > 1 && rest.front() == '+') message = rest.substr(1);
  std::string out(kWeb);
  if (text) out.append(kText);
  return out.append("+").append(message);
}

}  // namespace sluice::proxy::grpc_web
