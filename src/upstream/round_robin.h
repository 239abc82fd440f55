// RoundRobin: endpoints in turn, by weight, evenly mixed. A fixed schedule and one cursor a worker.
//
// The schedule is a circle in which an endpoint has slots in proportion to its weight, spread evenly (a b a c
// a for weights 3, 1, 1), so a pick is a step of the worker's own cursor: no heap, no write that another
// worker sees. A cursor starts at a random slot, so that proxies started together do not all begin with the
// first endpoint. An attempt that follows another one of its call begins at a random slot and leaves the cursor where
// it is: with two endpoints, of which one fails all its calls, the repeats would else take the turns of the other one,
// and all new calls would begin with the one that fails.
#pragma once

#include <atomic>
#include <memory>

#include "upstream/load_balancer.h"

namespace sluice::upstream {

class RoundRobin final : public LoadBalancer {
 public:
  // Weights count in steps of 1 / kWeightSteps, as long as the schedule stays below kScheduleMax slots;
  // beyond it they are rounded to what fits, with at least one slot an endpoint.
  static constexpr double kWeightSteps = 100;
  static constexpr size_t kScheduleMax = 65536;

  // `previous`: to take the order of the names over from; null: none.
  RoundRobin(BalancerEndpoints endpoints, uint32_t workers, const RoundRobin* previous = nullptr);
  uint32_t Pick(const PickContext& context) const override;
  std::vector<double> Shares() const override;
  uint64_t Digest() const override { return digest_; }
  const std::vector<uint32_t>& schedule() const { return schedule_; }

 private:
  // Read and written by one worker only; atomic so that a worker index used twice is a wrong turn and no
  // race.
  struct alignas(64) Cursor {
    std::atomic<uint32_t> next{kUnset};
  };
  static constexpr uint32_t kUnset = UINT32_MAX;

  struct Place {
    uint32_t index, next;  // the endpoint, kNone; the slot behind the one that was taken
  };
  Place FindBehind(uint32_t at, const PickContext& context) const;
  uint32_t After(size_t slot) const { return slot + 1 == schedule_.size() ? 0 : static_cast<uint32_t>(slot + 1); }

  size_t endpoints_;
  std::vector<uint32_t> by_name_;  // the list in the order of its names
  std::vector<uint32_t> schedule_;
  uint64_t digest_;
  uint32_t workers_;
  std::unique_ptr<Cursor[]> cursors_;
};

}  // namespace sluice::upstream
