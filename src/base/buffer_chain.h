// BufferChain: bytes on their way to a socket, written in order, gathered in one writev.
//
// Small writes are copied into a tail block; large Slices are linked in by reference. A chain that was
// drained holds no block, so an idle connection pays for none: the next write takes one from the thread's
// free list. Not thread-safe.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/slice.h"

namespace sluice::base {

class BufferChain {
 public:
  // Below this many bytes a Slice is copied rather than linked: an iovec and a count cost about as much as
  // the copy, and the copy lets the read block go.
  static constexpr size_t kCopyBelow = 1024;
  static constexpr size_t kTailBytes = 16 * 1024;

  BufferChain() = default;
  BufferChain(const BufferChain&) = delete;
  BufferChain& operator=(const BufferChain&) = delete;
  ~BufferChain() { Clear(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Room for `bytes` contiguous bytes at the end (at most kTailBytes); write there, then Commit what was
  // written. Nothing else may be called in between.
  uint8_t* Reserve(size_t bytes) {
    if (tail_ == nullptr || TailRoom() < bytes) NewTail(bytes);
    return tail_->data() + tail_used_;
  }
  void Commit(size_t bytes) {
    if (bytes == 0) return;
    SLUICE_DCHECK(bytes <= TailRoom());
    const uint8_t* start = tail_->data() + tail_used_;
    tail_used_ += bytes;
    size_ += bytes;
    // Bytes that follow the last slice in the same block make it longer. The address alone decides: blocks do not
    // touch, because each starts with its header; and a slice that was consumed is null.
    if (!slices_.empty()) [[likely]] {
      Slice& last = slices_.back();
      if (last.data() + last.size() == start) [[likely]]
        return last.Extend(bytes);
    }
    Push(Slice(tail_, start, bytes));
  }

  void Append(const void* data, size_t bytes);
  // Copies below kCopyBelow, else links.
  void Append(Slice slice);

  // Fills `iov` with up to `count` entries from the front, at most `max_bytes` in all. Returns the entries
  // filled.
  size_t Gather(iovec* iov, size_t count, size_t max_bytes = SIZE_MAX) const;
  // Drops `bytes` from the front.
  void Consume(size_t bytes);
  void Clear();
  // A copy of all bytes, for tests and small reads.
  std::string ToString() const;

 private:
  size_t TailRoom() const { return tail_ == nullptr ? 0 : tail_->capacity() - tail_used_; }
  void NewTail(size_t bytes);
  void Push(Slice slice);

  // A vector with a head index: pushes and pops are cheap and a drained chain keeps its capacity.
  std::vector<Slice> slices_;
  size_t head_ = 0;
  Block* tail_ = nullptr;  // holds a reference; the block small writes go to
  size_t tail_used_ = 0;
  size_t size_ = 0;
};

}  // namespace sluice::base
