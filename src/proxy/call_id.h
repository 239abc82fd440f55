// CallId: the name of one call, in the access log, in the trailer sluice-call-id and in `sluicectl why`.
//
//   5f3a9c1e-2-1a7    the process, its worker, the number on that worker; hex
//
// A call takes one when it is first asked for: calls that nothing is said of have none, and cost nothing.
#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace sluice::proxy {

struct CallId {
  static constexpr size_t kBytesMax = 8 + 1 + 8 + 1 + 16;
  static constexpr uint32_t kNumberBits = 48;

  // Differs between processes, on one machine and over restarts. Any thread.
  static uint32_t Process();
  // In place of what differs, so that two runs of a test say the same. Before the first call.
  static void SetProcessForTest(uint32_t process);

  static CallId Of(uint32_t worker, uint64_t number) { return {uint64_t{worker} << kNumberBits | number}; }
  bool set() const { return value != 0; }
  uint32_t worker() const { return static_cast<uint32_t>(value >> kNumberBits); }
  uint64_t number() const { return value & ((uint64_t{1} << kNumberBits) - 1); }

  // Writes at most kBytesMax; returns the end. Nothing, if it is not set.
  char* Put(char* to) const {
    if (!set()) return to;
    char* const begin = to;
    to = std::to_chars(to, to + 8, Process(), 16).ptr;
    const size_t missing = 8 - static_cast<size_t>(to - begin);  // of leading zeros
    std::memmove(begin + missing, begin, 8 - missing);
    std::memset(begin, '0', missing);
    to = begin + 8;
    *to++ = '-';
    to = std::to_chars(to, to + 8, worker(), 16).ptr;
    *to++ = '-';
    return std::to_chars(to, to + 16, number(), 16).ptr;
  }
  std::string ToString() const {
    std::array<char, kBytesMax> text;
    return std::string(text.data(), Put(text.data()));
  }
  bool operator==(const CallId&) const = default;

  uint64_t value = 0;  // worker above, number (from 1) below; 0: none was taken
};

}  // namespace sluice::proxy
