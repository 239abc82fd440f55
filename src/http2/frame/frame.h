// The frame header and the constants of RFC 9113 sections 4.1, 6 and 6.5.2: bytes to fields and back, no
// state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::http2 {

enum class FrameType : uint8_t {
  kData = 0x0,
  kHeaders = 0x1,
  kPriority = 0x2,
  kRstStream = 0x3,
  kSettings = 0x4,
  kPushPromise = 0x5,
  kPing = 0x6,
  kGoaway = 0x7,
  kWindowUpdate = 0x8,
  kContinuation = 0x9,
};

// Flags, section 6. END_STREAM and ACK share a bit on different types.
inline constexpr uint8_t kFlagEndStream = 0x1;
inline constexpr uint8_t kFlagAck = 0x1;
inline constexpr uint8_t kFlagEndHeaders = 0x4;
inline constexpr uint8_t kFlagPadded = 0x8;
inline constexpr uint8_t kFlagPriority = 0x20;

// Section 6.5.2.
enum class SettingId : uint16_t {
  kHeaderTableSize = 0x1,
  kEnablePush = 0x2,
  kMaxConcurrentStreams = 0x3,
  kInitialWindowSize = 0x4,
  kMaxFrameSize = 0x5,
  kMaxHeaderListSize = 0x6,
  // Of the range for experiments (section 11.3). A Sluice says it, with the value 1, where it is the client: calls on
  // the connection have passed a proxy (proxy/call/hops.h). Peers that do not know it ignore it (section 6.5.2).
  kProxied = 0xf51c,
};

inline constexpr std::string_view kClientPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";  // section 3.4
inline constexpr size_t kFrameHeaderBytes = 9;
inline constexpr uint32_t kDefaultFrameBytesMax = 16384;
inline constexpr uint32_t kLargestFrameBytesMax = (1u << 24) - 1;
inline constexpr uint32_t kDefaultWindowBytes = 65535;
inline constexpr uint32_t kDefaultTableBytes = 4096;
inline constexpr int64_t kWindowBytesMax = 0x7fffffff;
inline constexpr uint32_t kStreamIdMax = 0x7fffffff;

struct FrameHeader {
  uint32_t length;
  FrameType type;  // may hold a value that the enum does not name
  uint8_t flags;
  uint32_t stream_id;

  bool has(uint8_t flag) const { return (flags & flag) != 0; }
};

inline uint16_t Read16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }
inline uint32_t Read32(const uint8_t* p) {
  return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | uint32_t{p[3]};
}
inline uint64_t Read64(const uint8_t* p) { return uint64_t{Read32(p)} << 32 | Read32(p + 4); }
inline void Write16(uint8_t* p, uint16_t v) {
  p[0] = static_cast<uint8_t>(v >> 8);
  p[1] = static_cast<uint8_t>(v);
}
inline void Write32(uint8_t* p, uint32_t v) {
  p[0] = static_cast<uint8_t>(v >> 24);
  p[1] = static_cast<uint8_t>(v >> 16);
  p[2] = static_cast<uint8_t>(v >> 8);
  p[3] = static_cast<uint8_t>(v);
}
inline void Write64(uint8_t* p, uint64_t v) {
  Write32(p, static_cast<uint32_t>(v >> 32));
  Write32(p + 4, static_cast<uint32_t>(v));
}

// Of the 9 bytes at `p`. The reserved bit is dropped (section 4.1).
inline FrameHeader ReadFrameHeader(const uint8_t* p) {
  return {Read32(p) >> 8, static_cast<FrameType>(p[3]), p[4], Read32(p + 5) & kStreamIdMax};
}
inline void WriteFrameHeader(uint8_t* p, size_t length, FrameType type, uint8_t flags, uint32_t stream_id) {
  Write32(p, static_cast<uint32_t>(length) << 8 | static_cast<uint8_t>(type));
  p[4] = flags;
  Write32(p + 5, stream_id);
}

// RFC 7540 5.3.1: the priority fields, of PRIORITY and of HEADERS, make the frame's stream depend on itself. The first
// bit is the exclusive flag.
inline bool DependsOnItself(const FrameHeader& frame, const uint8_t* priority) {
  return (Read32(priority) & kStreamIdMax) == frame.stream_id;
}

}  // namespace sluice::http2
