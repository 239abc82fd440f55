#include "upstream/least_request.h"

#include <numeric>

#include "base/random.h"

namespace sluice::upstream {
namespace {

constexpr int kDraws = 4;

double WeightOf(const BalancerEndpoint& endpoint) { return endpoint.weight > 0 ? endpoint.weight : 0.01; }

}  // namespace

LeastRequest::LeastRequest(BalancerEndpoints endpoints) : digest_(DigestOfWeights(Policy::kLeastRequest, endpoints)) {
  for (const BalancerEndpoint& endpoint : endpoints) weights_.push_back(WeightOf(endpoint));
  // Every place holds 1 / n of the circle: what a light endpoint leaves of its place goes to a heavy one.
  size_t n = weights_.size();
  double mean = std::accumulate(weights_.begin(), weights_.end(), 0.0) / static_cast<double>(n);
  std::vector<double> rest(n);
  std::vector<uint32_t> light, heavy;
  for (uint32_t i = 0; i < n; ++i) {
    rest[i] = weights_[i] / mean;
    (rest[i] < 1 ? light : heavy).push_back(i);
    places_.push_back({UINT32_MAX, i});
  }
  while (!light.empty() && !heavy.empty()) {
    uint32_t from = light.back(), to = heavy.back();
    light.pop_back();
    places_[from] = {static_cast<uint32_t>(rest[from] * 0x1.0p32), to};
    rest[to] -= 1 - rest[from];
    if (rest[to] >= 1) continue;
    heavy.pop_back();
    light.push_back(to);
  }
}

uint32_t LeastRequest::Pick(const PickContext& context) const {
  if (weights_.empty()) return kNone;
  base::Random random(context.random);
  uint32_t a = Draw(random.Next());
  if (weights_.size() == 1) return context.ok(a) ? a : kNone;
  uint32_t b = a;
  for (int i = 0; b == a && i < kDraws; ++i) b = Draw(random.Next());
  if (b == a) b = (a + 1) % static_cast<uint32_t>(weights_.size());
  bool a_ok = context.ok(a);
  bool b_ok = context.ok(b);
  if (a_ok && b_ok) return Lighter(a, b, context);
  if (a_ok) return a;
  if (b_ok) return b;
  return Scan(a, b, random.Next(), context);
}

uint32_t LeastRequest::Draw(uint64_t random) const {
  uint32_t place = static_cast<uint32_t>(((random >> 32) * places_.size()) >> 32);
  return static_cast<uint32_t>(random) <= places_[place].keep ? place : places_[place].alias;
}

uint32_t LeastRequest::Lighter(uint32_t a, uint32_t b, const PickContext& context) const {
  double load_a = context.load(a), load_b = context.load(b);
  return load_b * weights_[a] < load_a * weights_[b] ? b : a;
}

// Both refused: the better of the first two that accept, from a random place on.
uint32_t LeastRequest::Scan(uint32_t a, uint32_t b, uint64_t random, const PickContext& context) const {
  uint32_t n = static_cast<uint32_t>(weights_.size());
  uint32_t start = static_cast<uint32_t>(random % n);
  uint32_t found = kNone;
  for (uint32_t step = 0; step < n; ++step) {
    uint32_t index = (start + step) % n;
    if (index == a || index == b || !context.ok(index)) continue;
    if (found != kNone) return Lighter(found, index, context);
    found = index;
  }
  return found;
}

std::vector<double> LeastRequest::Shares() const {
  std::vector<double> shares = weights_;
  double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

}  // namespace sluice::upstream
