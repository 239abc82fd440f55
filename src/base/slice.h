// Block and Slice: counted memory that is cut, passed on and forgotten without copying a byte.
//
// A Block is one allocation with a reference count in front of its bytes. A Slice is a range of a Block that
// keeps it alive. The read buffer of a connection is a Block; a DATA payload that is spliced to another
// connection is a Slice of it. Costs: a Slice of ten bytes keeps its whole Block; so small payloads are
// copied (BufferChain::kCopyBelow).
//
// Thread safety: the count is atomic, so Slices of one Block may live on different threads; one Slice object
// is for one thread at a time. Bytes are immutable once a Slice of them has been handed out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace sluice::base {

class Block {
 public:
  // A block of at least `capacity` bytes with one reference, from this thread's free list where it has one of
  // the size: 4, 16, 64 and 256 KiB are kept; a capacity just below or equal to one of these wastes least.
  static Block* New(size_t capacity);

  uint8_t* data() { return reinterpret_cast<uint8_t*>(this + 1); }
  size_t capacity() const { return capacity_; }

  void Ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  // Drops one reference. The release half orders this holder's reads before the reuse of the memory; the
  // acquire half pairs with it in the thread that drops the last one.
  void Unref() {
    if (refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) Free(this);
  }
  // True when the caller's reference is the only one, so the bytes may be written again. Pairs with Unref's
  // release.
  bool Unique() const { return refs_.load(std::memory_order_acquire) == 1; }

  // Bytes of all blocks alive in the process with their headers, free lists excluded. Adds up over all
  // threads under a lock: for metrics, limits looked at now and then, and leak tests. Exact while no other
  // thread allocates.
  static size_t LiveBytes();
  // Gives back to the heap what this thread keeps for later, and tells MemoryBudget all it has not been told.
  static void TrimSpares();

 private:
  explicit Block(size_t capacity) : capacity_(capacity) {}
  static void Free(Block* block);

  std::atomic<uint32_t> refs_{1};
  size_t capacity_;
};

class Slice {
 public:
  Slice() = default;
  // Shares `block`: takes a reference of its own.
  Slice(Block* block, const uint8_t* data, size_t size) : block_(block), data_(data), size_(size) {
    if (block_) block_->Ref();
  }
  // A slice with a block of its own holding a copy.
  static Slice Copy(const void* data, size_t size);
  static Slice Copy(std::string_view text) { return Copy(text.data(), text.size()); }
  // A slice with a block of its own, which the caller fills before it shares the slice.
  static Slice Uninitialized(size_t size);
  // Bytes that live for ever, such as a string literal; no block.
  static Slice Static(std::string_view text) {
    Slice slice;
    slice.data_ = reinterpret_cast<const uint8_t*>(text.data());
    slice.size_ = text.size();
    return slice;
  }

  Slice(const Slice& other) : Slice(other.block_, other.data_, other.size_) {}
  Slice(Slice&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Slice& operator=(Slice other) noexcept {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Slice() {
    if (block_) block_->Unref();
  }

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

  // The part [offset, offset + length), sharing the block. The range must lie within the slice.
  Slice Sub(size_t offset, size_t length) const {
    SLUICE_DCHECK(offset <= size_ && length <= size_ - offset);
    return Slice(block_, data_ + offset, length);
  }
  // The same bytes for a consumer that keeps them for long: a copy where they are less than 1/16 of the block that they
  // would keep alive (a message of 300 bytes may lie in a read block of 256 KiB), else itself.
  Slice Unpinned() && {
    if (block_ != nullptr && size_ < block_->capacity() / 16) return Copy(data_, size_);
    return std::move(*this);
  }
  // Cuts off and returns the first `length` bytes.
  Slice TakeFront(size_t length) {
    Slice front = Sub(0, length);
    RemovePrefix(length);
    return front;
  }
  void RemovePrefix(size_t length) {
    SLUICE_DCHECK(length <= size_);
    data_ += length;
    size_ -= length;
  }
  // Makes the slice longer by bytes that follow it in its block and were written since. For BufferChain.
  void Extend(size_t length) { size_ += length; }

 private:
  friend class BorrowedSlice;
  Block* block_ = nullptr;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// A part of a Slice, to be passed to a function that reads it: it has no reference of its own, so it costs no atomic
// operation. A function that keeps the Slice copies it, and the copy counts. `from` must outlive it.
class BorrowedSlice {
 public:
  BorrowedSlice(const Slice& from, size_t offset, size_t length) {
    SLUICE_DCHECK(offset <= from.size_ && length <= from.size_ - offset);
    slice_.block_ = from.block_;
    slice_.data_ = from.data_ + offset;
    slice_.size_ = length;
  }
  ~BorrowedSlice() { slice_.block_ = nullptr; }
  BorrowedSlice(const BorrowedSlice&) = delete;
  BorrowedSlice& operator=(const BorrowedSlice&) = delete;

  const Slice& get() const { return slice_; }

 private:
  Slice slice_;
};

}  // namespace sluice::base
