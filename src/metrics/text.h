// The pieces of Prometheus' text exposition format 0.0.4: names, escaping, numbers.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::metrics {

bool IsMetricName(std::string_view name);  // [a-zA-Z_:][a-zA-Z0-9_:]*
bool IsLabelName(std::string_view name);   // [a-zA-Z_][a-zA-Z0-9_]*, and not the reserved "__..."

std::string EscapeHelp(std::string_view help);         // \ and line feed
std::string EscapeLabelValue(std::string_view value);  // \, " and line feed

// `a="1",b="x y"`, in the order of names; empty without labels. `labels`: names and values, Labels of registry.h.
std::string FormatLabels(std::vector<std::pair<std::string, std::string>> labels);

// Shortest text that reads back as the same double; integers without exponent up to 2^53; +Inf, -Inf, NaN.
std::string FormatValue(double value);

// Appends `name{labels} value\n`.
void AppendSample(std::string& out, std::string_view name, std::string_view labels, std::string_view value);

}  // namespace sluice::metrics
