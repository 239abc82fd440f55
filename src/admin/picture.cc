#include "admin/picture.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "admin/html.h"

namespace sluice::admin {
namespace {

void Begin(std::string& out, int width, int height, std::string_view words) {
  const std::string w = std::to_string(width), h = std::to_string(height);
  Append(out, "<svg width=\"", w, "\" height=\"", h, "\" viewBox=\"0 0 ", w, " ", h, "\" role=\"img\"><title>", words,
         "</title><path class=\"axis\" d=\"M0 ", std::to_string(height - 1), "h", w, "\"/>");
}

// Bars of `value` over the width, the highest as high as the picture. `top`: of the scale.
template <typename Value>
void Bars(std::string& out, const std::vector<TrafficPoint>& points, int width, int height, double top,
          std::string_view attributes, Value value) {
  const size_t first = TrafficHistory::kPoints - points.size();
  std::string path;
  for (size_t i = 0; i < points.size(); ++i) {
    const double part = top > 0 ? value(points[i]) / top : 0;
    if (part <= 0) continue;
    const long up = std::max<long>(1, std::lround(std::min(part, 1.0) * (height - 2)));
    const size_t x = (first + i) * static_cast<size_t>(width) / TrafficHistory::kPoints;
    Append(path, "M", std::to_string(x + 1), " ", std::to_string(height - 1), "v-", std::to_string(up));
  }
  if (!path.empty()) Append(out, "<path", attributes, " d=\"", path, "\"/>");
}

std::string StrokeWidth(int width) {
  return " stroke-width=\"" +
         std::to_string(std::max<size_t>(1, static_cast<size_t>(width) / TrafficHistory::kPoints - 1)) + "\"";
}

}  // namespace

std::string RatePicture(const std::vector<TrafficPoint>& points, int width, int height) {
  if (points.empty()) return {};
  double top = 0, failed = 0;
  for (const TrafficPoint& point : points) {
    top = std::max(top, point.calls);
    failed = std::max(failed, point.failed);
  }
  std::string out;
  Begin(
      out, width, height,
      "calls a second in the last ten minutes: at most " + NumberText(top) + ", failed at most " + NumberText(failed));
  const std::string stroke = StrokeWidth(width);
  Bars(out, points, width, height, top, stroke, [](const TrafficPoint& point) { return point.calls; });
  Bars(out, points, width, height, top, stroke + " class=\"f\"",
       [](const TrafficPoint& point) { return point.failed; });
  return out + "</svg>";
}

std::string LatencyPicture(const std::vector<TrafficPoint>& points, int width, int height) {
  if (points.empty()) return {};
  base::Nanos top{0};
  for (const TrafficPoint& point : points) top = std::max(top, point.p99);
  std::string out;
  Begin(out, width, height, "p99 in the last ten minutes: at most " + LatencyText(top));
  Bars(out, points, width, height, static_cast<double>(top.count()), StrokeWidth(width) + " class=\"l\"",
       [](const TrafficPoint& point) { return static_cast<double>(point.p99.count()); });
  return out + "</svg>";
}

std::string SharePicture(double expected, double actual, double most) {
  constexpr int kWidth = 60;
  const auto bar = [most](double share) {
    const double part = most > 0 ? std::clamp(share / most, 0.0, 1.0) : 0;
    return std::to_string(std::lround(part * kWidth));
  };
  std::string out;
  Append(out,
         "<svg width=\"60\" height=\"11\" role=\"img\"><title>grey: keys, blue: calls</title><path class=\"e\" d=\"M0 "
         "2.5h",
         bar(expected), "\"/><path class=\"a\" d=\"M0 8h", bar(actual), "\"/></svg>");
  return out;
}

}  // namespace sluice::admin
