// Option: one scalar key of the configuration: its name in YAML, the member of an options struct that it sets, and what
// is allowed. Its default is the member's initialiser. Each folder with an options.h has its tables in option_table.h;
// config parses, explains and compares by them; a test compares reference.yaml and docs/configuration.md with them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

namespace sluice::base {

enum class OptionKind : uint8_t { kBool, kCount, kTime, kDecimal, kBytes, kDecimalOrZero };

// Values of every kind as a double, which holds whole numbers up to 2^53 exactly: times in milliseconds, false as 0.
struct OptionRange {
  OptionKind kind = OptionKind::kBool;
  double min = 0, max = 1;
};
inline constexpr double kSecond = 1000, kMinute = 60 * kSecond, kHour = 60 * kMinute, kDay = 24 * kHour;
inline constexpr double kKiB = 1024, kMiB = 1024 * kKiB, kTiB = kMiB * kMiB;

enum OptionFlag : uint8_t {
  kBytes = 1,    // of a whole number: with KiB, MiB, GiB
  kOrZero = 2,   // of a decimal: 0, which means none, is allowed besides [min, max]
  kRestart = 4,  // a reload cannot change it
};

template <typename S>
struct Option {
  template <typename T>
  constexpr Option(std::string_view name, T S::*field, double min = 0, double max = 1, int flags = 0)
      : key(name), range{KindOf<T>(flags), min, max}, restart((flags & kRestart) != 0), member(field) {}

  double Get(const S& options) const {
    return std::visit([&](auto m) { return ToDouble(options.*m); }, member);
  }
  void Set(double value, S* options) const {
    std::visit([&](auto m) { options->*m = From<std::remove_reference_t<decltype(options->*m)>>(value); }, member);
  }

  std::string_view key;
  OptionRange range;
  bool restart;

 private:
  using Time = std::chrono::milliseconds;
  template <typename T>
  static constexpr OptionKind KindOf(int flags) {
    if constexpr (std::is_same_v<T, bool>) return OptionKind::kBool;
    if constexpr (std::is_same_v<T, Time>) return OptionKind::kTime;
    if constexpr (std::is_same_v<T, double>)
      return (flags & kOrZero) ? OptionKind::kDecimalOrZero : OptionKind::kDecimal;
    return (flags & kBytes) ? OptionKind::kBytes : OptionKind::kCount;
  }
  static double ToDouble(auto value) { return static_cast<double>(value); }
  static double ToDouble(Time value) { return static_cast<double>(value.count()); }
  template <typename T>
  static T From(double value) {
    if constexpr (std::is_same_v<T, Time>) {
      return Time(static_cast<int64_t>(value));
    } else {
      return static_cast<T>(value);
    }
  }

  std::variant<uint32_t S::*, uint64_t S::*, Time S::*, double S::*, bool S::*> member;
};

}  // namespace sluice::base
