// How sluicectl reads single values of its command line, and says what is wrong with one.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::ctl {

inline base::Error Bad(std::string why) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why)); }
inline std::string Quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

// The whole of `text` as a number.
template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A whole number that fits in 32 bits; the daemon knows the range.
inline base::Result<uint32_t> ReadCount(std::string_view flag, std::string_view text) {
  const std::optional<uint32_t> count = Number<uint32_t>(text);
  if (!count) return Bad(std::string(flag) + " " + Quoted(text) + ": must be a whole number, 0 or more");
  return *count;
}

// Calls a second.
inline base::Result<double> ReadRate(std::string_view flag, std::string_view text) {
  const std::optional<double> rate = Number<double>(text);
  if (!rate || !std::isfinite(*rate) || *rate < 0) {
    return Bad(std::string(flag) + " " + Quoted(text) + ": must be calls a second, like 100 or 0.5; 0 is no limit");
  }
  return *rate;
}

// "0a 1b" or "0a1b" as bytes.
inline base::Result<std::string> ReadHex(std::string_view flag, std::string_view text) {
  std::string bytes;
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    const char lower = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    if (digit < 0) return Bad(std::string(flag) + " " + Quoted(text) + ": " + Quoted({&c, 1}) + " is no hex digit");
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  if (high >= 0) return Bad(std::string(flag) + " " + Quoted(text) + ": must have two digits for each byte");
  return bytes;
}

}  // namespace sluice::ctl
