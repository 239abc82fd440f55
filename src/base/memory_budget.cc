#include "base/memory_budget.h"

namespace sluice::base {
namespace {

MemoryLevel Next(MemoryLevel now, int64_t held, int64_t limit) {
  if (limit == 0) return MemoryLevel::kFree;
  for (int level = 3; level > 0; --level) {
    const int eighths = level <= static_cast<int>(now) ? level + 4 : level + 5;
    if (held >= limit / 8 * eighths) return static_cast<MemoryLevel>(level);
  }
  return MemoryLevel::kFree;
}

}  // namespace

void MemoryBudget::SetLimit(int64_t bytes) {
  limit_.store(bytes, std::memory_order_relaxed);
  Refresh();
}

void MemoryBudget::Add(int64_t bytes) {
  held_.fetch_add(bytes, std::memory_order_relaxed);
  Refresh();
}

// Relaxed throughout: a level is advice; the code that acts on one asks again.
void MemoryBudget::Refresh() {
  const MemoryLevel now = level();
  const MemoryLevel next = Next(now, held(), limit());
  if (next != now) level_.store(next, std::memory_order_relaxed);
}

}  // namespace sluice::base
