#include "hostile/shrink.h"

#include <algorithm>

namespace sluice::hostile {

Script Shrink(Script script, const std::function<bool(const Script&)>& fails, const std::function<bool()>& more) {
  for (size_t parts = 2; script.size() >= 2 && more();) {
    const size_t part = (script.size() + parts - 1) / parts;
    bool smaller = false;
    for (size_t at = 0; at < script.size() && more(); at += part) {
      Script without(script.begin(), script.begin() + static_cast<std::ptrdiff_t>(at));
      without.insert(without.end(), script.begin() + static_cast<std::ptrdiff_t>(std::min(at + part, script.size())),
                     script.end());
      if (without.empty() || !fails(without)) continue;
      script = without;
      parts = std::max<size_t>(parts - 1, 2);
      smaller = true;
      break;
    }
    if (smaller) continue;
    if (parts >= script.size()) break;
    parts = std::min(parts * 2, script.size());
  }
  // Then single arguments: fields that do not matter, counts that may be less.
  for (size_t i = 0; i < script.size() && more(); ++i) {
    for (size_t at = script[i].args.size(); at > 2 && more(); --at) {
      Script without = script;
      without[i].args.erase(without[i].args.begin() + static_cast<std::ptrdiff_t>(at - 1));
      if (without[i].verb == "call" && fails(without)) script = without;
    }
  }
  return script;
}

}  // namespace sluice::hostile
