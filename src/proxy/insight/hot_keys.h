// HotKeys: which keys of hash_by come most, of each cluster, by samples of its calls.
//
//   worker 0: 1 of kGap calls --> cluster -> now [SpaceSaving] before [SpaceSaving] --+
//   worker 1: ...                                                                    --+-- Read: merged
//
// After kPeriod `now` becomes `before`, so what is read covers one to two periods and forgets what is over. A worker
// that finds its summaries being read lets the sample go: it never waits. Memory: at most kClustersMax clusters of a
// worker, each with two summaries of kCounters keys; later clusters are not sampled.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "proxy/insight/space_saving.h"
#include "proxy/options.h"

namespace sluice::proxy {

class HotKeys {
 public:
  static constexpr uint64_t kGap = 64;  // calls for one sample, on average
  static constexpr size_t kCounters = 64;
  static constexpr size_t kClustersMax = 64;  // of a worker
  static constexpr base::Nanos kPeriod = std::chrono::seconds(60);

  HotKeys(InsightOptions::HotKeys mode, uint32_t workers);

  bool on() const { return mode_ != InsightOptions::HotKeys::kOff; }
  // The keys' texts are not kept; TagOf stands for them.
  bool hidden() const { return mode_ == InsightOptions::HotKeys::kHidden; }
  // A name for a key that says nothing of it, and is the same as long as the process.
  static std::string TagOf(uint64_t key);

  // --- The worker ---

  // Calls until the next sample: random, so that a pattern in the calls is not one in the samples.
  static uint32_t NextGap(base::Random& random) { return static_cast<uint32_t>(1 + random.Below(2 * kGap - 1)); }
  // `key`: the text's hash on the ring.
  void Add(std::string_view cluster, uint64_t key, std::string_view text, base::TimePoint now, uint32_t worker);

  // --- Any thread ---

  struct Seen {
    std::string cluster;
    KeySummary keys;
    base::Nanos span{0};  // since the oldest sample's period began
  };
  // Each cluster that has samples, by name.
  std::vector<Seen> Read(base::TimePoint now) const;

 private:
  struct OfCluster {
    std::string cluster;
    SpaceSaving now{kCounters}, before{kCounters};
    base::TimePoint began{};
  };
  struct alignas(64) PerWorker {
    std::mutex mutex;  // the worker only tries
    std::vector<std::unique_ptr<OfCluster>> clusters;
  };
  static OfCluster* Find(PerWorker& mine, std::string_view cluster, base::TimePoint now);

  const InsightOptions::HotKeys mode_;
  std::vector<std::unique_ptr<PerWorker>> workers_;
};

}  // namespace sluice::proxy
