// FramePeer: the far end of a connection under test, by hand: sends bytes made with h2_frames.h, writes down
// what it hears.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "http2/hpack/decoder.h"
#include "support/h2_frames.h"
#include "support/memory_stream.h"

namespace sluice::test {

// One stream, as the peer has heard it.
struct Heard {
  std::vector<h2::Fields> headers;  // one entry a header block
  std::string data;
  bool end = false;
  std::optional<uint32_t> reset;

  // The value of a field in the last header block; "<none>" without one.
  std::string Value(const std::string& name) const {
    if (headers.empty()) return "<none>";
    for (const auto& [key, value] : headers.back()) {
      if (key == name) return value;
    }
    return "<none>";
  }
};

class FramePeer {
 public:
  enum class Role { kClient, kServer };
  FramePeer(Role role, std::unique_ptr<net::MemoryStream> end)
      : preface_left_(role == Role::kServer ? 24 : 0), wire_(std::move(end)) {}

  net::MemoryStream& wire() { return *wire_; }
  // What does not fit now is sent by Pump, when there is room.
  void Send(std::string_view bytes) {
    unsent_ += bytes;
    Flush();
  }
  // Sends and reads what is possible. True if anything moved.
  bool Pump() {
    bool moved = Flush();
    uint8_t buffer[16384];
    while (reading && !end) {
      net::IoResult result = wire_->Read(buffer, sizeof(buffer));
      if (result.kind == net::IoResult::Kind::kWouldBlock) break;
      moved = true;
      if (result.kind != net::IoResult::Kind::kOk) {
        end = true;
        error = result.error;
        break;
      }
      received_ += std::string_view(reinterpret_cast<char*>(buffer), result.bytes);
      Parse();
    }
    return moved;
  }

  bool reading = true;      // false: takes nothing from the wire
  bool acknowledge = true;  // SETTINGS and PING
  bool credit = true;       // WINDOW_UPDATE for every DATA frame, on both levels
  std::map<uint32_t, Heard> streams;
  std::vector<h2::Frame> frames;
  bool end = false;  // the connection has ended, with `error` if that is not 0
  int error = 0;

  size_t Count(uint8_t type) const {
    size_t n = 0;
    for (const h2::Frame& frame : frames) n += frame.type == type;
    return n;
  }
  const h2::Frame* Last(uint8_t type) const {
    for (auto it = frames.rbegin(); it != frames.rend(); ++it) {
      if (it->type == type) return &*it;
    }
    return nullptr;
  }
  // Window the other side was given, beyond what it had at first. Stream 0: the connection's.
  uint64_t Credited(uint32_t stream) const {
    uint64_t sum = 0;
    for (const h2::Frame& frame : frames) {
      if (frame.type == h2::kWindowUpdate && frame.stream == stream) sum += frame.Word();
    }
    return sum;
  }

 private:
  bool Flush() {
    if (unsent_.empty()) return false;
    iovec part{unsent_.data(), unsent_.size()};
    net::IoResult result = wire_->Write(&part, 1);
    if (result.kind == net::IoResult::Kind::kError) unsent_.clear();
    if (result.kind != net::IoResult::Kind::kOk) return false;
    unsent_.erase(0, result.bytes);
    return true;
  }

  void Parse() {
    size_t skip = std::min(preface_left_, received_.size());
    received_.erase(0, skip);
    preface_left_ -= skip;
    for (h2::Frame& frame : h2::TakeFrames(received_)) {
      Hear(frame);
      frames.push_back(std::move(frame));
    }
  }

  void Hear(const h2::Frame& frame) {
    Heard& stream = streams[frame.stream];
    switch (frame.type) {
      case h2::kHeaders:
      case h2::kContinuation: {
        block_ += frame.payload;
        stream.end |= frame.type == h2::kHeaders && frame.has(h2::kEndStream);
        if (!frame.has(h2::kEndHeaders)) return;
        http2::HeaderList list(&interns_);
        SLUICE_CHECK(decoder_.Decode(std::exchange(block_, {}), {}, list) == http2::DecodeResult::kOk);
        stream.headers.emplace_back();
        for (const http2::Field* field : list) stream.headers.back().emplace_back(field->name(), field->value());
        return;
      }
      case h2::kData:
        stream.data += frame.payload;
        stream.end |= frame.has(h2::kEndStream);
        if (credit && !frame.payload.empty()) {
          uint32_t n = static_cast<uint32_t>(frame.payload.size());
          Send(h2::WindowUpdate(0, n) + (frame.has(h2::kEndStream) ? "" : h2::WindowUpdate(frame.stream, n)));
        }
        return;
      case h2::kRstStream:
        stream.reset = frame.Word();
        return;
      case h2::kSettings:
        if (acknowledge && !frame.has(h2::kAck)) Send(h2::SettingsAck());
        return;
      case h2::kPing:
        if (acknowledge && !frame.has(h2::kAck)) Send(h2::RawFrame(h2::kPing, h2::kAck, 0, frame.payload));
        return;
      default:
        return;
    }
  }

  size_t preface_left_;
  std::unique_ptr<net::MemoryStream> wire_;
  std::string unsent_, received_, block_;
  http2::InternTable interns_;
  http2::HpackDecoder decoder_{interns_};
};

}  // namespace sluice::test
