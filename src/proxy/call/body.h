// Body: request bytes that may have to be sent again: everything since the start while another attempt is possible,
// else only the bytes that have not been sent yet. Small messages are copied in here, so that they do not hold a whole
// read block.
//
// Each attempt has a Cursor, its place in the body; while all is kept there may be several. StopKeeping leaves one.
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

  // How far an attempt has sent the body.
  struct Cursor {
    uint32_t part = 0;
  };

  Body() = default;
  Body(const Body&) = delete;
  Body& operator=(const Body&) = delete;
  ~Body() {
    if (more_ != nullptr) FreeMore();
  }

  // Bytes that may be kept for another attempt: see over_limit. Once, when the route is known; until then all is kept,
  // which the client's window bounds.
  void SetKeepMax(size_t bytes) {
    keep_below_ = bytes == 0 ? 0 : static_cast<uint32_t>(std::min<size_t>(bytes, UINT32_MAX - 1) + 1);
  }
  // Nothing may be kept any more: StopKeeping, before anything is taken.
  bool over_limit() const { return keeping_ && total_ >= keep_below_; }

  // `held`: it may be long until it is sent, so what is small pins no read block.
  void Append(const base::Slice& bytes, bool held = false) {
    total_ += bytes.size();
    if (bytes.empty()) return;
    const bool keep = keeping_ && !over_limit();
    if (uint8_t* at = keep ? Room(bytes.size()) : nullptr) {
      std::memcpy(at, bytes.data(), bytes.size());
      parts_.push_back(base::Slice::Static({reinterpret_cast<const char*>(at), bytes.size()}));
      return;
    }
    parts_.push_back(keep || held ? base::Slice(bytes).Unpinned() : bytes);
  }
  // The next part behind `at`, which moves past it; an empty Slice at the end.
  base::Slice Take(Cursor& at) {
    if (AllTaken(at)) return base::Slice();
    lost_ |= !keeping_;
    base::Slice part = keeping_ ? parts_[at.part] : std::move(parts_[at.part]);
    ++at.part;
    if (!keeping_ && AllTaken(at)) {
      parts_.clear();
      at.part = 0;
    }
    return part;
  }
  bool AllTaken(const Cursor& at) const { return at.part == parts_.size(); }
  // Sent parts stay: there may be several cursors.
  bool keeping() const { return keeping_; }
  // All of the request so far can be sent from the start.
  bool CanRewind() const { return !lost_; }
  // The response has begun, or there is too much: the part before `only` is let go. All other cursors are dead.
  void StopKeeping(Cursor& only) {
    if (!keeping_) return;
    keeping_ = false;
    lost_ |= only.part > 0;
    parts_.erase(parts_.begin(), parts_.begin() + static_cast<ptrdiff_t>(only.part));
    only.part = 0;
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
  static constexpr size_t kInlineBytes = 47;  // a gRPC message of 42; the Body is 128 bytes

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
  uint32_t keep_below_ = UINT32_MAX;  // as long as total_ is
  uint16_t more_used_ = 0;
  uint8_t inline_used_ = 0;
  bool keeping_ = true;  // sent parts stay
  bool lost_ = false;    // some part was sent and let go
  uint8_t inline_[kInlineBytes];
};
static_assert(sizeof(Body) == 128);

}  // namespace sluice::proxy
