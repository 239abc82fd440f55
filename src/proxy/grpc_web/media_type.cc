#include "proxy/grpc_web/media_type.h"

#include "base/ascii.h"
#include "http2/fields/grpc_type.h"

namespace sluice::proxy::grpc_web {
namespace {

constexpr std::string_view kGrpc = "application/grpc";
constexpr std::string_view kWeb = "application/grpc-web";
constexpr std::string_view kText = "-text";
constexpr std::string_view kProto = "proto";

}  // namespace

std::optional<MediaType> ParseMediaType(std::string_view content_type) {
  using Kind = http2::GrpcType::Kind;
  const http2::GrpcType type = http2::ParseGrpcType(content_type);
  if (type.kind != Kind::kWeb && type.kind != Kind::kWebText) return std::nullopt;
  return MediaType{type.kind == Kind::kWebText, type.format};
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
  std::string_view message = http2::ParseGrpcType(grpc_type).format;
  if (message.empty()) message = kProto;
  std::string out(kWeb);
  if (text) out.append(kText);
  return out.append("+").append(message);
}

}  // namespace sluice::proxy::grpc_web
