// A call of the script, and what its client has seen of it. The backend's answer is a function of the request, so that
// both ends know what must arrive.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "chaos/dice.h"
#include "support/h2_frames.h"

namespace sluice::chaos {

enum class Method : uint8_t {
  kUnary,   // gRPC: one message there, one back
  kCached,  // the same, in a route that may cache
  kStream,  // gRPC both ways: each byte comes back
  kServer,  // gRPC: the answer in many pieces
  kPlain,   // no gRPC: bytes there, bytes back, no trailers
};
inline constexpr const char* kPaths[] = {"/chaos.Echo/Unary", "/chaos.Echo/Cached", "/chaos.Echo/Stream",
                                         "/chaos.Echo/Server", "/plain"};

// No configuration of a run declares the other methods.
inline bool MayRepeat(Method method) {
  return method == Method::kCached || method == Method::kStream || method == Method::kServer;
}

// What a backend that keeps the protocol answers to the body.
inline std::string Answer(Method method, std::string_view body, size_t body_max) {
  if (method == Method::kStream) {
    std::string out(body);
    for (char& c : out) c = static_cast<char>(c ^ 0x55);
    return out;
  }
  Dice dice(base::Hash64(body, 7));
  const std::string bytes = dice.Bytes(dice.Size(body_max));
  return method == Method::kPlain ? bytes : h2::Message(bytes);
}

struct Call {
  uint32_t number = 0;
  Method method = Method::kUnary;
  std::string body;
  h2::Fields fields;  // of the request
  h2::Fields trailers;
  bool broken = false;      // malformed by intent
  bool never_ends = false;  // until the script is over
  uint32_t stream = 0;      // 0: not sent

  // Seen:
  bool ended = false;
  bool whole = false;         // by END_STREAM, not by RST_STREAM or with the connection
  bool cancelled = false;     // by its client
  bool excused = false;       // its connection was broken or closed with leave
  std::optional<int> status;  // grpc-status
  std::string http_status;
  std::string reason;  // sluice-reason
  std::string response;
  uint32_t reset = 0;
  bool headers = false;

  bool grpc() const { return method != Method::kPlain; }
  bool ok() const { return whole && (grpc() ? status == 0 : http_status == "200" && status.value_or(0) == 0); }
};

}  // namespace sluice::chaos
