// Registry, Counter, Gauge, Histogram: written per worker without sharing a cache line, summed when read.
//
// Each metric has one cell per slot; slot i is written by worker i only (plain load, add, relaxed store), the
// last slot (Registry::shared_slot()) by any thread with an atomic add. Readers sum relaxed loads: a sum may
// be a moment old, never torn. All accesses are relaxed: a metric publishes nothing but itself. Metrics live
// as long as the registry; adding one takes a mutex.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::metrics {

using Labels = std::vector<std::pair<std::string, std::string>>;

// A counter's cells stand one in each slot's row, so a cache line holds cells of one slot only: see CellArena
// (arena.h).
class Counter {
 public:
  // Always inline: a call adds to a dozen, and each is five instructions.
  [[gnu::always_inline]] void Add(size_t slot, uint64_t n = 1) { AddTo(*Cell(slot), slot, n); }
  uint64_t Value() const;

 private:
  friend class Registry;
  friend class Histogram;
  [[gnu::always_inline]] void AddTo(std::atomic<uint64_t>& cell, size_t slot, uint64_t n) {
    if (slot == shared_slot_) {
      cell.fetch_add(n, std::memory_order_relaxed);
    } else {
      // One writer: no read-modify-write is needed, and none is paid for.
      cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  }
  std::atomic<uint64_t>* Cell(size_t slot) const { return cells_ + slot * stride_; }
  std::atomic<uint64_t>* cells_ = nullptr;
  size_t stride_ = 0;  // in cells, between two slots
  size_t shared_slot_ = 0;
};

// Goes up and down; the sum over slots is the value. One slot's part may be negative (a call that began on
// one worker and ended on another): the cells wrap, and so does their sum.
class Gauge {
 public:
  void Add(size_t slot, int64_t n) { counter_.Add(slot, static_cast<uint64_t>(n)); }
  int64_t Value() const { return static_cast<int64_t>(counter_.Value()); }

 private:
  friend class Registry;
  Counter counter_;
};

// Log-linear buckets over nanoseconds (or bytes): 4 per power of two from 2^10 to 2^40, so within 25%.
class Histogram {
 public:
  // The first holds everything up to 2^10, the last everything above 2^40.
  static constexpr size_t kBuckets = 4 * 30 + 2;
  void Observe(size_t slot, uint64_t value);
  struct Snapshot {
    uint64_t count = 0, sum = 0;
    std::vector<uint64_t> buckets;
    // The upper bound of the bucket where quantile q (0..1) lies; 0 without observations.
    uint64_t Quantile(double q) const;
  };
  Snapshot Read() const;
  // A value equal to a bound belongs below it, as Prometheus' `le` has it.
  static size_t BucketOf(uint64_t value);
  static uint64_t UpperBound(size_t bucket);

 private:
  friend class Registry;
  Counter cells_;  // kBuckets + 1 cells in a row a slot: buckets, then the sum
};

struct Sample {
  Labels labels;
  double value;
  std::string_view suffix = {};  // of the name: a histogram's _bucket, _sum and _count. Of static storage
};

class Registry {
 public:
  // Series of one name. Names of endpoints come from an RPC, and a series lives as long as the process: past
  // this many, new label values are counted together in one series whose label values are all "overflow".
  static constexpr size_t kSeriesPerNameMax = 10'000;

  // `slots`: the number of workers; one more is made for all other threads.
  explicit Registry(size_t slots);
  ~Registry();
  size_t shared_slot() const { return slots_; }

  // The metric of that name and labels, made on first use; the order of labels does not matter. Names and
  // label names as Prometheus has them; a name has one kind and help for ever (CHECKed).
  Counter* AddCounter(std::string_view name, std::string_view help, Labels labels = {});
  Gauge* AddGauge(std::string_view name, std::string_view help, Labels labels = {});
  // `scale`: what a unit is in the exported unit (1e-9 for nanoseconds shown as seconds).
  Histogram* AddHistogram(std::string_view name, std::string_view help, double scale, Labels labels = {});
  // Values computed when rendered; `kind` is "counter", "gauge" or "histogram". `fn` may be called from any thread, and
  // is called without any lock of the registry's; several may be added under one name. A series that `fn` does not give
  // any more is gone.
  void AddCallback(std::string_view name, std::string_view help, std::string_view kind,
                   std::function<std::vector<Sample>()> fn);

  // Prometheus text exposition format 0.0.4, names in order.
  std::string RenderPrometheus() const;

 private:
  struct Impl;
  Counter MakeCells(size_t cells);
  size_t slots_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::metrics
