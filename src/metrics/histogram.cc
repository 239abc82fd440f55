// Histogram: its buckets, and the memory of each slot, made on first use.
//
// Buckets: for 2^e < v <= 2^(e+1) the range is cut into four equal parts; v - 1 makes the upper bound inclusive.
#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "metrics/arena.h"
#include "metrics/registry.h"

namespace sluice::metrics {
namespace {

constexpr unsigned kLowestBit = 10, kHighestBit = 40;
constexpr unsigned kSubBits = 2;  // 4 parts a power of two
constexpr uint64_t kLowest = uint64_t{1} << kLowestBit, kHighest = uint64_t{1} << kHighestBit;
static_assert(Histogram::kBuckets == ((kHighestBit - kLowestBit) << kSubBits) + 2);

}  // namespace

uint64_t Counter::Value() const {
  uint64_t sum = 0;
  for (size_t slot = 0; slot <= shared_slot_; ++slot) sum += Cell(slot)->load(std::memory_order_relaxed);
  return sum;
}

size_t Histogram::BucketOf(uint64_t value) {
  const uint64_t below = value - 1;
  if (below - kLowest >= kHighest - kLowest) [[unlikely]]
    return value <= kLowest ? 0 : kBuckets - 1;
  const unsigned exponent = static_cast<unsigned>(std::bit_width(below)) - 1;
  // The leading bit, which is in the shifted number too, stands for one power of two.
  return (exponent << kSubBits) + (below >> (exponent - kSubBits)) - (((kLowestBit + 1) << kSubBits) - 1);
}

uint64_t Histogram::UpperBound(size_t bucket) {
  SLUICE_CHECK(bucket < kBuckets);
  if (bucket == 0) return kLowest;
  if (bucket == kBuckets - 1) return UINT64_MAX;
  const size_t exponent = kLowestBit + ((bucket - 1) >> kSubBits);
  const uint64_t part = (bucket - 1) & ((1u << kSubBits) - 1);
  return (uint64_t{1} << exponent) + ((part + 1) << (exponent - kSubBits));
}

// Whole cache lines: neighbours on the heap are another slot's.
struct alignas(CellArena::kLineBytes) Histogram::Shard {
  std::array<std::atomic<uint64_t>, kBuckets> buckets{};
  std::atomic<uint64_t> sum{0};
  std::atomic<uint64_t> max{0};
};

Histogram::Histogram(size_t shared_slot, double scale)
    : shards_(std::make_unique<std::atomic<Shard*>[]>(shared_slot + 1)), shared_slot_(shared_slot), scale_(scale) {}

Histogram::~Histogram() {
  for (size_t slot = 0; slot <= shared_slot_; ++slot) delete shards_[slot].load(std::memory_order_relaxed);
}

// Release: its zeros are there for each thread that finds it. Of several threads of the shared slot one's is kept.
[[gnu::noinline]] Histogram::Shard& Histogram::MakeShard(size_t slot) {
  auto made = std::make_unique<Shard>();
  Shard* there = nullptr;
  if (!shards_[slot].compare_exchange_strong(there, made.get(), std::memory_order_release, std::memory_order_acquire))
    return *there;
  return *made.release();
}

[[gnu::noinline]] void Histogram::RaiseMax(Shard& shard, uint64_t value) {
  uint64_t max = shard.max.load(std::memory_order_relaxed);
  while (max < value && !shard.max.compare_exchange_weak(max, value, std::memory_order_relaxed)) {
  }
}

void Histogram::Add(const Snapshot& observed) {
  Shard* there = shards_[shared_slot_].load(std::memory_order_acquire);
  Shard& shard = there != nullptr ? *there : MakeShard(shared_slot_);
  for (size_t i = 0; i < kBuckets; ++i) shard.buckets[i].fetch_add(observed.buckets[i], std::memory_order_relaxed);
  shard.sum.fetch_add(observed.sum, std::memory_order_relaxed);
  uint64_t max = observed.max;
  // An older process does not tell its maximum: the bound of its highest bucket stands in.
  for (size_t i = 0; max == 0 && i < kBuckets; ++i) {
    if (observed.buckets[kBuckets - 1 - i] != 0) max = std::min(kHighest, UpperBound(kBuckets - 1 - i));
  }
  RaiseMax(shard, max);
}

void Histogram::Observe(size_t slot, uint64_t value) {
  Shard* there = shards_[slot].load(std::memory_order_acquire);
  Shard& shard = there != nullptr ? *there : MakeShard(slot);
  std::atomic<uint64_t>& bucket = shard.buckets[BucketOf(value)];
  if (slot == shared_slot_) {
    bucket.fetch_add(1, std::memory_order_relaxed);
    shard.sum.fetch_add(value, std::memory_order_relaxed);
  } else {
    bucket.store(bucket.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    shard.sum.store(shard.sum.load(std::memory_order_relaxed) + value, std::memory_order_relaxed);
  }
  if (value > shard.max.load(std::memory_order_relaxed)) [[unlikely]]
    RaiseMax(shard, value);
}

Histogram::Snapshot Histogram::Read() const {
  Snapshot snapshot;
  for (size_t slot = 0; slot <= shared_slot_; ++slot) {
    const Shard* shard = shards_[slot].load(std::memory_order_acquire);
    if (shard == nullptr) continue;
    for (size_t i = 0; i < kBuckets; ++i) snapshot.buckets[i] += shard->buckets[i].load(std::memory_order_relaxed);
    snapshot.sum += shard->sum.load(std::memory_order_relaxed);
    snapshot.max = std::max(snapshot.max, shard->max.load(std::memory_order_relaxed));
  }
  // The count is made from the same loads as the buckets, so the rendered _count always equals the +Inf bucket.
  for (uint64_t n : snapshot.buckets) snapshot.count += n;
  return snapshot;
}

void Histogram::Snapshot::Add(const Snapshot& other) {
  count += other.count;
  sum += other.sum;
  max = std::max(max, other.max);
  for (size_t i = 0; i < other.buckets.size(); ++i) buckets[i] += other.buckets[i];
}

uint64_t Histogram::Snapshot::Quantile(double q) const {
  if (count == 0) return 0;
  const double clamped = q < 0 ? 0 : (q > 1 ? 1 : q);
  // The smallest bucket that holds the observation of rank ceil(q * count), at least the first.
  const auto rank = static_cast<uint64_t>(std::ceil(clamped * static_cast<double>(count)));
  uint64_t seen = 0;
  for (size_t i = 0; i < buckets.size(); ++i) {
    seen += buckets[i];
    if (seen >= rank && seen > 0) return max == 0 ? UpperBound(i) : std::min(max, UpperBound(i));
  }
  return max == 0 ? UpperBound(buckets.size() - 1) : max;
}

}  // namespace sluice::metrics
