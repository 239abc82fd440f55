// DoublyBufferedData (DBD): a value read on every call and written by hand a few times a day.
// docs/doubly-buffered-data.md
//
// Two instances of T; readers use the front, a writer changes the back, flips, waits until no reader can be in
// the old front, and changes that one too. Left-right (Ramalhete and Correia 2013) with one reader slot per
// worker:
//
//   reader of slot s                               writer, one at a time
//     p = parity                                     change instances[1 - front]
//     slots[s].in[p] += 1                            front = 1 - front
//       [store-load barrier]                           [store-load barrier]
//     read instances[front]                          wait until in[1 - parity] was 0 in every slot   (1)
//     slots[s].in[p] -= 1     (the same p)           parity = 1 - parity                             (2)
//                                                    wait until in[former parity] was 0 in every slot (3)
//                                                    change the old front
//
// Safe:    a reader in the old front raised its counter before it loaded front,
//          hence before the flip as the writer sees it; (1) and (3) together look at both counters after the flip,
//          so one of them waits for it. The age of the parity that the reader loaded does not matter.
// Live:    (1) waits for readers that loaded the parity before the last write;
//          (2) sends new ones to the counter that (3) does not look at. So a continuous stream of readers cannot
//          block a writer for ever.
// Barrier: the reader's add then load of front, against the writer's store of front then load of counters,
//          is store buffering.
//          With membarrier the writer pays for both and the reader's add is two plain instructions on its own
//          line (base/asymmetric_barrier.h); else all four are seq_cst and the add is a read-modify-write.
//
// Costs:   memory of two T; a writer waits for the longest read; a reader must not suspend.
//
// Thread safety: Read from any thread, with the slot that is the caller's; writers from any thread that may
// block, which a worker may not: a reader that the writer waits for may be queued behind it. Lifetime: no
// call may be under way at destruction. The usual T is a std::shared_ptr to an immutable snapshot, or a
// struct of a few.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <ranges>
#include <type_traits>
#include <utility>

#include "base/asymmetric_barrier.h"
#include "base/check.h"
#include "base/futex.h"
#include "concurrent/reader_thread.h"

namespace sluice::concurrent {

// The seam for tests: atomics, barrier and wait. A test replaces them to explore interleavings.
struct SystemSync {
  template <typename V>
  using Atomic = std::atomic<V>;
  using Mutex = std::mutex;
  static bool Asymmetric() { return base::AsymmetricBarrier::Available(); }
  static void LightBarrier() { base::AsymmetricBarrier::Light(); }
  static void HeavyBarrier() { base::AsymmetricBarrier::Heavy(); }
  // Looks a writer takes at a counter before it sleeps. A read is tens of nanoseconds; so is a look.
  static constexpr int kSpins = 200;
  static void Wait(const Atomic<uint32_t>& word, uint32_t seen) { base::FutexWait(word, seen); }
  static void Wake(const Atomic<uint32_t>& word) { base::FutexWake(word, 1); }
};

namespace dbd_internal {

template <typename R>
concept HasAwaitMembers = requires(R& r) {
  r.await_ready();
};
template <typename R>
concept HasMemberCoAwait = requires(R&& r) {
  static_cast<R&&>(r).operator co_await();
};
template <typename R>
concept HasFreeCoAwait = requires(R&& r) {
  operator co_await(static_cast<R&&>(r));
};
template <typename R>
concept Awaitable = HasAwaitMembers<R> || HasMemberCoAwait<R> || HasFreeCoAwait<R>;

// What certainly or probably points into T: references, pointers, and views such as string_view and span.
template <typename R>
concept Borrowed = std::is_reference_v<R> || std::is_pointer_v<R> ||
    (!std::is_void_v<R> && std::ranges::range<R> && std::ranges::borrowed_range<R>);

}  // namespace dbd_internal

template <typename T, typename Sync = SystemSync>
class DoublyBufferedData {
 public:
  // `slots`: one for each worker, by its index. Both instances start as `initial`.
  explicit DoublyBufferedData(size_t slots, T initial = T())
      : asymmetric_(Sync::Asymmetric()),
        slot_count_(slots),
        slots_(std::make_unique<Slot[]>(slots + 1)),
        instances_{initial, std::move(initial)} {}
  DoublyBufferedData(const DoublyBufferedData&) = delete;
  DoublyBufferedData& operator=(const DoublyBufferedData&) = delete;
  ~DoublyBufferedData() {
    for (size_t s = 0; s <= slot_count_; ++s) SLUICE_CHECK(Depth(slots_[s]) == 0);  // audit: no reader is inside
  }

  // The slot of every thread that is not a worker. Costs a read-modify-write on a shared line.
  size_t shared_slot() const { return slot_count_; }

  // fn(const T&), now, on this thread; returns what it returns, by value. Copy out a shared_ptr of what must
  // live longer. Slots below shared_slot() are for one thread each, at a time. Reads nest, but an inner one may see a
  // newer value. fn may throw.
  template <class Fn>
  auto Read(size_t slot, Fn&& fn) const {
    using R = std::invoke_result_t<Fn, const T&>;
    static_assert(!dbd_internal::Awaitable<std::remove_cvref_t<R>>,
                  "a reader must not suspend: it would hold every writer");
    static_assert(!dbd_internal::Borrowed<R>, "what fn returns outlives the read: return a value or a counted pointer");
    Section section(*this, slot);
    return std::forward<Fn>(fn)(instances_[section.front()]);
  }

  // fn(T& back) -> bool. False: nothing changes, and fn must have changed nothing. True: published; when this
  // returns no reader sees the old value. fn runs once per instance, so it must do the same twice. If the
  // first run throws, nothing is published and the exception passes on; once the value is public, the call
  // has succeeded.
  template <class Fn>
  bool Modify(Fn&& fn) {
    return Write([&](T& back, const T&) { return static_cast<bool>(fn(back)); },
                 [&](T& back, const T& front) {
                   bool again = static_cast<bool>(fn(back));
                   SLUICE_DCHECK(again);
                   DebugExpectEqual(back, front);
                 });
  }

  // fn(T& back, const T& front) -> bool, once; the other instance is copied. For functions that draw random
  // numbers, do I/O, or allocate what both instances must share.
  template <class Fn>
  bool ModifyFromFront(Fn&& fn) {
    return Write([&](T& back, const T& front) { return static_cast<bool>(fn(back, front)); },
                 [](T& back, const T& front) { back = front; });
  }

  // Replaces the value. The usual call: build aside, swap in.
  void Publish(T value) {
    Write(
        [&](T& back, const T&) {
          back = value;
          return true;
        },
        [&](T& back, const T&) { back = std::move(value); });
  }

 private:
  template <typename V>
  using Atomic = typename Sync::template Atomic<V>;

  // One cache line: a read writes no line that another worker reads or writes.
  struct alignas(64) Slot {
    // Readers inside, by the parity they came with. Written by the slot's thread alone (plain add where
    // asymmetric_), or by many for the shared slot (always read-modify-write); read by the writer.
    Atomic<uint32_t> in[2] = {0, 0};
    // Where on its thread's stack the latest read was: tells which thread is inside, for RefuseInsideRead. Written by
    // each read, since a slot may pass from thread to thread.
    Atomic<uint64_t> place{0};
  };

  // A read in progress. Remembers the counter it raised, so that it lowers that same one.
  class Section {
   public:
    Section(const DoublyBufferedData& data, size_t slot) : data_(data), slot_(data.slots_[slot]) {
      SLUICE_DCHECK(slot <= data.slot_count_);
      shared_ = slot == data.slot_count_;
      // relaxed: any value is safe, see "Safe" above.
      parity_ = data.parity_.load(std::memory_order_relaxed);
      Atomic<uint32_t>& in = slot_.in[parity_];
      if (shared_) [[unlikely]] {
        read_.data = &data;
        ReaderThread::Push(read_);
      } else {
        slot_.place.store(reinterpret_cast<uintptr_t>(this), std::memory_order_relaxed);
      }
      if (data.asymmetric_ && !shared_) {
        // Release: publishes place to a writer that sees this reader inside; pairs with RefuseInsideRead.
        in.store(in.load(std::memory_order_relaxed) + 1, std::memory_order_release);
        Sync::LightBarrier();  // pairs with Sync::HeavyBarrier in Barrier()
      } else {
        // seq_cst: this and the load of front below against the store of front and the loads in Drained().
        // With acquire-release both sides may read the old values: the reader the old front, the writer a
        // zero.
        in.fetch_add(1, std::memory_order_seq_cst);
        if (data.asymmetric_) Sync::LightBarrier();
      }
      // Acquire half: pairs with the store of front in Write, which publishes the instance's contents.
      front_ = data.front_.load(std::memory_order_seq_cst);
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

    ~Section() {
      Atomic<uint32_t>& in = slot_.in[parity_];
      uint32_t left;
      // Release: our reads of the instance come before the writer's changes; pairs with the load in
      // Drained().
      if (data_.asymmetric_ && !shared_) {
        left = in.load(std::memory_order_relaxed) - 1;
        in.store(left, std::memory_order_release);
        Sync::LightBarrier();
      } else {
        left = in.fetch_sub(1, std::memory_order_seq_cst) - 1;
        if (data_.asymmetric_) Sync::LightBarrier();
      }
      if (shared_) [[unlikely]]
        ReaderThread::Pop(read_);
      // The counter, then whether a writer sleeps: store-buffering again, with Drain's store of sleeper_, by
      // the same means. Only readers that the writer waits for wake it; new ones are on the other parity.
      if (data_.sleeper_.load(std::memory_order_seq_cst) == parity_ + 1 && left == 0) [[unlikely]]
        data_.WakeWriter();
    }

    uint32_t front() const { return front_; }

   private:
    const DoublyBufferedData& data_;
    Slot& slot_;
    SharedRead read_;
    uint32_t parity_;
    uint32_t front_;
    bool shared_;
  };

  static uint32_t Depth(const Slot& slot) {
    return slot.in[0].load(std::memory_order_relaxed) + slot.in[1].load(std::memory_order_relaxed);
  }

  // `first` changes the back or refuses; `second` makes the old front equal to the new one.
  template <class First, class Second>
  bool Write(First&& first, Second&& second) {
    RefuseInsideRead();
    std::lock_guard lock(writer_);
    WriterMark mark(*this);
    uint32_t front = front_.load(std::memory_order_relaxed);  // only writers store it, under the lock
    T& back = instances_[1 - front];
    if (stale_) {  // an earlier writer could not
      back = instances_[front];
      stale_ = false;
    }
    try {
      if (!first(back, std::as_const(instances_[front]))) {
        DebugExpectEqual(back, instances_[front]);
        return false;
      }
    } catch (...) {
      CopyOrStale(back, instances_[front]);
      throw;
    }
    // Publishes `back`: pairs with the load of front in Section. seq_cst where the barrier is none: see
    // there.
    front_.store(1 - front, std::memory_order_seq_cst);
    Barrier();
    uint32_t parity = parity_.load(std::memory_order_relaxed);
    Drain(1 - parity);
    parity_.store(1 - parity, std::memory_order_relaxed);
    Drain(parity);
    T& old = instances_[front];
    try {
      second(old, std::as_const(instances_[1 - front]));
    } catch (...) {  // the new value is public: that is success
      CopyOrStale(old, instances_[1 - front]);
    }
    return true;
  }

  // `to` may be half changed. Makes it equal to `from`, or leaves that to the next writer.
  void CopyOrStale(T& to, const T& from) {
    stale_ = true;
    try {
      to = from;
      stale_ = false;
    } catch (...) {
    }
  }

  void Barrier() const {
    if (asymmetric_) Sync::HeavyBarrier();
  }

  // Whether no slot has a reader of this parity. Each counter on its own must be seen at zero once after the
  // flip: a reader that comes later is in the new front. seq_cst where the barrier is none; the acquire half
  // pairs with the release of the reader's subtraction.
  bool Drained(uint32_t parity, size_t& slot) const {
    for (; slot <= slot_count_; ++slot) {
      if (slots_[slot].in[parity].load(std::memory_order_seq_cst) != 0) return false;
    }
    return true;
  }

  // Blocks until every counter of `parity` has been zero. Spins, then sleeps until a reader of that parity
  // leaves.
  void Drain(uint32_t parity) {
    size_t slot = 0;
    for (int spin = 0; spin <= Sync::kSpins; ++spin) {
      if (Drained(parity, slot)) return;
    }
    sleeper_.store(parity + 1, std::memory_order_seq_cst);
    Barrier();
    while (true) {
      uint32_t seen = wakes_.load(std::memory_order_acquire);  // before the look: a wake after it changes the word
      if (Drained(parity, slot)) break;
      Sync::Wait(wakes_, seen);
    }
    sleeper_.store(0, std::memory_order_relaxed);
  }

  // May come late, when the writer has gone on: then it costs the next sleeper one look.
  __attribute__((noinline)) void WakeWriter() const {
    wakes_.fetch_add(1, std::memory_order_release);
    Sync::Wake(wakes_);
  }

  // A write inside of a read of the same data by the same thread would wait for itself for ever.
  void RefuseInsideRead() const {
    SLUICE_CHECK(!ReaderThread::Reads(this));
    for (size_t s = 0; s < slot_count_; ++s) {
      const Slot& slot = slots_[s];
      // Acquire: a reader inside has stored its place before.
      if (slot.in[0].load(std::memory_order_acquire) + slot.in[1].load(std::memory_order_acquire) == 0) continue;
      SLUICE_CHECK(!ReaderThread::OnThisStack(slot.place.load(std::memory_order_relaxed)));
    }
    const uint64_t token = ReaderThread::Token();
    SLUICE_CHECK(writing_.load(std::memory_order_relaxed) != token);  // nor a write inside of a write
  }

  struct WriterMark {
    explicit WriterMark(DoublyBufferedData& data) : data(data) {
      data.writing_.store(ReaderThread::Token(), std::memory_order_relaxed);
    }
    ~WriterMark() { data.writing_.store(0, std::memory_order_relaxed); }
    DoublyBufferedData& data;
  };

  static void DebugExpectEqual(const T& a, const T& b) {
    if constexpr (std::equality_comparable<T>) SLUICE_DCHECK(a == b);
  }

  // Read by all, written by writers: one line, which stays shared in every cache between two writes.
  alignas(64) Atomic<uint32_t> front_{0};
  Atomic<uint32_t> parity_{0};
  Atomic<uint32_t> sleeper_{0};  // 1 + the parity a writer sleeps for; 0: none
  const bool asymmetric_;
  const size_t slot_count_;
  const std::unique_ptr<Slot[]> slots_;  // the last one is the shared slot
  // Written by the writer in the back, or in the old front once drained; read by readers in the front.
  T instances_[2];

  alignas(64) mutable Atomic<uint32_t> wakes_{0};  // futex word of a sleeping writer
  Atomic<uint64_t> writing_{0};                    // token of the thread that holds writer_; only compared with its own
  typename Sync::Mutex writer_;
  bool stale_ = false;  // under writer_: the back could not be made equal to the front
};

}  // namespace sluice::concurrent
