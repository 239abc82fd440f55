#include "config/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "config/text.h"

namespace sluice::config {

using base::OptionKind;

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};
// Largest first, for printing.
constexpr std::array<Unit, 4> kSizes = {{{"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"", 1}}};
constexpr std::array<Unit, 4> kTimes = {{{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}}};
constexpr size_t kShownBytesMax = 64;

// The digits at the front of `text` times the unit that is exactly the rest; none if there is no such unit or
// it overflows.
std::optional<uint64_t> ParseWithUnit(std::string_view text, const std::array<Unit, 4>& units) {
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const auto number = ParseUnsigned(text.substr(0, digits));
  if (!number) return std::nullopt;
  for (const Unit& unit : units) {
    if (text.substr(digits) != unit.name) continue;
    if (*number > std::numeric_limits<uint64_t>::max() / unit.factor) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

std::string FormatWithUnit(uint64_t value, const std::array<Unit, 4>& units) {
  if (value == 0) return "0";
  size_t i = 0;
  while (value % units[i].factor != 0) ++i;  // the last factor is 1
  return std::to_string(value / units[i].factor) + std::string(units[i].name);
}

}  // namespace

std::optional<uint64_t> ParseUnsigned(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<double> ParseDecimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> ParseBytes(std::string_view text) { return ParseWithUnit(text, kSizes); }

std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  if (text == "0") return std::chrono::milliseconds(0);
  const auto value = ParseWithUnit(text, kTimes);
  if (!value || *value > static_cast<uint64_t>(std::chrono::milliseconds::max().count())) return std::nullopt;
  return std::chrono::milliseconds(static_cast<int64_t>(*value));
}

std::optional<uint32_t> ParseMode(std::string_view text) {
  if (text.size() != 4 || text[0] != '0') return std::nullopt;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string FormatBytes(uint64_t bytes) { return FormatWithUnit(bytes, kSizes); }

std::string FormatDuration(std::chrono::milliseconds time) {
  return FormatWithUnit(static_cast<uint64_t>(time.count()), kTimes);
}

std::string FormatDecimal(double value) {
  char buffer[32];
  // The shortest form of 10000000 would be 1e+07.
  const bool whole = std::abs(value) < 1e15 && value == std::trunc(value);
  const auto [end, error] = whole ? std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::fixed)
                                  : std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, error == std::errc() ? end : buffer);
}

std::optional<double> ParseValue(std::string_view text, const base::OptionRange& range) {
  const auto in_range = [&](const auto& number) -> std::optional<double> {
    if (!number) return std::nullopt;
    const auto value = static_cast<double>(*number);
    const bool none = value == 0 && range.kind == OptionKind::kDecimalOrZero;
    return none || (value >= range.min && value <= range.max) ? std::optional(value) : std::nullopt;
  };
  switch (range.kind) {
    case OptionKind::kBool:
      return text == "true" || text == "false" ? std::optional<double>(text == "true") : std::nullopt;
    case OptionKind::kCount:
      return in_range(ParseUnsigned(text));
    case OptionKind::kBytes:
      return in_range(ParseBytes(text));
    case OptionKind::kTime:
      return in_range(ParseWithUnit(text == "0" ? "0ms" : text, kTimes));
    default:
      return in_range(ParseDecimal(text));
  }
}

std::string FormatValue(double value, OptionKind kind) {
  if (kind == OptionKind::kBool) return value != 0 ? "true" : "false";
  if (kind == OptionKind::kDecimal || kind == OptionKind::kDecimalOrZero) return FormatDecimal(value);
  const auto whole = static_cast<uint64_t>(value);
  if (kind == OptionKind::kCount) return std::to_string(whole);
  return FormatWithUnit(whole, kind == OptionKind::kBytes ? kSizes : kTimes);
}

std::string AllowedText(const base::OptionRange& range) {
  constexpr std::pair<std::string_view, std::string_view> kAround[] = {
      {"true, false", ""},
      {"a whole number in ", ""},
      {"a time in ", " (with a unit: ms, s, m, h)"},
      {"a number in ", ""},
      {"a size in ", " (bytes, or with KiB, MiB, GiB)"},
      {"0 or a number in ", ""},
  };
  const auto [before, after] = kAround[static_cast<size_t>(range.kind)];
  if (range.kind == OptionKind::kBool) return std::string(before);
  return Cat(before, "[", FormatValue(range.min, range.kind), ", ", FormatValue(range.max, range.kind), "]", after);
}

std::string Shown(std::string_view text) {
  std::string out = "\"";
  for (unsigned char c : text.substr(0, kShownBytesMax)) out += c < 0x20 || c == 0x7f ? '?' : static_cast<char>(c);
  if (text.size() > kShownBytesMax) out += "...";
  return out + '"';
}
}  // namespace sluice::config
