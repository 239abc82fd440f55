// The configuration: any text gives a whole Config or errors in the order of the file, each with a place that is in the
// file; never an exception, never half a Config. The same text gives the same again, and no reload of it asks for a
// restart.
#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "config/config.h"

namespace sluice::config {

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Files that the text names are read: none that blocks or never ends.
  for (const char* folder : {"/proc", "/sys", "/dev"}) {
    if (text.find(folder) != text.npos) return 0;
  }
  const ParseResult result = Parse(text, "fuzz.yaml");
  const ParseResult again = Parse(text, "fuzz.yaml");
  SLUICE_CHECK(result.config == again.config && result.errors.size() == again.errors.size());
  if (result.ok()) {
    SLUICE_CHECK(RestartOnlyChanges(result.config, again.config).empty());
    SLUICE_CHECK(!result.config.listeners.empty() && !result.config.routes.empty());
    return 0;
  }
  SLUICE_CHECK(result.config == Config());
  // Lines end with \n, \r\n, or \r alone (YAML 1.2, 5.4); one more for the place behind the last.
  const auto lines = std::count_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }) + 2;
  for (size_t i = 0; i < result.errors.size(); ++i) {
    const ConfigError& error = result.errors[i];
    SLUICE_CHECK(!error.message.empty() && !error.file.empty());
    SLUICE_CHECK(error.line >= 0 && error.line <= lines && error.column >= 0);
    SLUICE_CHECK(error.ToString() == again.errors[i].ToString());
    if (i == 0) continue;
    const ConfigError& before = result.errors[i - 1];
    SLUICE_CHECK(std::pair(before.line, before.column) <= std::pair(error.line, error.column));
  }
  return 0;
}

}  // namespace sluice::config
