#include "sluicectl/values.h"

#include <charconv>
#include <cmath>
#include <utility>

#include "base/ascii.h"
#include "cli/command_line.h"

namespace sluice::ctl {
namespace {

using cli::Bad;
using cli::Quoted;

// The whole of `text` as a number.
template <typename T>
std::optional<T> Number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

base::Result<double> ParseWeight(std::string_view text) {
  const std::optional<double> weight = Number<double>(text);
  if (weight && std::isfinite(*weight) && *weight > 0) return *weight;
  return Bad(Quoted(text) + ": must be a number above 0");
}

base::Result<EndpointArg> ParseNamed(std::string_view text) {
  EndpointArg endpoint;
  if (const size_t at = text.rfind('@'); at != text.npos && Number<double>(text.substr(at + 1))) {
    base::Result<double> weight = ParseWeight(text.substr(at + 1));
    if (!weight.ok()) return Bad(Quoted(text) + ": weight " + weight.error().detail);
    endpoint.weight = *weight;
    text = text.substr(0, at);
  }
  if (text.empty()) return Bad("an endpoint's name is empty");
  endpoint.name = text;
  return endpoint;
}

base::Result<EndpointArg> ParseEndpoint(std::string_view text) {
  base::Result<EndpointArg> endpoint = ParseNamed(text);
  if (!endpoint.ok()) return endpoint;
  endpoint->address = std::move(endpoint->name);
  endpoint->name.clear();
  const size_t equals = endpoint->address.find('=');
  if (equals != std::string::npos && endpoint->address.find_first_of(":/") > equals) {
    endpoint->name = endpoint->address.substr(0, equals);
    endpoint->address.erase(0, equals + 1);
    if (endpoint->name.empty()) return Bad(Quoted(text) + ": nothing before =");
  }
  if (endpoint->address.find(':') == std::string::npos) {
    return Bad(Quoted(text) + ": must be [NAME=]ADDRESS[@WEIGHT], the address host:port or unix:/path");
  }
  return endpoint;
}

base::Result<std::chrono::milliseconds> ParseDuration(std::string_view text) {
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {{"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}};
  constexpr int64_t kDay = 24 * 3'600'000;
  for (auto [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    const std::optional<uint32_t> count = Number<uint32_t>(text.substr(0, text.size() - unit.size()));
    if (count && *count <= kDay / factor) return std::chrono::milliseconds(*count * factor);
  }
  return Bad(Quoted(text) + ": must be like 500ms, 30s, 2m or 1h, at most a day");
}

base::Result<uint32_t> ParseCount(std::string_view text) {
  if (const std::optional<uint32_t> count = Number<uint32_t>(text)) return *count;
  return Bad(Quoted(text) + ": must be a whole number, 0 or more");
}

base::Result<uint64_t> ParseVersion(std::string_view text) {
  if (const std::optional<uint64_t> version = Number<uint64_t>(text)) return *version;
  return Bad(Quoted(text) + ": must be a version as `clusters` shows it");
}

base::Result<double> ParseRate(std::string_view text) {
  const std::optional<double> rate = Number<double>(text);
  if (rate && std::isfinite(*rate) && *rate >= 0) return *rate;
  return Bad(Quoted(text) + ": must be calls a second, like 100 or 0.5; 0 is no limit");
}

base::Result<double> ParseNumber(std::string_view text) {
  const std::optional<double> number = Number<double>(text);
  if (number && std::isfinite(*number) && *number >= 0) return *number;
  return Bad(Quoted(text) + ": must be a number, 0 or more");
}

base::Result<std::pair<std::string, std::string>> ParseMetadata(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) return Bad(Quoted(text) + ": must be NAME=VALUE");
  return std::pair(base::ToLower(text.substr(0, equals)), std::string(text.substr(equals + 1)));
}

base::Result<std::string> ParseHex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (char c : text) {
    if (c == ' ') continue;
    const char lower = static_cast<char>(c | 0x20);
    const int digit = c >= '0' && c <= '9' ? c - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
    if (digit < 0) return Bad(Quoted(text) + ": " + Quoted({&c, 1}) + " is no hex digit");
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  if (high >= 0) return Bad(Quoted(text) + ": must have two digits for each byte");
  return bytes;
}

}  // namespace sluice::ctl
