// Scalars of the configuration: numbers, sizes and durations with units, file modes; parsed strictly, printed
// back alike.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/option.h"

namespace sluice::config {

// Decimal digits only; none for anything else or above 2^64-1.
std::optional<uint64_t> ParseUnsigned(std::string_view text);
// Decimal, also with a fraction or exponent; finite.
std::optional<double> ParseDecimal(std::string_view text);
// "65536", "64KiB", "4MiB", "1GiB".
std::optional<uint64_t> ParseBytes(std::string_view text);
// "250ms", "5s", "2m", "1h", or "0". A number without a unit is refused: units of keys are easily
// confused.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);
// "0660": octal with a leading zero, as chmod shows it.
std::optional<uint32_t> ParseMode(std::string_view text);

// In the largest unit that loses nothing: "64KiB", "5s". Each is parsed to the same value.
std::string FormatBytes(uint64_t bytes);
std::string FormatDuration(std::chrono::milliseconds time);
std::string FormatDecimal(double value);

// An option's value (base/option.h): none if the text is none, or outside the range.
std::optional<double> ParseValue(std::string_view text, const base::OptionRange& range);
// Its shortest text.
std::string FormatValue(double value, base::OptionKind kind);
// What the range allows, for a message: "a whole number in [1, 8]".
std::string AllowedText(const base::OptionRange& range);

// A piece of the user's text for a message: bounded, and without control characters.
std::string Shown(std::string_view text);

}  // namespace sluice::config
