// Script: one rule of RFC 9113 as bytes that a peer sends and what must come of them. The tables beside this file
// hold the rules by section; they run against a session of either role (tests/unit/http2/conformance) and through a
// whole proxy (tests/unit/proxy/conformance_script_test.cc).
//
// Where a script begins, two requests are under way: on stream 1 the client may still send, on stream 3 it has
// ended (END_STREAM). Neither has been answered. Streams from 5 on are idle.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "support/h2_frames.h"

namespace sluice::h2 {

// RFC 9113 7.
inline constexpr uint32_t kNoError = 0, kProtocolError = 1, kInternalError = 2, kFlowControlError = 3,
                          kStreamClosed = 5, kFrameSizeError = 6, kRefusedStream = 7, kCancel = 8,
                          kCompressionError = 9;
inline constexpr uint8_t kEnd = kEndHeaders | kEndStream;

struct Script {
  enum class Outcome {
    kConnection,  // GOAWAY with the code; the connection ends, and with it what was open
    kStream,      // RST_STREAM with the code; all other streams go on
    kFine,        // no error: both requests go on
  };
  std::string name;
  Outcome outcome;
  uint32_t stream;
  uint32_t code;
  std::string frames;
  std::vector<std::string> said;  // kFine: what the session answers, in words
};
inline void PrintTo(const Script& script, std::ostream* out) { *out << script.name; }
inline std::string NameOf(const Script& script) { return script.name; }

using Scripts = std::vector<Script>;

inline Script EndsConnection(std::string name, uint32_t code, std::string frames) {
  return {std::move(name), Script::Outcome::kConnection, 0, code, std::move(frames), {}};
}
inline Script EndsStream(std::string name, uint32_t stream, uint32_t code, std::string frames) {
  return {std::move(name), Script::Outcome::kStream, stream, code, std::move(frames), {}};
}
inline Script IsFine(std::string name, std::string frames, std::vector<std::string> said = {}) {
  return {std::move(name), Script::Outcome::kFine, 0, 0, std::move(frames), std::move(said)};
}
inline Scripts operator+(Scripts a, const Scripts& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// Requests and responses to begin from.
inline Fields Without(Fields fields, const std::string& name) {
  std::erase_if(fields, [&](const auto& field) { return field.first == name; });
  return fields;
}
inline Fields Instead(const Fields& fields, const std::string& name, const std::string& value) {
  Fields out = fields;
  for (auto& [key, old] : out) {
    if (key == name) old = value;
  }
  return out;
}
inline std::string Answer(uint32_t stream, uint8_t flags = kEndHeaders) {
  return Headers(stream, Block(GrpcResponse()), flags);
}
inline std::string Request(uint32_t stream, uint8_t flags = kEndHeaders) {
  return Headers(stream, Block(GrpcRequest()), flags);
}

}  // namespace sluice::h2
