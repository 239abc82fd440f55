// CellArena: the memory of counters' and gauges' cells; one row of cells per slot, so that no two slots share a cache
// line.
//
//                cell 0   1   2  ...  kRowCells-1
//   slot 0     [   a   b   c  ...        ]      Each row is whole cache lines, written by one worker.
//   slot 1     [   a   b   c  ...        ]      A metric is one column; AddCounters has several, side by side.
//   ...
//   shared     [   a   b   c  ...        ]      Written by any thread, with atomic adds.
//
// When a chunk is full another is made; chunks never move and never end before the arena, so a metric's
// pointer stays good. Cost: (slots + 1) * 4 KiB a chunk, and the tail of a chunk that several did not fit into.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace sluice::metrics {

class CellArena {
 public:
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kRowCells = 512;

  // `rows`: slots, the shared one included.
  explicit CellArena(size_t rows) : rows_(rows) {}

  // `count` neighbouring columns, all zero: the address of their first cell in row 0; row i is i * kRowCells
  // further. Not thread-safe: the registry's mutex is held.
  std::atomic<uint64_t>* Allocate(size_t count);

 private:
  struct alignas(kLineBytes) Line {
    std::atomic<uint64_t> cells[kLineBytes / sizeof(uint64_t)] = {};
  };
  static_assert(kRowCells % (kLineBytes / sizeof(uint64_t)) == 0, "a row must end with its last line");
  static_assert(sizeof(Line) == kLineBytes);

  const size_t rows_;
  size_t used_ = kRowCells;  // columns of the last chunk
  std::vector<std::unique_ptr<Line[]>> chunks_;
};

}  // namespace sluice::metrics
