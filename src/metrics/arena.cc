#include "metrics/arena.h"

#include "base/check.h"

namespace sluice::metrics {

std::atomic<uint64_t>* CellArena::Allocate(size_t count) {
  SLUICE_CHECK(count > 0 && count <= kRowCells);
  if (used_ + count > kRowCells) {
    constexpr size_t kLineCells = kLineBytes / sizeof(uint64_t);
    chunks_.push_back(std::make_unique<Line[]>(rows_ * kRowCells / kLineCells));
    used_ = 0;
  }
  std::atomic<uint64_t>* first = &chunks_.back()[0].cells[0] + used_;
  used_ += count;
  return first;
}

}  // namespace sluice::metrics
