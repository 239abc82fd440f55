// HTTP/2 frames for tests: a builder and a parser that share no code with src/http2, so that neither hides
// the other's mistakes. Protocol tests speak in frames:
//
//   std::string wire = h2::Preface() + h2::Settings();
//   wire += h2::Headers(1, h2::Block(h2::GrpcRequest()), h2::kEndHeaders);
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::h2 {

inline constexpr uint8_t kData = 0, kHeaders = 1, kPriority = 2, kRstStream = 3, kSettings = 4, kPushPromise = 5,
                         kPing = 6, kGoaway = 7, kWindowUpdate = 8, kContinuation = 9;
inline constexpr uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kPriorityFlag = 0x20;

using Fields = std::vector<std::pair<std::string, std::string>>;

inline std::string Big(uint64_t value, int bytes) {
  std::string out;
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
  return out;
}
inline std::string RawFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  return Big(payload.size(), 3) + Big(type, 1) + Big(flags, 1) + Big(stream, 4) + std::string(payload);
}

inline std::string Preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; }
inline std::string Settings(const std::vector<std::pair<uint16_t, uint32_t>>& entries = {}) {
  std::string payload;
  for (auto [id, value] : entries) payload += Big(id, 2) + Big(value, 4);
  return RawFrame(kSettings, 0, 0, payload);
}
inline std::string SettingsAck() { return RawFrame(kSettings, kAck, 0, ""); }
inline std::string Data(uint32_t stream, std::string_view bytes, uint8_t flags = 0) {
  return RawFrame(kData, flags, stream, bytes);
}
inline std::string PaddedData(uint32_t stream, std::string_view bytes, uint8_t padding, uint8_t flags = 0) {
  return RawFrame(kData, flags | kPadded, stream, Big(padding, 1) + std::string(bytes) + std::string(padding, '\0'));
}
inline std::string Headers(uint32_t stream, std::string_view block, uint8_t flags = kEndHeaders) {
  return RawFrame(kHeaders, flags, stream, block);
}
inline std::string Continuation(uint32_t stream, std::string_view block, uint8_t flags = kEndHeaders) {
  return RawFrame(kContinuation, flags, stream, block);
}
inline std::string RstStream(uint32_t stream, uint32_t code) { return RawFrame(kRstStream, 0, stream, Big(code, 4)); }
inline std::string Ping(uint64_t payload, uint8_t flags = 0) { return RawFrame(kPing, flags, 0, Big(payload, 8)); }
inline std::string Goaway(uint32_t last_stream, uint32_t code, std::string_view debug = "") {
  return RawFrame(kGoaway, 0, 0, Big(last_stream, 4) + Big(code, 4) + std::string(debug));
}
inline std::string WindowUpdate(uint32_t stream, uint32_t increment) {
  return RawFrame(kWindowUpdate, 0, stream, Big(increment, 4));
}

// An HPACK block of literals without indexing (RFC 7541 6.2.2), without Huffman: it needs no table on either
// side.
inline std::string Block(const Fields& fields) {
  std::string out;
  auto text = [&out](const std::string& s) {
    if (s.size() < 127) {
      out.push_back(static_cast<char>(s.size()));
    } else {
      out.push_back(127);
      size_t rest = s.size() - 127;
      for (; rest >= 128; rest >>= 7) out.push_back(static_cast<char>((rest & 127) | 128));
      out.push_back(static_cast<char>(rest));
    }
    out += s;
  };
  for (const auto& [name, value] : fields) {
    out.push_back(0);
    text(name);
    text(value);
  }
  return out;
}

inline Fields GrpcRequest(const std::string& path = "/pkg.Service/Method") {
  return {{":method", "POST"},
          {":scheme", "http"},
          {":path", path},
          {":authority", "test"},
          {"content-type", "application/grpc"},
          {"te", "trailers"}};
}
inline Fields GrpcResponse() { return {{":status", "200"}, {"content-type", "application/grpc"}}; }
inline Fields GrpcTrailers(const std::string& status = "0") { return {{"grpc-status", status}}; }
// One message as gRPC has it in DATA: the compressed flag (not set), the length, the bytes.
inline std::string Message(std::string_view bytes) {
  return std::string(1, '\0') + Big(bytes.size(), 4) + std::string(bytes);
}
// `fields` with `more` at the end.
inline Fields With(Fields fields, const Fields& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
  std::string payload;

  bool has(uint8_t flag) const { return (flags & flag) != 0; }
  uint32_t Word(size_t at = 0) const {
    uint32_t value = 0;
    for (size_t i = at; i < at + 4 && i < payload.size(); ++i) value = value << 8 | static_cast<uint8_t>(payload[i]);
    return value;
  }
};

// The whole frames at the front of `wire`, which are removed from it.
inline std::vector<Frame> TakeFrames(std::string& wire) {
  std::vector<Frame> frames;
  size_t at = 0;
  auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(wire[at + i])); };
  while (wire.size() - at >= 9) {
    size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
    if (wire.size() - at - 9 < length) break;
    frames.push_back({static_cast<uint8_t>(byte(3)), static_cast<uint8_t>(byte(4)),
                      (byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)) & 0x7fffffff,
                      wire.substr(at + 9, length)});
    at += 9 + length;
  }
  wire.erase(0, at);
  return frames;
}

// "HEADERS[1] flags=5 len=12", "RST_STREAM[1] 8", "GOAWAY last=3 code=1": for comparing and for reading
// failures.
inline std::string Describe(const Frame& frame) {
  static const char* const kNames[] = {"DATA",         "HEADERS", "PRIORITY", "RST_STREAM",    "SETTINGS",
                                       "PUSH_PROMISE", "PING",    "GOAWAY",   "WINDOW_UPDATE", "CONTINUATION"};
  std::string name = frame.type < 10 ? kNames[frame.type] : "UNKNOWN";
  std::string on = name + "[" + std::to_string(frame.stream) + "]";
  switch (frame.type) {
    case kRstStream:
      return on + " " + std::to_string(frame.Word());
    case kWindowUpdate:
      return on + " +" + std::to_string(frame.Word());
    case kGoaway:
      return name + " last=" + std::to_string(frame.Word()) + " code=" + std::to_string(frame.Word(4));
    case kSettings:
    case kPing:
      return name + (frame.has(kAck) ? " ack" : "");
    default:
      return on + " flags=" + std::to_string(frame.flags) + " len=" + std::to_string(frame.payload.size());
  }
}
inline std::vector<std::string> Describe(const std::vector<Frame>& frames) {
  std::vector<std::string> out;
  for (const Frame& frame : frames) out.push_back(Describe(frame));
  return out;
}

}  // namespace sluice::h2
