// GrpcType: what a content-type says of gRPC (gRPC over HTTP/2, "Content-Type"; gRPC-Web, "Content-Type"). The only
// place that reads one.
//
// Letters of either case count the same, parameters behind ";" say nothing (RFC 9110 8.3.1). Any thread.
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::http2 {

struct GrpcType {
  enum class Kind : uint8_t { kNone, kGrpc, kWeb, kWebText };
  Kind kind = Kind::kNone;
  // Behind "+": "proto", "json". Part of what was parsed; empty: not said, which means proto, or no name of a format.
  std::string_view format;
};

// "application/grpcish" is kNone: the type is a whole word. Blanks at either end go.
GrpcType ParseGrpcType(std::string_view content_type);

// gRPC itself, not gRPC-Web.
inline bool IsGrpcType(std::string_view content_type) {
  return content_type == "application/grpc" || ParseGrpcType(content_type).kind == GrpcType::Kind::kGrpc;
}

}  // namespace sluice::http2
