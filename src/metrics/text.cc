#include "metrics/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sluice::metrics {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string Escape(std::string_view text, std::string_view escaped) {
  std::string out;
  for (char c : text) {
    if (escaped.find(c) != escaped.npos) out += '\\';
    out += c == '\n' ? 'n' : c;
  }
  return out;
}

}  // namespace

bool IsMetricName(std::string_view name) {
  if (name.empty() || IsDigit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == ':'; });
}

bool IsLabelName(std::string_view name) {
  return IsMetricName(name) && name.find(':') == name.npos && !name.starts_with("__");
}

std::string EscapeHelp(std::string_view help) { return Escape(help, "\\\n"); }
std::string EscapeLabelValue(std::string_view value) { return Escape(value, "\\\n\""); }

std::string FormatLabels(std::vector<std::pair<std::string, std::string>> labels) {
  std::sort(labels.begin(), labels.end());
  std::string out;
  for (const auto& [name, value] : labels) {
    if (!out.empty()) out += ',';
    out += name;
    out += "=\"";
    out += EscapeLabelValue(value);
    out += '"';
  }
  return out;
}

void AppendEscaped(std::string& out, std::string_view label_value) {
  for (char c : label_value) {
    if (c == '\\' || c == '"' || c == '\n') out += '\\';
    out += c == '\n' ? 'n' : c;
  }
}

std::string FormatValue(double value) {
  std::string out;
  AppendValue(out, value);
  return out;
}

void AppendValue(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
    return;
  }
  if (std::isinf(value)) {
    out += value > 0 ? "+Inf" : "-Inf";
    return;
  }
  constexpr double kExactMax = 9007199254740992.0;  // 2^53
  if (std::trunc(value) == value && std::fabs(value) <= kExactMax) return AppendWhole(out, static_cast<int64_t>(value));
  char buffer[40];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

bool ReadValue(std::string_view text, double& value) {
  const bool positive = text.starts_with('+');  // "+Inf", which from_chars does not take
  if (positive) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

void AppendWhole(std::string& out, uint64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

void AppendWhole(std::string& out, int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr);
}

}  // namespace sluice::metrics
