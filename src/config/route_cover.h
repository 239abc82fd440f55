// RouteCover: does one route take every call that another one would? Then the other, if later, is dead.
#pragma once

#include "proxy/options.h"

namespace sluice::config {

// True only if certain: each condition of `first` follows from the conditions of `second`.
bool Covers(const proxy::RouteOptions& first, const proxy::RouteOptions& second);

}  // namespace sluice::config
