// SpaceSaving: which keys of a stream come most, in memory for a fixed number of them (Metwally, Agrawal, El Abbadi
// 2005, "Efficient Computation of Frequent and Top-k Elements in Data Streams").
//
//   a key that has a counter:    count + 1
//   one that has none:           takes the smallest counter over: error = its count, count + 1
//
// So of each key that has a counter  count - error <= how often it came <= count,  and a key that has none came at most
// `floor` times, the smallest count. With k counters and n keys seen the floor is at most n / k: every key that came
// more often than that has a counter.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace sluice::proxy {

// A key's text as it is kept: its beginning.
struct KeyText {
  static constexpr size_t kBytesMax = 46;
  KeyText() = default;
  explicit KeyText(std::string_view text);
  std::string_view view() const { return {bytes.data(), size}; }

  uint8_t size = 0;
  bool cut = false;
  std::array<char, kBytesMax> bytes;
};

struct KeyCount {
  uint64_t key = 0;  // its hash, which stands for it
  uint64_t count = 0, error = 0;
  KeyText text;
};

// What a stream came to. Largest count first.
struct KeySummary {
  std::vector<KeyCount> keys;
  uint64_t floor = 0;  // a key that is not in it came at most so often
  uint64_t total = 0;  // keys seen

  // Of several streams together, with at most `keys_max`; the bounds hold for their sum (Agarwal et al. 2012,
  // "Mergeable Summaries").
  static KeySummary Merge(std::span<const KeySummary> parts, size_t keys_max);
};

// One thread.
class SpaceSaving {
 public:
  // `counters` > 0.
  explicit SpaceSaving(size_t counters) : counters_max_(counters) {}

  // `text` is kept where the key gets a counter.
  void Add(uint64_t key, std::string_view text);
  void Clear();
  uint64_t total() const { return total_; }
  KeySummary Read() const;

 private:
  size_t counters_max_;
  std::vector<uint64_t> hashes_;  // by counter: what is searched, close together
  std::vector<KeyCount> counters_;
  uint64_t total_ = 0;
};

}  // namespace sluice::proxy
