// Program: a fuzzer's input read as a sequence of choices. Behind its end everything is 0, so that each input means
// something and a shorter one means nearly the same.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::fuzz {

class Program {
 public:
  Program(const uint8_t* data, size_t size) : at_(data), end_(data + size) {}

  bool done() const { return at_ == end_; }
  uint8_t U8() { return done() ? 0 : *at_++; }
  uint16_t U16() {
    const uint16_t high = U8();
    return static_cast<uint16_t>(high << 8 | U8());
  }
  uint32_t U32() {
    const uint32_t high = U16();
    return high << 16 | U16();
  }
  // In [0, bound), bound 1..256.
  uint8_t Below(unsigned bound) { return static_cast<uint8_t>(U8() % bound); }
  bool Flag() { return (U8() & 1) != 0; }
  // A size: mostly small, at most 64 KiB.
  uint32_t Size() {
    const uint8_t first = U8();
    return first < 0x80 ? first : (uint32_t{first} & 0x7f) << 9 | uint32_t{U8()} << 1;
  }
  // The next `n` bytes, or as many as there are.
  std::string_view Bytes(size_t n) {
    n = std::min(n, static_cast<size_t>(end_ - at_));
    const std::string_view out(reinterpret_cast<const char*>(at_), n);
    at_ += n;
    return out;
  }
  std::string_view Rest() { return Bytes(SIZE_MAX); }
  std::string_view ShortBytes() { return Bytes(U8()); }

 private:
  const uint8_t* at_;
  const uint8_t* const end_;
};

}  // namespace sluice::fuzz
