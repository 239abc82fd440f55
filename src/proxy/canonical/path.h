// Paths of gRPC calls: the one spelling that is taken, and what a lenient server may read in any other.
//
// Thread safety: pure functions.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::proxy {

// Which paths a listener takes for gRPC calls.
enum class PathRule : uint8_t {
  kGrpc,  // those of gRPC
  kAny,   // all that begin with a slash
};
inline constexpr std::array<std::string_view, 2> kPathRules = {"grpc", "any"};

// Whether `path` is "/" Service-Name "/" Method-Name as PROTOCOL-HTTP2 has it: names of letters, digits, "_" and "-",
// the service's joined by single dots. No server can read such a path in two ways: nothing in it is decoded, cut off,
// merged or resolved (RFC 3986 6.2.2).
bool IsGrpcPath(std::string_view path);

// What the most lenient server may make of a path: without query and parameters, percent-decoded, with "\" as "/",
// dot segments resolved, empty segments and a closing slash left out, in lower case. For deny rules: two paths of which
// some server makes one have one lenient reading.
std::string LenientPath(std::string_view path);

}  // namespace sluice::proxy
