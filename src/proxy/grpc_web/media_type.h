// MediaType: what a content-type or an accept field says of gRPC-Web (gRPC-Web, "Content-Type").
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::proxy::grpc_web {

struct MediaType {
  bool text = false;         // "application/grpc-web-text": the body is base64
  std::string_view message;  // behind "+": "proto", "json"; empty: not said, which means proto. Part of what was parsed

  bool operator==(const MediaType&) const = default;
};

// None: it is no type of gRPC-Web. Letters of either case; parameters are ignored.
std::optional<MediaType> ParseMediaType(std::string_view content_type);
// The first type of gRPC-Web in an accept field; none where there is none, "*/*" for example. Weights are ignored:
// clients name one.
std::optional<MediaType> ParseAccept(std::string_view accept);

// What the upstream is told: "application/grpc", with the message's format where that is not proto. So a client that
// names proto and one that does not share what is cached, with each other and with most that speak gRPC.
std::string ToGrpcType(const MediaType& type);
// What the client is told of a response whose content-type is `grpc_type`: "application/grpc-web+proto".
std::string ToWebType(std::string_view grpc_type, bool text);

}  // namespace sluice::proxy::grpc_web
