// Flags: parsing.
#include "flags.h"

#include <algorithm>
#include <charconv>

namespace sluice::echo {

Flags::Flags(const std::vector<std::string>& arguments, const std::vector<std::string>& switches,
             const std::vector<std::string>& valued) {
  const auto known = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument.rfind("--", 0) != 0) {
      Fail("'" + argument + "' is not a flag; see --help");
      return;
    }
    const size_t equals = argument.find('=');
    const std::string name = argument.substr(2, equals == std::string::npos ? equals : equals - 2);
    if (known(switches, name) && equals == std::string::npos) {
      values_[name] = "true";
    } else if (!known(valued, name)) {
      Fail("--" + name + " is not known here; see --help");
    } else if (equals != std::string::npos) {
      values_[name] = argument.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      values_[name] = arguments[++i];
    } else {
      Fail("--" + name + " needs a value");
    }
  }
}

std::string Flags::Text(const std::string& name, const std::string& fallback) const {
  const auto found = values_.find(name);
  return found == values_.end() ? fallback : found->second;
}

uint64_t Flags::Number(const std::string& name, uint64_t fallback, uint64_t min) {
  if (!Has(name)) return fallback;
  const std::string& text = values_[name];
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < min) {
    Fail("--" + name + ": '" + text + "' is not a whole number from " + std::to_string(min) + " up");
    return fallback;
  }
  return value;
}

std::chrono::milliseconds Flags::Duration(const std::string& name, std::chrono::milliseconds fallback) {
  if (!Has(name)) return fallback;
  const std::string& text = values_[name];
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size());
  const uint64_t scale = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60000 : 0;
  if (error != std::errc() || scale == 0) {
    Fail("--" + name + ": '" + text + "' is not a duration such as 500ms, 5s or 2m");
    return fallback;
  }
  return std::chrono::milliseconds(value * scale);
}

}  // namespace sluice::echo
