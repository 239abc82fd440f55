#include "upstream/xds_ring.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/hash.h"

namespace sluice::upstream {

// Each operation, and their order, is part of the result: the sums are rounded, and whether a fraction carries over to
// the next endpoint may hang on the last bit. No operation may be fused or reassociated.
std::vector<uint32_t> XdsPointCounts(std::span<const double> weights, XdsRingSize size) {
  double sum = 0;
  for (double weight : weights) sum += weight;
  double smallest = 1;
  for (double weight : weights) smallest = std::min(smallest, weight / sum);
  const double scale = std::min(std::ceil(smallest * size.min) / smallest, static_cast<double>(size.max));
  std::vector<uint32_t> counts;
  counts.reserve(weights.size());
  double wanted = 0, made = 0;  // of the endpoints so far; whole numbers far below 2^53
  for (double weight : weights) {
    wanted += scale * (weight / sum);
    const double more = std::max(0.0, std::ceil(wanted) - made);
    counts.push_back(static_cast<uint32_t>(more));
    made += more;
  }
  return counts;
}

void XdsPoints(std::string_view name, std::span<uint64_t> points) {
  constexpr size_t kDigitsMax = 10;
  std::string text(name);
  text += '_';
  const size_t prefix = text.size();
  text.resize(prefix + kDigitsMax);
  for (uint32_t i = 0; i < points.size(); ++i) {
    const char* end = std::to_chars(text.data() + prefix, text.data() + text.size(), i).ptr;
    points[i] = base::XxHash64({text.data(), static_cast<size_t>(end - text.data())});
  }
}

}  // namespace sluice::upstream
