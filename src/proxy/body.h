// Body: request bytes that may have to be sent again: everything since the start while another attempt is possible, else
// only what has not been sent yet. Small messages are copied in here, so that they do not hold a whole read block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/container/inlined_vector.h"
#include "base/slice.h"

namespace sluice::proxy {

class Body {
 public:
  // Below BufferChain::kCopyBelow, so that a session never keeps a Slice of it beyond the stream's life.
  static constexpr size_t kInlineBytes = 256;

  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;

  // Bytes kept for another attempt; beyond it nothing is kept any more. Once, when the route is known; until then all
  // is kept, which the client's window bounds.
  void SetKeepMax(size_t bytes) {
    keep_max_ = bytes;
    if (total_ > keep_max_ || keep_max_ == 0) StopKeeping();
  }

  // `held`: it may be long until it is sent, so what is small pins no read block.
  void Append(const base::Slice& bytes, bool held = false) {
    total_ += bytes.size();
    if (total_ > keep_max_) StopKeeping();
    if (bytes.empty()) return;
    if (keeping_ && bytes.size() <= kInlineBytes - inline_used_) {
      uint8_t* at = inline_ + inline_used_;
      std::memcpy(at, bytes.data(), bytes.size());
      inline_used_ += bytes.size();
      parts_.push_back(base::Slice::Static({reinterpret_cast<const char*>(at), bytes.size()}));
      return;
    }
    parts_.push_back(keeping_ || held ? base::Slice(bytes).Unpinned() : bytes);
  }
  // The next part not sent in this attempt; an empty Slice when all is sent.
  base::Slice TakeUnsent() {
    if (sent_ == parts_.size()) return base::Slice();
    lost_ |= !keeping_;
    base::Slice part = keeping_ ? parts_[sent_] : std::move(parts_[sent_]);
    ++sent_;
    if (!keeping_ && sent_ == parts_.size()) {
      parts_.clear();
      sent_ = 0;
    }
    return part;
  }
  bool all_sent() const { return sent_ == parts_.size(); }
  // All of the request so far can be sent again.
  bool CanRewind() const { return !lost_; }
  void Rewind() { sent_ = 0; }
  // The response has begun, or there is too much: what was sent is let go.
  void StopKeeping() {
    if (!keeping_) return;
    keeping_ = false;
    lost_ |= sent_ > 0;
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(sent_));
    sent_ = 0;
  }
  uint64_t total() const { return total_; }
  // All of the request so far, before any of it was sent.
  std::span<const base::Slice> parts() const { return parts_; }
  // Takes a copy of another's, before any of that was sent.
  void CopyFrom(const Body& other) {
    for (const base::Slice& part : other.parts()) {
      Append(part.size() <= kInlineBytes ? base::Slice::Copy(part.view()) : part);  // small ones may lie inside `other`
    }
  }

 private:
  size_t keep_max_ = SIZE_MAX;
  bool keeping_ = true;  // sent parts stay
  bool lost_ = false;    // some part was sent and let go
  uint64_t total_ = 0;
  size_t sent_ = 0;  // parts sent in this attempt
  size_t inline_used_ = 0;
  absl::InlinedVector<base::Slice, 2> parts_;
  uint8_t inline_[kInlineBytes];
};

}  // namespace sluice::proxy
