#include "config/config_error.h"

#include "base/visible_text.h"
#include "config/text.h"

namespace sluice::config {

std::string ConfigError::ToString() const {
  // What stands in a file may stand in a message, and must not move the cursor of the terminal that shows it.
  std::string out = base::VisibleText(file);
  if (line > 0) out += Cat(":", line, ":", column);
  if (!path.empty()) out += Cat(": ", base::VisibleText(path));
  out += Cat(": ", base::VisibleText(message));
  return out;
}

}  // namespace sluice::config
