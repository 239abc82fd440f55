// Shrink: the fewest moves of a script that still fail (delta debugging, Zeller and Hildebrandt 2002).
#pragma once

#include <functional>

#include "hostile/move.h"

namespace sluice::hostile {

// `fails` plays a script and says whether it fails as the whole one did. `more`: false ends the search with what there
// is.
Script Shrink(Script script, const std::function<bool(const Script&)>& fails, const std::function<bool()>& more);

}  // namespace sluice::hostile
