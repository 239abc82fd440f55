// What the registry has counted, as values: told to another process, and taken from it.
#include <algorithm>
#include <map>
#include <mutex>

#include "metrics/registry_impl.h"

namespace sluice::metrics {
namespace {

// fn(what stands before the value, the value) for each line of `text`.
template <typename Fn>
void ForEachLine(std::string_view text, Fn fn) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const size_t space = line.rfind(' ');
    double value = 0;
    if (space == line.npos || !ReadValue(line.substr(space + 1), value)) continue;
    fn(line.substr(0, space), value);
  }
}

}  // namespace

void CountOn(std::map<std::string, double, std::less<>> lines, size_t from, std::string& out) {
  const std::string text = out.substr(from);
  out.resize(from);
  const auto write = [&out](std::string_view before, double value) {
    out.append(before).append(" ");
    AppendValue(out, value);
    out += '\n';
  };
  ForEachLine(text, [&](std::string_view before, double value) {
    const auto it = lines.find(before);
    write(before, it == lines.end() ? value : value + it->second);
    if (it != lines.end()) lines.erase(it);
  });
  for (const auto& [before, value] : lines) write(before, value);
}

void AddTo(Series& series, const std::vector<std::string>& values, size_t slot, const Counted& counted) {
  if (auto* counter = std::get_if<Counter>(&series.metric);
      counter != nullptr && counted.kind == Counted::Kind::kCounter)
    return counter->Add(slot, counted.count);
  if (auto* histogram = std::get_if<Histogram>(&series.metric);
      histogram != nullptr && counted.kind == Counted::Kind::kHistogram)
    return histogram->Add(counted.observed);
  auto* row = std::get_if<Row>(&series.metric);
  const auto value = std::find(values.begin(), values.end(), counted.by);
  if (row != nullptr && counted.kind == Counted::Kind::kCounter && value != values.end())
    row->counters[static_cast<size_t>(value - values.begin())].Add(slot, counted.count);
}

std::vector<Counted> Registry::Counts() const {
  std::vector<Counted> out;
  struct Lines {
    std::string name;
    std::vector<std::shared_ptr<const Collector>> collectors;
    std::map<std::string, double, std::less<>> former;
  };
  std::vector<Lines> collected;
  {
    std::lock_guard lock(impl_->mutex);
    for (const auto& [name, family] : impl_->families) {
      if (family.kind == "gauge") continue;
      if (!family.collectors.empty() || !family.lines.empty())
        collected.push_back({name, family.collectors, family.lines});
      for (const auto& [labels, series] : family.series) {
        Counted one{.name = name, .labels = labels};
        if (const auto* counter = std::get_if<Counter>(&series.metric)) {
          one.count = counter->Value();
          if (one.count != 0) out.push_back(std::move(one));
        } else if (const auto* histogram = std::get_if<Histogram>(&series.metric)) {
          one.kind = Counted::Kind::kHistogram;
          one.observed = histogram->Read();
          if (one.observed.count != 0) out.push_back(std::move(one));
        } else if (const auto* row = std::get_if<Row>(&series.metric)) {
          for (size_t i = 0; i < row->counters.size(); ++i) {
            one.count = row->counters[i].Value();
            one.by = family.values[i];
            if (one.count != 0) out.push_back(one);
          }
        }
      }
    }
    for (const auto& [place, of_series] : impl_->waiting) {
      for (const auto& [by, counted] : of_series) out.push_back(counted);
    }
  }
  for (Lines& family : collected) {
    std::string text;
    Samples samples(text, family.name, false);
    for (const auto& collector : family.collectors) (*collector)(samples);
    CountOn(std::move(family.former), 0, text);
    ForEachLine(text, [&](std::string_view before, double value) {
      if (value == 0) return;
      out.push_back({.kind = Counted::Kind::kLine, .name = family.name, .labels = std::string(before), .line = value});
    });
  }
  return out;
}

void Registry::AddCounts(const Counted& counted) {
  std::lock_guard lock(impl_->mutex);
  const auto family = impl_->families.find(counted.name);
  if (family != impl_->families.end() && family->second.kind == "gauge") return;
  if (counted.kind == Counted::Kind::kLine) {
    // Of a name that this process does not know there is nothing to count on.
    if (family == impl_->families.end() || !std::string_view(counted.labels).starts_with(counted.name)) return;
    auto& lines = family->second.lines;
    if (lines.contains(counted.labels) || lines.size() < kWaitingMax) lines[counted.labels] += counted.line;
    return;
  }
  if (family != impl_->families.end()) {
    if (const auto series = family->second.series.find(counted.labels); series != family->second.series.end())
      return AddTo(series->second, family->second.values, slots_, counted);
  }
  auto& of_series = impl_->waiting[std::pair(counted.name, counted.labels)];
  if (const auto there = of_series.find(counted.by); there != of_series.end()) {
    there->second.count += counted.count;
    there->second.observed.Add(counted.observed);
  } else if (impl_->waiting_count < kWaitingMax) {
    ++impl_->waiting_count;
    of_series.emplace(counted.by, counted);
  }
}

}  // namespace sluice::metrics
