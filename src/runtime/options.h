// Options of the M:N scheduler. Parsed by config, with the ranges in option_table.h; documented in
// config/reference.yaml.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::runtime {

struct RuntimeOptions {
  // Worker threads. 0: one per core this process may run on.
  uint32_t workers = 0;
  // A worker that stays in one task for longer than this while work is queued is counted and logged once. 0:
  // no monitor.
  std::chrono::milliseconds blocking_threshold{10};
  // Helper threads for Block(fn): DNS and files.
  uint32_t blocking_threads = 4;
  bool operator==(const RuntimeOptions&) const = default;
};

}  // namespace sluice::runtime
