// NamedFile: a file that a configuration names, and the key that does.
#pragma once

#include <cstdint>
#include <string>

#include "config/config_error.h"

namespace sluice::config {

struct NamedFile {
  // kNeeded: a start reads it. kLater: it is read when it is used. kWritten: the process writes it.
  enum class Use : uint8_t { kNeeded, kLater, kWritten };
  std::string file;  // as it is opened
  Use use;
  ConfigError place;  // without a message
};

}  // namespace sluice::config
