// EndedStreams: the streams that ended last other than by our RST_STREAM, and how: what still comes on one of them is
// an error, or a late response. Frames on streams that have dropped out are ignored, as RFC 9113 5.1 allows for any
// closed stream: forgetting never hurts an honest peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice::http2 {

class EndedStreams {
 public:
  static constexpr size_t kKept = 32;
  static constexpr uint32_t kLateResponsesMax = 1000;
  enum class How : uint8_t { kForgotten, kByBothSides, kByPeersReset };

  void Remember(uint32_t id, How how) {
    late_responses_ = 0;
    ids_[count_++ % kKept] = id * 2 + (how == How::kByPeersReset ? 1 : 0);
  }
  How Find(uint32_t id) const {
    for (uint32_t ended : ids_) {
      if (ended >> 1 == id) return (ended & 1) != 0 ? How::kByPeersReset : How::kByBothSides;
    }
    return How::kForgotten;
  }
  // How many there were, modulo 2^32.
  uint32_t count() const { return count_; }
  // HEADERS of a server on one of them. False: more than kLateResponsesMax since the last stream ended.
  bool TakeLateResponse() { return ++late_responses_ <= kLateResponsesMax; }

 private:
  std::array<uint32_t, kKept> ids_{};  // id * 2 + (ended by the peer's RST_STREAM); 0: none
  uint32_t count_ = 0;
  uint32_t late_responses_ = 0;
};

}  // namespace sluice::http2
