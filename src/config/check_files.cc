#include "config/check_files.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "config/text.h"

namespace sluice::config {

void CheckFiles(ParseResult* result) {
  if (!result->ok()) return;
  for (const NamedFile& named : result->named) {
    if (named.use == NamedFile::Use::kWritten || ::access(named.file.c_str(), R_OK) == 0) continue;
    const std::string why = std::strerror(errno);
    ConfigError error = named.place;
    const bool needed = named.use == NamedFile::Use::kNeeded;
    error.message = Cat(named.file, ": cannot be read: ", why, needed ? "" : "; it is tried again when it is used");
    (needed ? result->errors : result->warnings).push_back(std::move(error));
  }
  if (!result->ok()) result->config = Config();
}

std::string PlaceOfFile(const ParseResult& result, std::string_view file) {
  for (const NamedFile& named : result.named) {
    const ConfigError& at = named.place;
    if (named.file == file) return Cat(at.file, ":", at.line, ":", at.column, ": ", at.path);
  }
  return "";
}

std::string PlaceOfFileIn(const ParseResult& result, std::string_view text) {
  std::string_view found;
  for (const NamedFile& named : result.named) {
    // The longest name: one may be the beginning of another.
    if (named.file.size() > found.size() && text.find(named.file) != text.npos) found = named.file;
  }
  return found.empty() ? "" : PlaceOfFile(result, found);
}

}  // namespace sluice::config
