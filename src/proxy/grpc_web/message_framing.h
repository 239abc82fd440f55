// MessageFraming: where in a gRPC stream of messages a piece of it ends. In gRPC-Web trailers are a frame behind the
// last message, so the translator has to know whether one is under way (gRPC-Web, "Message framing").
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::proxy::grpc_web {

class MessageFraming {
 public:
  static constexpr size_t kPrefixBytes = 5;
  static constexpr uint8_t kTrailers = 0x80;  // of the flags: this frame has the trailers

  // False: a frame begins that a client would take for trailers.
  bool Advance(std::string_view bytes) {
    while (!bytes.empty()) {
      if (prefix_ < kPrefixBytes) {
        const auto byte = static_cast<uint8_t>(bytes.front());
        if (prefix_ == 0 && (byte & kTrailers) != 0) return false;
        left_ = prefix_ == 0 ? 0 : left_ << 8 | byte;
        ++prefix_;
        bytes.remove_prefix(1);
      } else {
        const size_t part = std::min<size_t>(left_, bytes.size());
        left_ -= static_cast<uint32_t>(part);
        bytes.remove_prefix(part);
      }
      if (prefix_ == kPrefixBytes && left_ == 0) prefix_ = 0;
    }
    return true;
  }
  // No message is under way.
  bool between() const { return prefix_ == 0; }

 private:
  uint32_t left_ = 0;   // of the message; while the prefix is read, its length so far
  uint8_t prefix_ = 0;  // bytes of the prefix so far
};

}  // namespace sluice::proxy::grpc_web
