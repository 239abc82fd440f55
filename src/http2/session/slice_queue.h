// SliceQueue: DATA that waits in a stream for window or for room in the output, first in first out.
//
// Large Slices are linked. Small ones are copied into a block of the queue's own, so that a peer which sends
// DATA byte by byte pins neither a read block nor a queue entry for each byte. A drained queue keeps its
// vector, not its block.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "base/buffer_chain.h"
#include "base/slice.h"

namespace sluice::http2 {

class SliceQueue {
 public:
  SliceQueue() = default;
  SliceQueue(const SliceQueue&) = delete;
  SliceQueue& operator=(const SliceQueue&) = delete;
  ~SliceQueue() { Clear(); }

  size_t bytes() const { return bytes_; }
  bool empty() const { return bytes_ == 0; }

  void Push(const base::Slice& slice) {
    if (slice.empty()) return;
    bytes_ += slice.size();
    if (slice.size() < kCopyBelow) {
      PushCopy(slice);
    } else {
      slices_.push_back(base::Slice(slice).Unpinned());
    }
  }
  // Moves the first `bytes` bytes to the end of `out`.
  void MoveTo(base::BufferChain& out, size_t bytes) {
    bytes_ -= bytes;
    while (bytes > 0) {
      base::Slice& front = slices_[head_];
      if (front.size() > bytes) {
        out.Append(front.TakeFront(bytes));
        break;
      }
      bytes -= front.size();
      out.Append(std::move(front));
      ++head_;
    }
    if (bytes_ == 0) {
      Clear();
    } else if (head_ > kKeptSlices && head_ * 2 > slices_.size()) {
      slices_.erase(slices_.begin(), slices_.begin() + static_cast<ptrdiff_t>(head_));
      head_ = 0;
    }
  }
  void Clear() {
    slices_.clear();
    if (slices_.capacity() > kKeptSlices) slices_.shrink_to_fit();
    head_ = 0;
    bytes_ = 0;
    if (tail_ != nullptr) std::exchange(tail_, nullptr)->Unref();
  }

 private:
  static constexpr size_t kCopyBelow = 512;
  static constexpr size_t kTailBytes = 1984;  // with its header under half of the smallest pooled block
  static constexpr size_t kKeptSlices = 16;

  void PushCopy(const base::Slice& slice) {
    if (tail_ == nullptr || tail_->capacity() - tail_used_ < slice.size()) {
      if (tail_ != nullptr) tail_->Unref();
      tail_ = base::Block::New(kTailBytes);
      tail_used_ = 0;
    }
    uint8_t* at = tail_->data() + tail_used_;
    std::memcpy(at, slice.data(), slice.size());
    tail_used_ += slice.size();
    bool follows = head_ < slices_.size() && slices_.back().data() + slices_.back().size() == at;
    if (follows) {
      slices_.back().Extend(slice.size());
    } else {
      slices_.emplace_back(tail_, at, slice.size());
    }
  }

  std::vector<base::Slice> slices_;
  size_t head_ = 0;
  size_t bytes_ = 0;
  base::Block* tail_ = nullptr;  // holds a reference
  size_t tail_used_ = 0;
};

}  // namespace sluice::http2
