// Dice: all the chance of a chaos run, from one seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

#include "base/random.h"

namespace sluice::chaos {

using Micros = std::chrono::microseconds;

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  uint64_t Bits() { return random_.Next(); }
  uint64_t Below(uint64_t bound) { return random_.Below(bound); }
  // Both ends included.
  uint64_t In(uint64_t low, uint64_t high) { return low + random_.Below(high - low + 1); }
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  bool Percent(uint64_t p) { return random_.Below(100) < p; }
  // 0..max, small ones as likely as large ones.
  uint64_t Size(uint64_t max) {
    if (max == 0) return 0;
    int bits = 0;
    while (max >> bits != 0) ++bits;
    const uint64_t top = uint64_t{1} << random_.Below(static_cast<uint64_t>(bits) + 1);
    const uint64_t size = random_.Below(top);
    return size > max ? max : size;
  }
  Micros Time(Micros max) { return Micros(static_cast<int64_t>(Size(static_cast<uint64_t>(max.count())))); }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(random_.Below(values.size())));
  }
  std::string Bytes(size_t n) {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(random_.Next());
    return out;
  }
  // A stream of its own: what it gives does not depend on the other users.
  Dice Fork() { return Dice(random_.Next()); }

 private:
  base::Random random_;
};

}  // namespace sluice::chaos
