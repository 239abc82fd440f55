// HTTP/2 frames and HPACK fields as the programs of the side-by-side benchmark write them: as little as a closed
// benchmark needs, so that these programs cost less than any proxy between them.
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

enum : uint8_t {
  kData,
  kHeaders,
  kPriority,
  kRstStream,
  kSettings,
  kPushPromise,
  kPing,
  kGoaway,
  kWindowUpdate,
  kContinuation
};
enum : uint8_t { kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kPriorityFlag = 32 };

static const char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
enum { kPrefaceBytes = 24, kFrameHeaderBytes = 9 };

inline uint32_t ReadU32(const uint8_t* p) { return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
inline void WriteU32(uint8_t* p, uint32_t v) {
  p[0] = v >> 24;
  p[1] = v >> 16;
  p[2] = v >> 8;
  p[3] = v;
}
inline uint32_t ReadU24(const uint8_t* p) { return p[0] << 16 | p[1] << 8 | p[2]; }

inline void WriteFrameHeader(uint8_t* p, uint32_t len, uint8_t type, uint8_t flags, uint32_t sid) {
  p[0] = len >> 16;
  p[1] = len >> 8;
  p[2] = len;
  p[3] = type;
  p[4] = flags;
  WriteU32(p + 5, sid);
}
inline void AppendFrame(std::string& o, uint32_t len, uint8_t type, uint8_t flags, uint32_t sid, const void* pl) {
  uint8_t h[kFrameHeaderBytes];
  WriteFrameHeader(h, len, type, flags, sid);
  o.append((char*)h, kFrameHeaderBytes);
  if (len && pl) o.append((const char*)pl, len);
}
inline void AppendWindowUpdate(std::string& o, uint32_t sid, uint32_t inc) {
  uint8_t b[4];
  WriteU32(b, inc);
  AppendFrame(o, 4, kWindowUpdate, 0, sid, b);
}

// ---- what backend and load_client read alike ----
enum { kFrameBytesMax = 1 << 16 };  // far above what either offers: a larger one is no frame

// Calls fn(length, type, flags, stream, payload) for each whole frame, as long as it returns true. The bytes of those
// frames. `ok` becomes false where fn returned that, or where the bytes are no frame.
template <typename Fn>
size_t ReadFrames(const uint8_t* p, size_t n, bool& ok, Fn fn) {
  size_t o = 0;
  while (ok && n - o >= kFrameHeaderBytes) {
    uint32_t len = ReadU24(p + o);
    if (len > kFrameBytesMax) {
      fprintf(stderr, "a frame of %u bytes\n", len);
      ok = false;
      break;
    }
    if (n - o < kFrameHeaderBytes + len) break;
    ok = fn(len, p[o + 3], p[o + 4], ReadU32(p + o + 5) & 0x7fffffff, p + o + kFrameHeaderBytes);
    o += kFrameHeaderBytes + len;
  }
  return o;
}
// Of DATA or HEADERS: leaves what is neither padding nor priority.
inline void Unpad(uint8_t type, uint8_t flags, const uint8_t*& p, uint32_t& len) {
  if (flags & kPadded) {
    len -= 1 + p[0];
    p++;
  }
  if (type == kHeaders && (flags & kPriorityFlag)) {
    p += 5;
    len -= 5;
  }
}
// Calls fn(key, value) for each setting.
template <typename Fn>
void ForEachSetting(const uint8_t* p, uint32_t len, Fn fn) {
  for (uint32_t i = 0; i + 6 <= len; i += 6) fn((uint16_t)(p[i] << 8 | p[i + 1]), ReadU32(p + i + 2));
}
// Gives the connection's window back, now and then: `consumed` counts what was not given back yet.
inline void Credit(std::string& o, uint64_t& consumed, uint32_t len) {
  consumed += len;
  if (consumed < (1u << 29)) return;
  AppendWindowUpdate(o, 0, consumed);
  consumed = 0;
}

// ---- HPACK encoding helpers (no Huffman) ----
inline void AppendInteger(std::string& o, uint8_t prefix_bits, uint8_t first, uint32_t v) {
  uint32_t m = (1u << prefix_bits) - 1;
  if (v < m) {
    o.push_back(first | v);
    return;
  }
  o.push_back(first | m);
  for (v -= m; v >= 128; v >>= 7) o.push_back((v & 127) | 128);
  o.push_back(v);
}
inline void AppendString(std::string& o, const std::string& s) {
  AppendInteger(o, 7, 0, s.size());
  o += s;
}
inline void AppendIndexed(std::string& o, uint32_t i) { AppendInteger(o, 7, 0x80, i); }
// kind: 0x40 = with incremental indexing (6 bit), 0x00 = without indexing (4 bit)
inline void AppendLiteral(std::string& o, uint8_t kind, uint32_t name_idx, const std::string& name,
                          const std::string& val) {
  AppendInteger(o, kind == 0x40 ? 6 : 4, kind, name_idx);
  if (!name_idx) AppendString(o, name);
  AppendString(o, val);
}

// The gRPC message: 5-byte prefix, then a protobuf-shaped field of n bytes in all (n >= 2).
inline std::string GrpcMessage(uint32_t n) {
  std::string m(5, '\0');
  WriteU32((uint8_t*)&m[1], n);
  std::string pb(1, 0x0a);  // field 1, length-delimited
  uint32_t room = n - 1, len = room;
  for (int varint = 1; varint <= 5; varint++) {  // room = varint bytes + payload
    len = room - varint;
    std::string t;
    uint32_t v = len;
    for (; v >= 128; v >>= 7) t.push_back((v & 127) | 128);
    t.push_back(v);
    if ((int)t.size() == varint) {
      pb += t;
      break;
    }
  }
  for (uint32_t i = 0; i < len; i++) pb.push_back((char)('a' + (i * 7 + i / 251) % 26));
  pb.resize(n, 'z');
  return m + pb;
}

inline void Die(const char* what) {
  perror(what);
  exit(2);
}
inline sockaddr_in ParseAddress(const std::string& hp) {
  sockaddr_in a{};
  a.sin_family = AF_INET;
  auto c = hp.rfind(':');
  std::string host = c == std::string::npos ? "127.0.0.1" : hp.substr(0, c);
  a.sin_port = htons(atoi(hp.c_str() + (c == std::string::npos ? 0 : c + 1)));
  if (inet_pton(AF_INET, host.c_str(), &a.sin_addr) != 1) {
    fprintf(stderr, "bad address %s\n", hp.c_str());
    exit(2);
  }
  return a;
}
inline void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
inline void SetNoDelay(int fd) {
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}
inline int ListenOn(const std::string& hp) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  sockaddr_in a = ParseAddress(hp);
  if (bind(fd, (sockaddr*)&a, sizeof a) || listen(fd, 4096)) Die(hp.c_str());
  return fd;
}
