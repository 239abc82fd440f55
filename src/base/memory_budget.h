// MemoryBudget: how much memory peers make this process hold, and whether that is too much.
//
// What is counted: blocks (slice.h: what was read and is still used, DATA that waits, output, kept requests, messages
// of cached responses), the chunks of header lists, streams, fields in HPACK tables, frames and header blocks that have
// not come whole, and the frame pool (calls and their coroutines). Counted where it is taken from the heap and given
// back, free lists included: the path of a call, which lives on those, pays nothing. What is not, and how much that may
// be, says docs/configuration.md, "How much memory".
//
// Each thread tells the sum in steps of 64 KiB, so the sum is off by at most that for each thread and kind of memory.
//
// Levels, by shares of the limit. The way down is lower than the way up, so that they do not flutter:
//            from   until below
//   kTight   6/8    5/8
//   kFull    7/8    6/8
//   kOver    8/8    7/8
// What follows from a level is its readers' business: proxy/downstream/overload.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace sluice::base {

enum class MemoryLevel : uint8_t { kFree, kTight, kFull, kOver };

// The process's one. Thread safety: all functions from any thread.
class MemoryBudget {
 public:
  static constexpr int64_t kStepBytes = 64 * 1024;

  // 0: no limit, the level is always kFree.
  static void SetLimit(int64_t bytes);
  static int64_t limit() { return limit_.load(std::memory_order_relaxed); }
  static int64_t held() { return held_.load(std::memory_order_relaxed); }
  static MemoryLevel level() { return level_.load(std::memory_order_relaxed); }
  // Below this it is kFree, whatever it was.
  static int64_t FreeMark() { return limit() / 8 * 5; }

  // Takes `bytes` (negative: given back) into the sum, and sets the level.
  static void Add(int64_t bytes);
  // Sets the level anew: two threads that add at once may leave that of the first.
  static void Refresh();

  // One thread's part that the sum has not heard of. Trivially destructible; Flush when the thread ends.
  struct Share {
    int64_t unreported = 0;
    void Count(int64_t bytes) {
      unreported += bytes;
      if (unreported >= kStepBytes || unreported <= -kStepBytes) Flush();
    }
    void Flush() {
      MemoryBudget::Add(unreported);
      unreported = 0;
    }
  };

 private:
  static constexpr size_t kCacheLine = 64;
  // level_ is read at every socket read and rarely written, so it does not share a line with held_, which all write.
  alignas(kCacheLine) static inline std::atomic<int64_t> held_{0};
  alignas(kCacheLine) static inline std::atomic<MemoryLevel> level_{MemoryLevel::kFree};
  static inline std::atomic<int64_t> limit_{0};
};

// One holder's memory, told to the sum at once: an atomic operation for each change, so not for the path of a call.
class MemoryCharge {
 public:
  MemoryCharge() = default;
  MemoryCharge(const MemoryCharge&) = delete;
  MemoryCharge& operator=(const MemoryCharge&) = delete;
  ~MemoryCharge() { Set(0); }

  // The holder has `bytes` now.
  void Set(size_t bytes) {
    if (bytes != bytes_) MemoryBudget::Add(static_cast<int64_t>(bytes) - static_cast<int64_t>(bytes_));
    bytes_ = bytes;
  }

 private:
  size_t bytes_ = 0;
};

}  // namespace sluice::base
