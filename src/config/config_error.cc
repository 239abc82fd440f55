#include "config/config_error.h"

#include "config/text.h"

namespace sluice::config {

std::string ConfigError::ToString() const {
  std::string out = file;
  if (line > 0) out += Cat(":", line, ":", column);
  if (!path.empty()) out += Cat(": ", path);
  out += Cat(": ", message);
  return out;
}

}  // namespace sluice::config
