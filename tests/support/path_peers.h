// The two neighbours of a proxy under measurement, in memory: a client and a backend that write the frames of steady
// unary gRPC calls as gRPC does (well-known headers from the HPACK table, metadata as plain literals, another
// x-request-id for each call), from prepared bytes, so that next to nothing of what is measured is theirs.
//
// They check every answer's frames, and with `verify` also decode every header block and compare every byte.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http2/hpack/decoder.h"
#include "net/stream.h"
#include "support/h2_frames.h"

namespace sluice::test {

// A connection's bytes: `in` is what the proxy has yet to read, `out` what it has written.
struct PathWire {
  std::string in, out;
  size_t at = 0;  // of `in`, read already
  net::IoEvents* reader = nullptr;
  net::IoEvents* writer = nullptr;
  uint64_t reads = 0, writes = 0;

  bool Due() const { return (reader != nullptr && at < in.size()) || writer != nullptr; }
  // What a reactor does: tells of readiness. On the worker.
  void Deliver() {
    if (reader != nullptr && at < in.size()) std::exchange(reader, nullptr)->OnReadable();
    if (writer != nullptr) std::exchange(writer, nullptr)->OnWritable();
  }
};

// The proxy's end of a PathWire. A read takes all there is, a write all it is given, as sockets with room do.
class PathStream final : public net::Stream {
 public:
  PathStream(std::shared_ptr<PathWire> wire, std::string peer) : wire_(std::move(wire)), peer_(std::move(peer)) {
    wire_->in.reserve(1 << 20);
    wire_->out.reserve(1 << 20);
  }
  ~PathStream() override { Close(); }
  net::IoResult Read(uint8_t* into, size_t capacity) override {
    const size_t n = std::min(capacity, wire_->in.size() - wire_->at);
    if (n == 0) return {net::IoResult::Kind::kWouldBlock, 0, 0};
    std::memcpy(into, wire_->in.data() + wire_->at, n);
    wire_->at += n;
    if (wire_->at == wire_->in.size()) {
      wire_->in.clear();
      wire_->at = 0;
    }
    ++wire_->reads;
    return {net::IoResult::Kind::kOk, n, 0};
  }
  net::IoResult Write(const iovec* parts, size_t count) override {
    size_t n = 0;
    for (size_t i = 0; i < count; ++i) {
      wire_->out.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      n += parts[i].iov_len;
    }
    ++wire_->writes;
    return {net::IoResult::Kind::kOk, n, 0};
  }
  void WaitReadable(net::IoEvents& events) override { wire_->reader = &events; }
  void WaitWritable(net::IoEvents& events) override { wire_->writer = &events; }
  void ShutdownWrite() override {}
  void Close() override { wire_->reader = wire_->writer = nullptr; }
  std::string PeerName() const override { return peer_; }

 private:
  const std::shared_ptr<PathWire> wire_;
  const std::string peer_;
};

// Hears frames; what the client and the backend have in common.
class PathPeer {
 public:
  PathPeer(std::shared_ptr<PathWire> wire, bool verify) : wire_(std::move(wire)), verify_(verify) {}
  virtual ~PathPeer() = default;

  // Everything the proxy has written. True if there was something.
  bool Hear() {
    std::string& bytes = wire_->out;
    const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t at = std::min(preface_left_, bytes.size());
    preface_left_ -= at;
    while (bytes.size() - at >= 9) {
      const size_t length = size_t{p[at]} << 16 | p[at + 1] << 8 | p[at + 2];
      if (bytes.size() - at - 9 < length) break;
      Frame(p[at + 3], p[at + 4], Word(p + at + 5) & 0x7fffffff, std::string_view(bytes).substr(at + 9, length));
      at += 9 + length;
    }
    if (at == bytes.size()) {
      bytes.clear();
    } else {
      bytes.erase(0, at);
    }
    return at > 0;
  }
  PathWire& wire() { return *wire_; }

 protected:
  static constexpr uint32_t kWindow = 0x3fff0000;  // what we credit the proxy with, again when half is used

  static uint32_t Word(const uint8_t* p) {
    return uint32_t{p[0]} << 24 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 8 | p[3];
  }
  static void PutId(char* frame, uint32_t id) {
    for (int i = 0; i < 4; ++i) frame[5 + i] = static_cast<char>(id >> (24 - 8 * i));
  }
  virtual void OnHeaders(uint32_t id, std::string_view block, bool end) = 0;
  virtual void OnData(uint32_t id, std::string_view bytes, bool end) = 0;

  // The fields of a block, in the order they came. For `verify` only.
  h2::Fields Decode(std::string_view block) {
    http2::HeaderList list(&interns_);
    SLUICE_CHECK(decoder_.Decode(block, {}, list) == http2::DecodeResult::kOk);
    h2::Fields fields;
    for (const http2::Field* field : list) fields.emplace_back(field->name(), field->value());
    return fields;
  }
  static bool Has(const h2::Fields& fields, std::string_view name, std::string_view value) {
    for (const auto& [key, text] : fields) {
      if (key == name && text == value) return true;
    }
    return false;
  }

  const std::shared_ptr<PathWire> wire_;
  const bool verify_;
  size_t preface_left_ = 0;
  int64_t window_ = 65535;  // of the connection, for our DATA

 private:
  void Frame(uint8_t type, uint8_t flags, uint32_t id, std::string_view payload) {
    switch (type) {
      case h2::kHeaders:
        SLUICE_CHECK((flags & h2::kEndHeaders) != 0);  // our blocks are short
        return OnHeaders(id, payload, (flags & h2::kEndStream) != 0);
      case h2::kData:
        taken_ += payload.size();
        if (taken_ > kWindow / 2) {
          wire_->in += h2::WindowUpdate(0, static_cast<uint32_t>(taken_));
          taken_ = 0;
        }
        return OnData(id, payload, (flags & h2::kEndStream) != 0);
      case h2::kSettings:
        if ((flags & h2::kAck) == 0) wire_->in += h2::SettingsAck();
        return;
      case h2::kPing:
        if ((flags & h2::kAck) == 0) wire_->in += h2::RawFrame(h2::kPing, h2::kAck, 0, payload);
        return;
      case h2::kWindowUpdate:
        if (id == 0) window_ += Word(reinterpret_cast<const uint8_t*>(payload.data()));
        return;
      case h2::kGoaway:
      case h2::kRstStream:
        SLUICE_CHECK(closing && "no call may fail");
        return;
      default:
        return;
    }
  }

  uint64_t taken_ = 0;  // DATA bytes heard since the last WINDOW_UPDATE
  http2::InternTable interns_;
  http2::HpackDecoder decoder_{interns_};

 public:
  bool closing = false;  // the proxy is being stopped: GOAWAY and resets are expected
};

// RFC 7541 6.2.1: a literal that both tables remember; `name` is an index of the static table, or spelled out.
inline std::string Remembered(uint8_t name_index, std::string_view name, std::string_view value) {
  SLUICE_CHECK(name_index < 63 && name.size() < 127 && value.size() < 127);
  std::string out(1, static_cast<char>(0x40 | name_index));
  if (name_index == 0) out.append(1, static_cast<char>(name.size())).append(name);
  return out.append(1, static_cast<char>(value.size())).append(value);
}

class PathClient final : public PathPeer {
 public:
  // `literals`: all headers are plain literals that no table remembers.
  PathClient(std::shared_ptr<PathWire> wire, std::string message, bool verify, bool literals = false)
      : PathPeer(std::move(wire), verify), message_(std::move(message)) {
    wire_->in += h2::Preface() + h2::Settings({{2, 0}, {4, 1 << 30}}) + h2::WindowUpdate(0, kWindow);
    const std::string own = h2::Block(
        {{"x-key", "tenant-0042"}, {"x-trace-bin", "AAECAwQFBgcICQoLDA0ODw"}, {"x-request-id", "0000000000000000"}});
    first_ = Request(std::string("\x86\x83") + Remembered(1, "", "127.0.0.1:18080") +
                     Remembered(4, "", "/pkg.Service/Method") + Remembered(31, "", "application/grpc") +
                     Remembered(0, "te", "trailers") +
                     Remembered(58, "", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)") + own);
    // From then on: user-agent is 62, te 63, content-type 64, :path 65, :authority 66.
    later_ = Request(std::string("\x86\x83\xc1\xc2\xbf\xc0\xbe") + own);
    if (!literals) return;
    first_ = later_ = Request(h2::Block({{":method", "POST"},
                                         {":scheme", "http"},
                                         {":path", "/pkg.Service/Method"},
                                         {":authority", "test"},
                                         {"te", "trailers"},
                                         {"content-type", "application/grpc"},
                                         {"user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"}}) +
                              own);
  }

  // Sends as many of `calls` as the connection's window has room for; returns how many.
  size_t Start(size_t calls) {
    size_t sent = 0;
    for (; sent < calls && window_ >= static_cast<int64_t>(message_.size()); ++sent) {
      wire_->in += NextRequest();
      window_ -= static_cast<int64_t>(message_.size());
    }
    return sent;
  }
  // Calls that are left open: their headers, and no message until FinishOpen, which takes window for all.
  void Open(size_t calls) {
    for (size_t i = 0; i < calls; ++i) {
      open_.push_back(next_id_);
      const std::string& request = NextRequest();
      wire_->in.append(request, 0, request.size() - message_.size() - 9);
    }
  }
  void FinishOpen() {
    for (uint32_t id : open_) wire_->in += h2::Data(id, message_, h2::kEndStream);
    window_ -= static_cast<int64_t>(message_.size() * open_.size());
    SLUICE_CHECK(window_ >= 0);
    open_.clear();
  }
  uint64_t finished() const { return finished_; }

 private:
  // The next call's bytes, headers and message.
  const std::string& NextRequest() {
    std::string& request = next_id_ == 1 ? first_ : later_;
    const size_t data = request.size() - message_.size() - 9;
    char* id = request.data() + data - 16;  // the block's last bytes
    for (uint64_t i = 0, n = ++sequence_ * 0x9e3779b97f4a7c15u; i < 16; ++i)
      id[i] = "0123456789abcdef"[n >> (60 - 4 * i) & 15];
    PutId(request.data(), next_id_);
    PutId(request.data() + data, next_id_);
    next_id_ += 2;
    return request;
  }
  std::string Request(const std::string& block) const {
    return h2::Headers(1, block) + h2::Data(1, message_, h2::kEndStream);
  }
  void OnHeaders(uint32_t id, std::string_view block, bool end) override {
    finished_ += end;
    if (!verify_) return;
    const h2::Fields fields = Decode(block);
    if (end) {
      SLUICE_CHECK(Has(fields, "grpc-status", "0") && bytes_heard_ == message_.size());
    } else {
      SLUICE_CHECK(Has(fields, ":status", "200") && Has(fields, "content-type", "application/grpc"));
      bytes_heard_ = 0;
    }
  }
  // The responses of one connection come whole, one after the other, unless a window or the output's bound cuts them.
  void OnData(uint32_t, std::string_view bytes, bool end) override {
    SLUICE_CHECK(!end);  // trailers follow
    if (!verify_) return;
    SLUICE_CHECK(std::string_view(message_).substr(bytes_heard_, bytes.size()) == bytes);
    bytes_heard_ += bytes.size();
  }

  const std::string message_;
  std::string first_, later_;
  uint32_t next_id_ = 1;
  std::vector<uint32_t> open_;
  uint64_t sequence_ = 0, finished_ = 0;
  size_t bytes_heard_ = 0;
};

// Answers with the message it was sent.
class PathBackend final : public PathPeer {
 public:
  PathBackend(std::shared_ptr<PathWire> wire, std::string message, bool verify)
      : PathPeer(std::move(wire), verify), message_(std::move(message)) {
    preface_left_ = h2::Preface().size();
    wire_->in += h2::Settings({{4, 1 << 30}}) + h2::WindowUpdate(0, kWindow);
    const std::string data = h2::Data(1, message_);
    first_ = h2::Headers(1, "\x88" + Remembered(31, "", "application/grpc") +
                                Remembered(0, "grpc-accept-encoding", "identity, deflate, gzip")) +
             data + h2::Headers(1, Remembered(0, "grpc-status", "0"), h2::kEndHeaders | h2::kEndStream);
    later_ = h2::Headers(1, "\x88\xc0\xbf") + data + h2::Headers(1, "\xbe", h2::kEndHeaders | h2::kEndStream);
  }
  uint64_t answered() const { return answered_; }

 private:
  void OnHeaders(uint32_t id, std::string_view block, bool end) override {
    SLUICE_CHECK(!end);  // the message follows
    if (!verify_) return;
    const h2::Fields fields = Decode(block);
    for (auto [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {":method", "POST"},
             {":scheme", "http"},
             {":path", "/pkg.Service/Method"},
             {"te", "trailers"},
             {"content-type", "application/grpc"},
             {"user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"},
             {"x-key", "tenant-0042"},
             {"x-trace-bin", "AAECAwQFBgcICQoLDA0ODw"}}) {
      SLUICE_CHECK(Has(fields, name, value));
    }
  }
  void OnData(uint32_t id, std::string_view bytes, bool end) override {
    if (!end) return;
    std::string& answer = answered_++ == 0 ? first_ : later_;
    const char* p = answer.data();
    for (size_t at = 0; at < answer.size();) {
      const auto* head = reinterpret_cast<const uint8_t*>(p + at);
      PutId(answer.data() + at, id);
      at += 9 + (size_t{head[0]} << 16 | size_t{head[1]} << 8 | head[2]);
    }
    wire_->in += answer;
    window_ -= static_cast<int64_t>(message_.size());
    SLUICE_CHECK(window_ >= 0);  // the proxy's window has room for all calls under way
  }

  const std::string message_;
  std::string first_, later_;
  uint64_t answered_ = 0;
};

}  // namespace sluice::test
