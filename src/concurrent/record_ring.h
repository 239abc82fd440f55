// RecordRing: records of any size from one thread to one other, through memory that is made once.
//
//   buffer    [ free | size record | size record | pad | free ]          positions count bytes for ever, mod capacity
//                    ^ head_ (the reader's)            ^ tail_ (the writer's)
//
// Begin: room for one record in one piece; where the rest of the buffer is too short for it, that rest is padding.
// End:   one store of tail_ publishes the record, and its padding with it.
// Take:  the oldest record, read where it lies; Free gives back all that was taken, with one store of head_.
//
// A record for which there is no room is dropped and counted: the writer never waits. Each side reads the other's
// position only where its copy of it no longer suffices, so a record costs no line that both write.
//
// Wakes: the reader sleeps by its own clock. It names how many bytes may gather until it is to be woken (WakeAfter),
// and End says when that is so; how it is woken is the caller's. Before it sleeps without a bound it asks for any
// record (WakeAfter(1)), passes RecordRingSync::HeavyBarrier() once for all its rings, and sleeps only if each is
// Empty():
//
//   writer  store tail_ | light barrier | load wake_at_          reader  store wake_at_ | heavy barrier | load tail_
//
// Store buffering (base/asymmetric_barrier.h): at least one of them sees the other, so no record waits for the next
// one. Where that barrier is not to be had, all four are seq_cst.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/asymmetric_barrier.h"
#include "base/check.h"

namespace sluice::concurrent {

struct RecordRingSync {
  template <typename T>
  using Atomic = std::atomic<T>;
  static bool Asymmetric() { return base::AsymmetricBarrier::Available(); }
  static void LightBarrier() { base::AsymmetricBarrier::Light(); }
  static void HeavyBarrier() {
    if (Asymmetric()) base::AsymmetricBarrier::Heavy();
  }
};

// `Sync`: the seam for tests. Thread safety: Begin and End on one thread at a time, the reader's functions on another.
template <typename Sync = RecordRingSync>
class BasicRecordRing {
 public:
  static constexpr size_t kAlign = 8;  // of records
  static constexpr size_t kBytesMin = 64;

  // `bytes`: a power of two, at least kBytesMin. Its pages are the system's until they are written to.
  explicit BasicRecordRing(size_t bytes)
      : capacity_(bytes),
        asymmetric_(Sync::Asymmetric()),
        buffer_(std::make_unique_for_overwrite<Word[]>(bytes / kAlign)) {
    SLUICE_CHECK(bytes >= kBytesMin && (bytes & (bytes - 1)) == 0);
    wake_at_.store(bytes, std::memory_order_relaxed);
  }
  BasicRecordRing(const BasicRecordRing&) = delete;
  BasicRecordRing& operator=(const BasicRecordRing&) = delete;

  // A record up to this has room in an empty ring wherever it falls; for a larger one there may never be any.
  size_t record_bytes_max() const { return capacity_ / 2 - sizeof(Head); }

  // --- The writer ---

  // Room for a record of `bytes`, aligned to kAlign; End publishes it, another Begin instead takes its place. Null:
  // there is none, and the record is counted as dropped.
  uint8_t* Begin(size_t bytes) {
    const size_t need = Need(bytes);
    const size_t place = tail_here_ & (capacity_ - 1);
    const size_t to_end = capacity_ - place;
    const size_t padding = need > to_end ? to_end : 0;
    if (tail_here_ + padding + need - head_seen_ > capacity_) {
      // Acquire: what the reader has freed it has read; pairs with the release in Free.
      head_seen_ = head_.load(std::memory_order_acquire);
      if (tail_here_ + padding + need - head_seen_ > capacity_) {
        // One writer; the count publishes nothing but itself.
        dropped_.store(dropped_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        return nullptr;
      }
    }
    if (padding > 0) Put(place, kPadding);
    const size_t at = padding > 0 ? 0 : place;
    Put(at, static_cast<uint32_t>(bytes));
    next_ = tail_here_ + padding + need;
    return Bytes(at + sizeof(Head));
  }

  // Publishes what Begin has given room for. True: the reader is to be woken.
  bool End() {
    tail_here_ = next_;
    if (asymmetric_) {
      // Release: the record's bytes, pairs with the acquire in Take. The barrier: see the top.
      tail_.store(tail_here_, std::memory_order_release);
      Sync::LightBarrier();
      return tail_here_ >= wake_at_.load(std::memory_order_relaxed);
    }
    tail_.store(tail_here_, std::memory_order_seq_cst);
    return tail_here_ >= wake_at_.load(std::memory_order_seq_cst);
  }

  // --- Any thread ---

  // Records for which there was no room.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

  // --- The reader ---

  // Calls fn(std::span<const uint8_t>) with the oldest record that has not been taken. False: there is none.
  template <typename Fn>
  bool Take(Fn&& fn) {
    if (read_ == tail_seen_) {
      tail_seen_ = tail_.load(std::memory_order_acquire);  // pairs with End
      if (read_ == tail_seen_) return false;
    }
    uint32_t size = SizeAt(read_ & (capacity_ - 1));
    if (size == kPadding) {  // the record that it made room for was published with it
      read_ += capacity_ - (read_ & (capacity_ - 1));
      size = SizeAt(0);
    }
    fn(std::span<const uint8_t>(Bytes((read_ & (capacity_ - 1)) + sizeof(Head)), size));
    read_ += Need(size);
    return true;
  }
  // What was taken may be written over from here on.
  void Free() { head_.store(read_, std::memory_order_release); }  // pairs with the acquire in Begin
  // End says true from when `bytes` (> 0) or more have gathered beyond what was taken.
  void WakeAfter(uint64_t bytes) {
    // seq_cst: the reader's half of the pair at the top, where there is no heavy barrier.
    wake_at_.store(read_ + bytes, std::memory_order_seq_cst);
  }
  // Whether all was taken; after a heavy barrier it misses no record that was not told of.
  bool Empty() const { return tail_.load(std::memory_order_seq_cst) == read_; }
  size_t capacity() const { return capacity_; }

 private:
  using Word = uint64_t;
  struct Head {
    uint32_t size;  // of the record, or kPadding
    uint32_t unused;
  };
  static_assert(sizeof(Head) == kAlign);
  static constexpr uint32_t kPadding = UINT32_MAX;

  static size_t Need(size_t bytes) { return sizeof(Head) + ((bytes + kAlign - 1) & ~(kAlign - 1)); }
  uint8_t* Bytes(size_t place) const { return reinterpret_cast<uint8_t*>(buffer_.get()) + place; }
  void Put(size_t place, uint32_t size) { std::memcpy(Bytes(place), &size, sizeof(size)); }
  uint32_t SizeAt(size_t place) const {
    uint32_t size;
    std::memcpy(&size, Bytes(place), sizeof(size));
    return size;
  }

  const size_t capacity_;
  const bool asymmetric_;
  const std::unique_ptr<Word[]> buffer_;
  // Written by the writer.
  alignas(64) typename Sync::template Atomic<uint64_t> tail_{0};
  typename Sync::template Atomic<uint64_t> dropped_{0};
  uint64_t tail_here_ = 0;  // tail_
  uint64_t next_ = 0;       // what End makes of it
  uint64_t head_seen_ = 0;  // head_, as last read
  // Written by the reader.
  alignas(64) typename Sync::template Atomic<uint64_t> head_{0};
  typename Sync::template Atomic<uint64_t> wake_at_{0};
  uint64_t read_ = 0;
  uint64_t tail_seen_ = 0;  // tail_, as last read
};

using RecordRing = BasicRecordRing<>;

}  // namespace sluice::concurrent
