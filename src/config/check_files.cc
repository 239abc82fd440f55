#include "config/check_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "config/text.h"

namespace sluice::config {

void CheckFiles(ParseResult* result) {
  if (!result->ok()) return;
  for (const NamedFile& named : result->named) {
    if (::access(named.file.c_str(), R_OK) == 0) continue;
    const std::string why = std::strerror(errno);
    ConfigError error = named.place;
    error.message =
        Cat(named.file, ": cannot be read: ", why, named.needed ? "" : "; it is tried again when it is used");
    (named.needed ? result->errors : result->warnings).push_back(std::move(error));
  }
  if (!result->ok()) result->config = Config();
}

std::string PlaceOfFile(const ParseResult& result, const std::string& file) {
  for (const NamedFile& named : result.named) {
    const ConfigError& at = named.place;
    if (named.file == file) return Cat(at.file, ":", at.line, ":", at.column, ": ", at.path);
  }
  return "";
}

}  // namespace sluice::config
