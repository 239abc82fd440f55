// RetryBudget: bounds what retries add to the load of a cluster (Finagle's RetryBudget, 2016).
//
// In each window of ten seconds, retries <= ratio x calls that succeeded + 10 x min_per_second. Success is what earns,
// so that where all backends fail only min_per_second is left. A retry takes its credit when it is decided on and holds
// it while it is in back-off; credits older than ten seconds are forgotten on both sides.
//
// Retries of calls that a backend refused unprocessed have an account of their own, with a credit for each success and
// 3 a second at least: a refusal costs a backend one HEADERS frame, and half of the endpoints may refuse all calls
// while they leave. A call that found no connection needs no credit, because nothing of it reaches a backend, and
// connects are bounded by each pool's back-off.
//
// Thread safety: CountOk on worker `worker`, its own cell only, without a read-modify-write. The others on any thread,
// under a mutex that only retries take.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "base/clock.h"
#include "upstream/options.h"

namespace sluice::upstream {

class RetryBudget {
 public:
  enum class Account : uint8_t {
    kRepeated,     // may have been processed; hedges too
    kUnprocessed,  // a backend refused it
  };
  static constexpr uint32_t kSeconds = 10;

  explicit RetryBudget(uint32_t workers) : cells_(workers) {}

  // A call to the cluster succeeded. `now`: of the worker's turn.
  void CountOk(uint32_t worker, base::TimePoint now) {
    Cell& cell = cells_[worker];
    if (now >= cell.ends) [[unlikely]]
      NextSecond(cell, now);
    std::atomic<uint64_t>& second = cell.seconds[cell.at];
    second.store(second.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  // Takes `cost` credits, or none: false.
  bool Withdraw(const RetryBudgetOptions& options, Account account, uint32_t cost, base::TimePoint now);
  // What is left of an account's credits, 0 to 1; 0 where it never has any.
  double Left(const RetryBudgetOptions& options, Account account, base::TimePoint now);

 private:
  // A second and what was counted in it: (second << 32) + count, so that both are read at once.
  static constexpr uint32_t kSlots = 16;  // more than are looked at: one being written is not among them
  using Seconds = std::array<std::atomic<uint64_t>, kSlots>;
  struct alignas(64) Cell {
    base::TimePoint ends = base::TimePoint::min();  // of the second counted now
    uint32_t at = 0;                                // its place
    Seconds seconds{};
  };
  struct Credits {
    double spent, allowed;
  };

  static uint32_t SecondOf(base::TimePoint now);
  static uint64_t SumOf(const Seconds& seconds, uint32_t now);
  static void NextSecond(Cell& cell, base::TimePoint now);
  Credits Look(const RetryBudgetOptions& options, Account account, uint32_t now) const;

  std::vector<Cell> cells_;         // of successes; each worker reads where its cell is
  alignas(64) std::mutex mutex_;    // what retries write is not beside it
  std::array<Seconds, 2> spent_{};  // by Account. Under mutex_
};

}  // namespace sluice::upstream
