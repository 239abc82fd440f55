#include "support/raw_peer.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::integration {

namespace raw {

std::string U32(uint32_t value) {
  const uint32_t network = htonl(value);
  return std::string(reinterpret_cast<const char*>(&network), 4);
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string frame = U32(static_cast<uint32_t>(payload.size())).substr(1);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + U32(stream) + payload;
}

namespace {

// RFC 7541 5.1 with a prefix of seven bits, the first bit 0 (no Huffman).
std::string Text(const std::string& text) {
  std::string out;
  size_t left = text.size();
  if (left < 127) {
    out += static_cast<char>(left);
  } else {
    out += static_cast<char>(127);
    for (left -= 127; left >= 128; left /= 128) out += static_cast<char>(left % 128 + 128);
    out += static_cast<char>(left);
  }
  return out + text;
}

}  // namespace

std::string Block(const Fields& fields) {
  std::string block;
  for (const auto& [name, value] : fields) block += '\0' + Text(name) + Text(value);
  return block;
}

std::string Headers(uint32_t stream, const Fields& fields, bool end_stream) {
  return Frame(kHeaders, kEndHeaders | (end_stream ? kEndStream : 0), stream, Block(fields));
}

std::string Settings(const std::vector<std::pair<uint16_t, uint32_t>>& values) {
  std::string payload;
  for (const auto& [id, value] : values) payload += U32(id).substr(2) + U32(value);
  return Frame(kSettings, 0, 0, payload);
}

Fields EchoHeaders(const std::string& method) {
  return {{":method", "POST"},
          {":scheme", "http"},
          {":path", "/sluice.echo.v1.Echo/" + method},
          {":authority", "test"},
          {"content-type", "application/grpc"},
          {"te", "trailers"}};
}

std::string Message(const std::string& payload) { return '\0' + U32(static_cast<uint32_t>(payload.size())) + payload; }

std::string EchoCall(uint32_t stream) {
  return Headers(stream, EchoHeaders()) + Frame(kData, kEndStream, stream, Message(""));
}

}  // namespace raw

RawPeer RawPeer::Connect(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  return RawPeer(fd);
}

RawPeer::RawPeer(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  // A peer that stops reading must not hang the test.
  const timeval bound{kLongWait.count(), 0};
  setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &bound, sizeof(bound));
  nghttp2_hd_inflate_new(&inflater_);
}

RawPeer::RawPeer(RawPeer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      in_(std::move(other.in_)),
      inflater_(std::exchange(other.inflater_, nullptr)) {}

RawPeer::~RawPeer() {
  if (fd_ >= 0) close(fd_);
  if (inflater_) nghttp2_hd_inflate_del(inflater_);
}

bool RawPeer::Send(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t n = send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n <= 0) return false;
    sent += static_cast<size_t>(n);
  }
  return true;
}

void RawPeer::Handshake() {
  EXPECT_TRUE(Send(raw::kPreface + raw::Settings()));
  const auto settings = Next();
  ASSERT_TRUE(settings.has_value());
  EXPECT_EQ(settings->type, raw::kSettings);
}

bool RawPeer::Accept() {
  constexpr size_t kSize = sizeof(raw::kPreface) - 1;
  while (in_.size() < kSize) {
    if (!Fill()) return false;
  }
  in_.erase(0, kSize);
  return Send(raw::Settings());
}

void RawPeer::HalfClose() { shutdown(fd_, SHUT_WR); }

bool RawPeer::Fill() {
  pollfd wait{fd_, POLLIN, 0};
  const int ready = poll(&wait, 1, static_cast<int>(std::chrono::milliseconds(kLongWait).count()));
  EXPECT_GT(ready, 0) << "the peer said nothing for too long";
  if (ready <= 0) return false;
  char buffer[65536];
  const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
  if (n <= 0) return false;
  in_.append(buffer, static_cast<size_t>(n));
  return true;
}

uint32_t RawPeer::Frame::Number(size_t offset) const {
  uint32_t network = 0;
  if (offset + 4 <= payload.size()) payload.copy(reinterpret_cast<char*>(&network), 4, offset);
  return ntohl(network);
}

std::optional<RawPeer::Frame> RawPeer::Next() {
  constexpr size_t kHead = 9;
  while (in_.size() < kHead) {
    if (!Fill()) return std::nullopt;
  }
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(in_[i])); };
  const size_t length = byte(0) << 16 | byte(1) << 8 | byte(2);
  while (in_.size() < kHead + length) {
    if (!Fill()) return std::nullopt;
  }
  Frame frame;
  frame.type = static_cast<uint8_t>(byte(3));
  frame.flags = static_cast<uint8_t>(byte(4));
  frame.stream = (byte(5) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8)) & 0x7fffffff;
  frame.payload = in_.substr(kHead, length);
  in_.erase(0, kHead + length);
  if (frame.type == raw::kSettings && !(frame.flags & raw::kAck)) {
    Send(raw::Frame(raw::kSettings, raw::kAck, 0, ""));
  }
  return frame;
}

std::optional<RawPeer::Frame> RawPeer::Until(const std::function<bool(const Frame&)>& fits) {
  while (auto frame = Next()) {
    if (fits(*frame)) return frame;
  }
  return std::nullopt;
}

std::optional<uint32_t> RawPeer::GoawayThenEnd() {
  std::optional<uint32_t> code;
  while (auto frame = Next()) {
    if (frame->type == raw::kGoaway) code = frame->Number(4);
  }
  return code;
}

void RawPeer::Decode(const Frame& frame, Answer* answer) {
  auto* in = reinterpret_cast<const uint8_t*>(frame.payload.data());
  size_t left = frame.payload.size();
  const bool last = frame.flags & raw::kEndHeaders;
  for (;;) {
    nghttp2_nv field;
    int flags = 0;
    const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, in, left, last);
    ASSERT_GE(used, 0) << "a header block that libnghttp2 cannot read";
    in += used;
    left -= static_cast<size_t>(used);
    if (flags & NGHTTP2_HD_INFLATE_EMIT) {
      answer->fields[std::string(reinterpret_cast<char*>(field.name), field.namelen)] =
          std::string(reinterpret_cast<char*>(field.value), field.valuelen);
    }
    if (flags & NGHTTP2_HD_INFLATE_FINAL) nghttp2_hd_inflate_end_headers(inflater_);
    if ((flags & NGHTTP2_HD_INFLATE_FINAL) || (left == 0 && !(flags & NGHTTP2_HD_INFLATE_EMIT))) return;
  }
}

RawPeer::Answer RawPeer::AnswerOf(uint32_t stream) {
  Answer answer;
  Answer other;  // the header table is the connection's: blocks of other streams are read too
  while (auto frame = Next()) {
    if (frame->type == raw::kHeaders || frame->type == raw::kContinuation) {
      Decode(*frame, frame->stream == stream ? &answer : &other);
    }
    if (frame->stream != stream) continue;
    if (frame->type == raw::kData) answer.data += frame->payload;
    if (frame->type == raw::kRstStream) answer.reset = frame->Number(0);
    const bool ends = frame->type == raw::kData || frame->type == raw::kHeaders;
    if (ends && (frame->flags & raw::kEndStream)) answer.ended = true;
    if (answer.ended || answer.reset) break;
  }
  return answer;
}

std::string RawPeer::Rest() {
  while (Fill()) {
  }
  return std::exchange(in_, "");
}

}  // namespace sluice::integration
