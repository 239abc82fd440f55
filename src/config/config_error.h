// ConfigError: one thing that is wrong, or unwise, in a configuration, with its place.
#pragma once

#include <string>

namespace sluice::config {

// "file:line:column: path: what is wrong, what is allowed".
struct ConfigError {
  std::string file;
  int line = 0;  // from 1; 0: the file as a whole
  int column = 0;
  std::string path;  // "clusters[2].ring_points"
  std::string message;
  std::string ToString() const;
};

}  // namespace sluice::config
