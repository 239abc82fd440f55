#include "proxy/insight/space_saving.h"

#include <algorithm>
#include <unordered_map>

namespace sluice::proxy {
namespace {

bool Larger(const KeyCount& a, const KeyCount& b) { return a.count != b.count ? a.count > b.count : a.key < b.key; }

}  // namespace

KeyText::KeyText(std::string_view text) : cut(text.size() > kBytesMax) {
  size = static_cast<uint8_t>(std::min(text.size(), kBytesMax));
  std::copy_n(text.data(), size, bytes.data());
}

void SpaceSaving::Add(uint64_t key, std::string_view text) {
  ++total_;
  const auto found = std::find(hashes_.begin(), hashes_.end(), key);
  if (found != hashes_.end()) {
    ++counters_[static_cast<size_t>(found - hashes_.begin())].count;
    return;
  }
  if (counters_.size() < counters_max_) {
    hashes_.push_back(key);
    counters_.push_back({key, 1, 0, KeyText(text)});
    return;
  }
  const auto least = std::min_element(counters_.begin(), counters_.end(),
                                      [](const KeyCount& a, const KeyCount& b) { return a.count < b.count; });
  hashes_[static_cast<size_t>(least - counters_.begin())] = key;
  *least = {key, least->count + 1, least->count, KeyText(text)};
}

void SpaceSaving::Clear() {
  hashes_.clear();
  counters_.clear();
  total_ = 0;
}

KeySummary SpaceSaving::Read() const {
  KeySummary out{counters_, 0, total_};
  std::sort(out.keys.begin(), out.keys.end(), Larger);
  if (counters_.size() == counters_max_) out.floor = out.keys.back().count;
  return out;
}

KeySummary KeySummary::Merge(std::span<const KeySummary> parts, size_t keys_max) {
  KeySummary out;
  for (const KeySummary& part : parts) {
    out.floor += part.floor;
    out.total += part.total;
  }
  // A part that has no counter for a key may have seen it as often as its floor says.
  std::unordered_map<uint64_t, KeyCount> sums;
  for (const KeySummary& part : parts) {
    for (const KeyCount& one : part.keys) {
      auto [at, fresh] = sums.try_emplace(one.key, KeyCount{one.key, out.floor, out.floor, one.text});
      at->second.count += one.count - part.floor;
      at->second.error += one.error - part.floor;
    }
  }
  for (const auto& [key, sum] : sums) out.keys.push_back(sum);
  std::sort(out.keys.begin(), out.keys.end(), Larger);
  if (out.keys.size() > keys_max) {
    out.floor = std::max(out.floor, out.keys[keys_max].count);
    out.keys.resize(keys_max);
  }
  return out;
}

}  // namespace sluice::proxy
