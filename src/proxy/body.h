// Body: request bytes that may have to be sent again: everything since the start while another attempt is possible,
// else only what has not been sent yet. Small messages are copied in here, so that they do not hold a whole read block.
//
// Memory: a small message, the usual one, lies in the Body itself; more small parts in a piece of memory from the pool,
// which most calls that are open without a word never need.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/slice.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

class Body {
 public:
  // Parts up to this size are copied while they last. Below BufferChain::kCopyBelow, so that a session never keeps a
  // Slice of them beyond the stream's life.
  static constexpr size_t kSmallBytes = 256;

  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() {
    if (more_ != nullptr) FreeMore();
  }

  // Bytes kept for another attempt; beyond it nothing is kept any more. Once, when the route is known; until then all
  // is kept, which the client's window bounds.
  void SetKeepMax(size_t bytes) {
    keep_max_ = static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX));
    if (total_ > keep_max_ || keep_max_ == 0) StopKeeping();
  }

  // `held`: it may be long until it is sent, so what is small pins no read block.
  void Append(const base::Slice& bytes, bool held = false) {
    total_ += bytes.size();
    if (total_ > keep_max_) StopKeeping();
    if (bytes.empty()) return;
    if (uint8_t* at = keeping_ ? Room(bytes.size()) : nullptr) {
      std::memcpy(at, bytes.data(), bytes.size());
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
    if (parts_.empty() && more_ != nullptr) FreeMore();
  }
  uint64_t total() const { return total_; }
  // All of the request so far, before any of it was sent.
  std::span<const base::Slice> parts() const { return parts_; }
  // Takes a copy of another's, before any of that was sent.
  void CopyFrom(const Body& other) {
    for (const base::Slice& part : other.parts()) {
      Append(part.size() <= kSmallBytes ? base::Slice::Copy(part.view()) : part);  // small ones may lie inside `other`
    }
  }

 private:
  static constexpr size_t kInlineBytes = 43;  // a gRPC message of 38; the Body is 128 bytes

  // For a copy of a small part; null: there is none.
  uint8_t* Room(size_t bytes) {
    if (bytes <= kInlineBytes - inline_used_) {
      inline_used_ = static_cast<uint8_t>(inline_used_ + bytes);
      return inline_ + inline_used_ - bytes;
    }
    if (bytes > kSmallBytes - more_used_) return nullptr;
    if (more_ == nullptr) more_ = static_cast<uint8_t*>(runtime::AllocateFrame(kSmallBytes));
    more_used_ = static_cast<uint16_t>(more_used_ + bytes);
    return more_ + more_used_ - bytes;
  }
  // No part lies in it any more.
  void FreeMore() {
    runtime::FreeFrame(std::exchange(more_, nullptr), kSmallBytes);
    more_used_ = 0;
  }

  absl::InlinedVector<base::Slice, 2> parts_;
  uint64_t total_ = 0;
  uint8_t* more_ = nullptr;
  uint32_t keep_max_ = UINT32_MAX;
  uint32_t sent_ = 0;  // parts sent in this attempt
  uint16_t more_used_ = 0;
  uint8_t inline_used_ = 0;
  bool keeping_ = true;  // sent parts stay
  bool lost_ = false;    // some part was sent and let go
  uint8_t inline_[kInlineBytes];
};
static_assert(sizeof(Body) == 128);

}  // namespace sluice::proxy
