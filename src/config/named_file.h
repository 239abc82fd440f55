// NamedFile: a file that a configuration names, and the key that does.
#pragma once

#include <string>

#include "config/config_error.h"

namespace sluice::config {

struct NamedFile {
  std::string file;   // as it is opened
  bool needed;        // by a start; else it is read when it is used
  ConfigError place;  // without a message
};

}  // namespace sluice::config
