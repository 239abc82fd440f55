// StreamHash: a hash of bytes that come in pieces, the same however they are cut: XXH64 with seed 0. For comparing, not
// for tables: the sender of the bytes can choose its value.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace sluice::base {

class StreamHash {
 public:
  StreamHash();
  void Add(std::string_view bytes);
  // Of all bytes so far.
  uint64_t Value() const;

 private:
  alignas(8) std::array<std::byte, 88> state_;
};

}  // namespace sluice::base
