#include "admin/accept.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/ascii.h"

namespace sluice::admin {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes what stands before the next `end`, or all.
std::string_view TakeUntil(std::string_view& text, char end) {
  const size_t at = text.find(end);
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + 1);
  return Trimmed(taken);
}

// 0 to 1; what is no weight is 0.
double Weight(std::string_view text) {
  double weight = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), weight, std::chars_format::fixed);
  const bool good = error == std::errc() && end == text.data() + text.size() && weight >= 0 && weight <= 1;
  return good ? weight : 0;
}

struct MediaRange {
  std::string_view type, version;  // version empty: any
  double weight = 1;
};

MediaRange Read(std::string_view text) {
  MediaRange out;
  out.type = TakeUntil(text, ';');
  while (!text.empty()) {
    std::string_view value = TakeUntil(text, ';');
    const std::string_view name = TakeUntil(value, '=');
    value = Trimmed(value);
    if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
    if (base::EqualsIgnoreCase(name, "q")) out.weight = Weight(value);
    if (base::EqualsIgnoreCase(name, "version")) out.version = value;
  }
  return out;
}

}  // namespace

bool WantsOpenMetrics(std::string_view accept) {
  double wanted = 0;
  // Of the plain text the most exact range counts, of several such the heaviest.
  std::optional<double> exact, of_type, any;
  const auto note = [](std::optional<double>& of, double weight) { of = std::max(of.value_or(0), weight); };
  while (!accept.empty()) {
    const MediaRange range = Read(TakeUntil(accept, ','));
    if (base::EqualsIgnoreCase(range.type, "application/openmetrics-text")) {
      if (range.version.empty() || range.version == "1.0.0") wanted = std::max(wanted, range.weight);
    } else if (base::EqualsIgnoreCase(range.type, "text/plain")) {
      if (range.version.empty() || range.version == "0.0.4") note(exact, range.weight);
    } else if (base::EqualsIgnoreCase(range.type, "text/*")) {
      note(of_type, range.weight);
    } else if (range.type == "*/*") {
      note(any, range.weight);
    }
  }
  const double plain = exact.value_or(of_type.value_or(any.value_or(0)));
  return wanted > 0 && wanted >= plain;
}

}  // namespace sluice::admin
