// The configuration: any text gives a whole Config or errors in the order of the file, each with a place that is in the
// file; never an exception, never half a Config. The same text gives the same again, and no reload of it asks for a
// restart. Variables and included files are those below, the system's are not read.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "config/config.h"

namespace sluice::config {
namespace {

std::optional<std::string> Variable(const std::string& name) {
  if (name == "PORT") return "50051";
  if (name == "EMPTY") return "";
  if (name == "TRAP") return "${PORT} # [a, b]: *c";
  if (name == "LONG") return std::string(kExpandedBytesMax - 1, 'x');
  if (name == "LINES") return "a\nb: c";
  return std::nullopt;
}

// `folder`/a.yaml and so on; x.yaml includes itself.
base::Result<std::string> File(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (name == "a.yaml") return std::string("clusters: [{name: a, endpoints: [b:1]}]\nroutes: [{cluster: a}]\n");
  if (name == "b.yaml") return std::string("include: [a.yaml, c.yaml]\nworkers: 1\n");
  if (name == "x.yaml") return std::string("include: [x.yaml]\n");
  if (name == "bad.yaml") return std::string("log: [\n");
  return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // Files that the text names are read: none that blocks or never ends.
  for (const char* folder : {"/proc", "/sys", "/dev"}) {
    if (text.find(folder) != text.npos) return 0;
  }
  const Inputs inputs{Variable, File};
  const ParseResult result = Parse(text, "fuzz.yaml", inputs);
  const ParseResult again = Parse(text, "fuzz.yaml", inputs);
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
    // Of the text itself; those of other files stand behind it.
    SLUICE_CHECK(error.line >= 0 && error.column >= 0 && (error.file != "fuzz.yaml" || error.line <= lines));
    SLUICE_CHECK(error.ToString() == again.errors[i].ToString());
    if (i == 0) continue;
    const ConfigError& before = result.errors[i - 1];
    if (before.file != error.file) continue;
    SLUICE_CHECK(std::pair(before.line, before.column) <= std::pair(error.line, error.column));
  }
  return 0;
}

}  // namespace sluice::config
