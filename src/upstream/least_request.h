// LeastRequest: of two endpoints drawn by weight, the one with fewer calls in flight for its weight.
//
// Two choices (Mitzenmacher 2001) come close to the least loaded of all without looking at all, and proxies
// that see the same loads do not all run to the same endpoint. Drawing by weight and taking the first of a
// tie keeps the shares of an idle cluster in proportion to the weights.
#pragma once

#include "upstream/load_balancer.h"

namespace sluice::upstream {

class LeastRequest final : public LoadBalancer {
 public:
  explicit LeastRequest(BalancerEndpoints endpoints);
  uint32_t Pick(const PickContext& context) const override;
  std::vector<double> Shares() const override;  // of an idle cluster
  uint64_t Digest() const override { return digest_; }

 private:
  // Alias method (Vose 1991): a draw is one place, and one comparison between its own endpoint and its alias.
  struct Place {
    uint32_t keep;  // of 2^32: below it the place's own endpoint
    uint32_t alias;
  };

  uint32_t Draw(uint64_t random) const;
  uint32_t Lighter(uint32_t a, uint32_t b, const PickContext& context) const;
  uint32_t Scan(uint32_t a, uint32_t b, uint64_t random, const PickContext& context) const;

  std::vector<double> weights_;
  std::vector<Place> places_;
  uint64_t digest_;
};

}  // namespace sluice::upstream
