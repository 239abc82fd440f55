// StreamTable: live streams by id(). A pointer a slot, no more: a look-up reads the stream that it finds, which is
// wanted next anyway. Open addressing with linear probing. Ids come in sequence: multiplied by the golden ratio (Knuth,
// TAOCP 3, 6.4) they lie spread out, so that a look-up hits at once and Erase finds a free slot next to the gap. (The
// id itself as the hash would put a hundred open streams side by side, and each Erase would walk to their end.) A peer
// that aims for collisions makes a look-up walk at most the streams it may have open
// (SessionOptions::concurrent_streams_max).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/check.h"

namespace sluice::http2 {

// T: has uint32_t id() const, which does not change while it is in the table.
template <typename T>
class StreamTable {
 public:
  size_t size() const { return size_; }

  T* Find(uint32_t id) const {
    if (size_ == 0) return nullptr;
    for (uint32_t i = Home(id);; i = (i + 1) & mask_) {
      T* const stream = slots_[i];
      if (stream == nullptr || stream->id() == id) return stream;
    }
  }
  // None with its id is in the table.
  void Insert(T* stream) {
    if ((size_ + 1) * 2 > capacity()) Grow();
    uint32_t i = Home(stream->id());
    while (slots_[i] != nullptr) i = (i + 1) & mask_;
    slots_[i] = stream;
    ++size_;
  }
  // `id` is in the table. Closes the gap by moving back what probed past it (Knuth, TAOCP 3, 6.4, algorithm
  // R).
  void Erase(uint32_t id) {
    uint32_t gap = Home(id);
    for (;; gap = (gap + 1) & mask_) {
      SLUICE_DCHECK(slots_[gap] != nullptr);
      if (slots_[gap]->id() == id) break;
    }
    for (uint32_t i = (gap + 1) & mask_; slots_[i] != nullptr; i = (i + 1) & mask_) {
      if (((i - Home(slots_[i]->id())) & mask_) >= ((i - gap) & mask_)) {
        slots_[gap] = slots_[i];
        gap = i;
      }
    }
    slots_[gap] = nullptr;
    if (--size_ == 0 && capacity() > kKeptSlots) *this = StreamTable();
  }
  // fn(T&) for each; fn must not change the table.
  template <typename Fn>
  void ForEach(Fn&& fn) const {
    for (size_t i = 0; i < capacity(); ++i) {
      if (slots_[i] != nullptr) fn(*slots_[i]);
    }
  }

 private:
  static constexpr size_t kKeptSlots = 256;  // an idle connection keeps at most 2 KiB here

  uint32_t Home(uint32_t id) const { return (id * 0x9e3779b1u) >> shift_; }
  size_t capacity() const { return slots_ ? size_t{mask_} + 1 : 0; }
  void Grow() {
    StreamTable larger;
    size_t slots = slots_ ? capacity() * 2 : 8;
    larger.slots_ = std::make_unique<T*[]>(slots);
    larger.mask_ = static_cast<uint32_t>(slots - 1);
    larger.shift_ = 32 - std::countr_zero(slots);
    for (size_t i = 0; i < capacity(); ++i) {
      if (slots_[i] != nullptr) larger.Insert(slots_[i]);
    }
    *this = std::move(larger);
  }

  std::unique_ptr<T*[]> slots_;  // null: free
  uint32_t mask_ = 0;
  int shift_ = 0;
  size_t size_ = 0;
};

}  // namespace sluice::http2
