// Dice: all the chance of a seed. The same seed gives the same moves on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <string>

namespace sluice::hostile {

class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u) { Bits(); }

  uint64_t Bits() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Bits() % bound; }
  uint64_t In(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }  // both ends included
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  bool Percent(uint64_t p) { return Below(100) < p; }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return *std::next(values.begin(), static_cast<std::ptrdiff_t>(Below(values.size())));
  }
  template <typename C>
  const typename C::value_type& From(const C& values) {
    return values[Below(values.size())];
  }
  // A number at, just below or just above one of `limits`.
  uint64_t Around(std::initializer_list<uint64_t> limits) {
    const uint64_t limit = Of(limits), off = Of<uint64_t>({0, 1, 2, 16, 100});
    return OneIn(2) ? limit + off : limit - (off < limit ? off : 0);
  }
  std::string Bytes(size_t n) {
    std::string out(n, '\0');
    for (char& c : out) c = static_cast<char>(Bits());
    return out;
  }

 private:
  uint64_t state_;
};

}  // namespace sluice::hostile
