// Registry, Counter, Gauge, Histogram: written per worker without sharing a cache line, summed when read.
//
// Each metric has one cell per slot; slot i is written by worker i only (plain load, add, relaxed store), the
// last slot (Registry::shared_slot()) by any thread with an atomic add. Readers sum relaxed loads: a sum may
// be a moment old, never torn. All accesses are relaxed: a metric publishes nothing but itself. Metrics live
// as long as the registry; adding one takes a mutex.
//
// A series that nothing has counted in costs no line of /metrics where it was added so (Show): with 1000 clusters most
// series are of that kind.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
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
  Counter() = default;
  // Always inline: a call adds to a dozen, and each is five instructions.
  [[gnu::always_inline]] void Add(size_t slot, uint64_t n = 1) { AddTo(*Cell(slot), slot, n); }
  uint64_t Value() const;

 private:
  friend class Registry;
  [[gnu::always_inline]] void AddTo(std::atomic<uint64_t>& cell, size_t slot, uint64_t n) {
    if (slot == shared_slot_) {
      cell.fetch_add(n, std::memory_order_relaxed);
    } else {
      // One writer: no read-modify-write is needed, and none is paid for.
      cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
    }
  }
  Counter(std::atomic<uint64_t>* cells, size_t stride, size_t shared_slot)
      : cells_(cells), stride_(stride), shared_slot_(shared_slot) {}
  std::atomic<uint64_t>* Cell(size_t slot) const { return cells_ + slot * stride_; }
  std::atomic<uint64_t>* cells_ = nullptr;
  size_t stride_ = 0;  // in cells, between two slots
  size_t shared_slot_ = 0;
};

// Goes up and down; the sum over slots is the value. One slot's part may be negative (a call that began on
// one worker and ended on another): the cells wrap, and so does their sum.
class Gauge {
 public:
  Gauge() = default;
  void Add(size_t slot, int64_t n) { counter_.Add(slot, static_cast<uint64_t>(n)); }
  int64_t Value() const { return static_cast<int64_t>(counter_.Value()); }

 private:
  friend class Registry;
  explicit Gauge(Counter counter) : counter_(counter) {}
  Counter counter_;
};

// Log-linear buckets over nanoseconds (or bytes): 4 per power of two from 2^10 to 2^40, so within 25%.
//
// The buckets of a slot are made when the slot observes for the first time, by the thread that does: most histograms of
// a large configuration never observe, and no thread touches memory that another one writes.
class Histogram {
 public:
  // The first holds everything up to 2^10, the last everything above 2^40.
  static constexpr size_t kBuckets = 4 * 30 + 2;
  Histogram(size_t shared_slot, double scale);
  ~Histogram();
  Histogram(const Histogram&) = delete;
  Histogram& operator=(const Histogram&) = delete;

  void Observe(size_t slot, uint64_t value);
  struct Snapshot {
    uint64_t count = 0, sum = 0;
    std::array<uint64_t, kBuckets> buckets{};
    uint64_t max = 0;  // the largest of all values; 0: not known
    // The upper bound of the bucket where quantile q (0..1) lies, and never above `max`; 0 without observations.
    uint64_t Quantile(double q) const;
    void Add(const Snapshot& other);
  };
  Snapshot Read() const;
  // What another histogram of the same scale has observed; in the shared slot. Its count is that of its buckets.
  void Add(const Snapshot& observed);
  // What a unit is in the exported unit.
  double scale() const { return scale_; }
  // A value equal to a bound belongs below it, as Prometheus' `le` has it.
  static size_t BucketOf(uint64_t value);
  static uint64_t UpperBound(size_t bucket);

 private:
  struct Shard;
  Shard& MakeShard(size_t slot);
  static void RaiseMax(Shard& shard, uint64_t value);
  const std::unique_ptr<std::atomic<Shard*>[]> shards_;  // owned; by slot, null until the slot's first observation
  const size_t shared_slot_;
  const double scale_;
};

struct Sample {
  Labels labels;
  double value;
  std::string_view suffix = {};  // of the name: a histogram's _bucket, _sum and _count. Of static storage
};

// Which series have a line though nothing has counted in them.
enum class Show : uint8_t {
  kTouched,  // none: of an object of which there may be thousands
  kFirst,    // of AddCounters: that of the first value, so that there is a zero to begin with
  kAlways,
};

// Where a collector puts its samples: they become text at once.
class Samples {
 public:
  struct Label {
    std::string_view name, value;
  };
  // The labels stand in the text in this order. `suffix`: as in Sample.
  void Add(std::initializer_list<Label> labels, double value, std::string_view suffix = {});
  // Also what nothing has counted in is asked for.
  bool all() const { return all_; }

 private:
  friend class Registry;
  Samples(std::string& out, std::string_view name, bool all) : out_(out), name_(name), all_(all) {}
  void Append(const Sample& sample);
  std::string& out_;
  const std::string_view name_;
  const bool all_;
};

// What a series has counted, for another process that counts on (docs/handover.md). Gauges are not told.
struct Counted {
  enum class Kind : uint8_t {
    kCounter,
    kHistogram,
    kLine,  // of a collector of counters or histograms
  };
  Kind kind = Kind::kCounter;
  std::string name;
  std::string
      labels;      // FormatLabels; of AddCounters without the value of `by`; kLine: all of the line before its value
  std::string by;  // of AddCounters: the value of that label
  uint64_t count = 0;
  Histogram::Snapshot observed{};
  double line = 0;
};

class Registry {
 public:
  // Series of one name; those that AddCounters makes together count as one. Names of endpoints come from an RPC, and a
  // series lives as long as the process: past this many, new label values are counted together in one series whose
  // label values are all "overflow".
  static constexpr size_t kSeriesPerNameMax = 10'000;

  // `slots`: the number of workers; one more is made for all other threads.
  explicit Registry(size_t slots);
  ~Registry();
  size_t shared_slot() const { return slots_; }

  // The metric of that name and labels, made on first use; the order of labels does not matter. Names and
  // label names as Prometheus has them; a name has one kind and help for ever (CHECKed).
  Counter* AddCounter(std::string_view name, std::string_view help, Labels labels = {}, Show show = Show::kAlways);
  Gauge* AddGauge(std::string_view name, std::string_view help, Labels labels = {}, Show show = Show::kAlways);
  // `scale`: what a unit is in the exported unit (1e-9 for nanoseconds shown as seconds).
  Histogram* AddHistogram(std::string_view name, std::string_view help, double scale, Labels labels = {},
                          Show show = Show::kAlways);
  // Counters side by side that differ in the label `by` only: one for each of `values`, in their order. All of a name
  // have the same `by` and `values` (CHECKed). AddCounter with one of the values gives the one of these.
  std::span<Counter> AddCounters(std::string_view name, std::string_view help, Labels labels, std::string_view by,
                                 std::span<const std::string_view> values, Show show);
  // Values computed when rendered; `kind` is "counter", "gauge" or "histogram". `fn` may be called from any thread, and
  // is called without any lock of the registry's; several may be added under one name. A series that `fn` does not give
  // any more is gone.
  void AddCallback(std::string_view name, std::string_view help, std::string_view kind,
                   std::function<std::vector<Sample>()> fn);

  // The same for many samples: `fn` writes each of them as text, without memory of its own.
  void AddCollector(std::string_view name, std::string_view help, std::string_view kind,
                    std::function<void(Samples&)> fn);

  // Prometheus text exposition format 0.0.4, names in order; also names without a series have their two lines.
  // `least`: kAlways has every series there is, also those that were added to be hidden until they are touched. The
  // mutex is held for kBatch series at a time, so that no thread that adds one waits for the whole.
  std::string RenderPrometheus(Show least = Show::kTouched) const;
  static constexpr size_t kBatch = 256;

  // All that is not zero.
  std::vector<Counted> Counts() const;
  // Adds what another process has counted. What belongs to no series that is there waits for one, at most kWaitingMax.
  void AddCounts(const Counted& counted);
  static constexpr size_t kWaitingMax = 200'000;

 private:
  struct Impl;
  size_t slots_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::metrics
