// ReceiveWindow: what a peer may still send (RFC 9113 5.2, 6.9), and when it is told that it may send more.
//
// The consumer's credits are gathered until half the window is owed, so a WINDOW_UPDATE costs a share of many
// frames.
#pragma once

#include <cstdint>

namespace sluice::http2 {

class ReceiveWindow {
 public:
  void Reset(uint32_t size) {
    size_ = size;
    available_ = size;
    owed_ = 0;
  }
  // The peer sent `bytes`. False: more than it was allowed.
  bool Take(uint32_t bytes) {
    if (bytes > available_) return false;
    available_ -= bytes;
    return true;
  }
  // `bytes` were consumed. Returns the increment to announce now, or 0.
  uint32_t Credit(uint32_t bytes) {
    owed_ += bytes;
    if (owed_ < size_ / 2 || owed_ == 0) return 0;
    uint32_t increment = owed_;
    available_ += increment;
    owed_ = 0;
    return increment;
  }
  uint32_t available() const { return available_; }

 private:
  // Invariant: available_ + owed_ + bytes held by consumers (of a connection: none) == size_ <= 2^31-1, so nothing here
  // overflows.
  uint32_t size_ = 0;
  uint32_t available_ = 0;
  uint32_t owed_ = 0;
};

}  // namespace sluice::http2
