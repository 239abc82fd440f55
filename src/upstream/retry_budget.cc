#include "upstream/retry_budget.h"

#include <algorithm>

namespace sluice::upstream {

uint32_t RetryBudget::SecondOf(base::TimePoint now) {
  return static_cast<uint32_t>(std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count());
}

uint64_t RetryBudget::SumOf(const Seconds& seconds, uint32_t now) {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& slot : seconds) {
    const uint64_t value = slot.load(std::memory_order_relaxed);
    // Another worker's turn may have begun later: its second may be ahead of ours.
    const auto age = static_cast<int32_t>(now - static_cast<uint32_t>(value >> 32));
    if (age < static_cast<int32_t>(kSeconds) && age > -static_cast<int32_t>(kSeconds)) sum += value & UINT32_MAX;
  }
  return sum;
}

void RetryBudget::NextSecond(Cell& cell, base::TimePoint now) {
  const uint32_t second = SecondOf(now);
  cell.ends =
      base::TimePoint(std::chrono::floor<std::chrono::seconds>(now.time_since_epoch())) + std::chrono::seconds(1);
  cell.at = second % kSlots;
  cell.seconds[cell.at].store(uint64_t{second} << 32, std::memory_order_relaxed);
}

RetryBudget::Credits RetryBudget::Look(const RetryBudgetOptions& options, Account account, uint32_t now) const {
  uint64_t succeeded = 0;
  for (const Cell& cell : cells_) succeeded += SumOf(cell.seconds, now);
  double ratio = options.ratio, reserve = options.min_per_second;
  if (account == Account::kUnprocessed) {
    ratio = std::max(ratio, 1.0);
    reserve = std::max<double>(reserve, RetryBudgetOptions().min_per_second);
  }
  return {static_cast<double>(SumOf(spent_[static_cast<size_t>(account)], now)),
          ratio * static_cast<double>(succeeded) + reserve * kSeconds};
}

bool RetryBudget::Withdraw(const RetryBudgetOptions& options, Account account, uint32_t cost, base::TimePoint now) {
  const uint32_t second = SecondOf(now);
  std::lock_guard lock(mutex_);
  const Credits credits = Look(options, account, second);
  if (credits.spent + cost > credits.allowed) return false;
  std::atomic<uint64_t>& slot = spent_[static_cast<size_t>(account)][second % kSlots];
  const uint64_t before = slot.load(std::memory_order_relaxed);
  slot.store((before >> 32 == second ? before : uint64_t{second} << 32) + cost, std::memory_order_relaxed);
  return true;
}

double RetryBudget::Left(const RetryBudgetOptions& options, Account account, base::TimePoint now) {
  std::lock_guard lock(mutex_);
  const Credits credits = Look(options, account, SecondOf(now));
  return credits.allowed <= 0 ? 0 : std::max(0.0, 1 - credits.spent / credits.allowed);
}

}  // namespace sluice::upstream
