// Pictures of the pages, as inline SVG of a few hundred bytes. Each says in words what it shows.
#pragma once

#include <string>
#include <vector>

#include "admin/traffic_history.h"

namespace sluice::admin {

// Calls a second of the last ten minutes, a bar for each reading: its lower part, in another colour, is what failed.
// The newest is on the right, however few there are. Empty for no points.
std::string RatePicture(const std::vector<TrafficPoint>& points, int width, int height);
// p99 of the same time.
std::string LatencyPicture(const std::vector<TrafficPoint>& points, int width, int height);
// A bar of what is expected above one of what is; both 0..1, drawn as parts of `most`.
std::string SharePicture(double expected, double actual, double most);

}  // namespace sluice::admin
