// The pieces of Prometheus' text exposition format 0.0.4: names, escaping, numbers.
#pragma once

#include <cstdint>
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

// Appends what EscapeLabelValue gives.
void AppendEscaped(std::string& out, std::string_view label_value);

// Shortest text that reads back as the same double; integers without exponent up to 2^53; +Inf, -Inf, NaN.
std::string FormatValue(double value);
// Of what AppendValue writes. False: it is no number.
bool ReadValue(std::string_view text, double& value);
// Append what FormatValue gives; a whole number.
void AppendValue(std::string& out, double value);
void AppendWhole(std::string& out, uint64_t value);
void AppendWhole(std::string& out, int64_t value);

}  // namespace sluice::metrics
