// The registry's tables, for its own files: families by name, series by their labels. What is in a table stays there,
// at its address.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/check.h"
#include "metrics/arena.h"
#include "metrics/registry.h"
#include "metrics/text.h"

namespace sluice::metrics {

// Of AddCounters.
struct Row {
  std::vector<Counter> counters;  // by the family's values
  size_t split;                   // where in the labels' text the value goes
};

struct Series {
  std::variant<std::monostate, Counter, Gauge, Histogram, Row> metric;
  Show show;
  // Has had a line, and keeps it: a gauge may come back to zero.
  mutable std::atomic<bool> shown{false};
};

using Collector = std::function<void(Samples&)>;
using SeriesMap = std::map<std::string, Series, std::less<>>;  // by FormatLabels; without the value of `by`

struct Family {
  std::string kind, help;
  double scale;                     // histograms only
  std::string by;                   // rows only
  std::vector<std::string> values;  // rows only
  std::vector<std::string> bounds;  // histograms only: the text of each bucket's bound; empty: it is not exported
  SeriesMap series;                 // its own addresses stay, those of its nodes too
  std::vector<std::shared_ptr<const Collector>> collectors;
  // Of the lines that collectors write, by all of a line before its value: what another process had counted.
  std::map<std::string, double, std::less<>> lines;
};

// `counted` is of `series`, whose family has `values`.
void AddTo(Series& series, const std::vector<std::string>& values, size_t slot, const Counted& counted);
// The collectors' lines in `out` from `from` on count on from `lines`; of those that they do not write there is one
// too.
void CountOn(std::map<std::string, double, std::less<>> lines, size_t from, std::string& out);

struct Registry::Impl {
  explicit Impl(size_t slots) : arena(slots + 1), shared_slot(slots) {}

  // Finds or makes the family; CHECKs that a name keeps its kind, help and scale. The mutex is held.
  Family& FamilyOf(std::string_view name, std::string_view help, std::string_view kind, double scale) {
    SLUICE_CHECK(IsMetricName(name));
    auto it = families.find(name);
    if (it == families.end()) {
      it = families
               .emplace(std::string(name), Family{std::string(kind), std::string(help), scale, {}, {}, {}, {}, {}, {}})
               .first;
    }
    SLUICE_CHECK(it->second.kind == kind);
    SLUICE_CHECK(it->second.help == help);
    SLUICE_CHECK(it->second.scale == scale);
    return it->second;
  }

  // Finds or makes (with `fill`, called with the metric's place and its labels) the series of `labels`, of which `by`
  // is left as it is. The mutex is held.
  template <typename T, typename Fill>
  T* SeriesOf(Family& family, Labels labels, std::string_view by, Show show, Fill fill) {
    for (const auto& [name, value] : labels) SLUICE_CHECK(IsLabelName(name) && name != "le");
    std::string key = FormatLabels(labels);
    auto it = family.series.find(key);
    if (it == family.series.end() && family.series.size() >= kSeriesPerNameMax) {
      for (auto& [name, value] : labels) value = name == by ? "" : "overflow";
      key = FormatLabels(labels);
      it = family.series.find(key);
    }
    if (it == family.series.end()) {
      it = family.series.try_emplace(std::move(key)).first;
      it->second.show = show;
      fill(it->second.metric, it->first);
      if (!waiting.empty()) AddWaiting(family, *it);
    }
    T* metric = std::get_if<T>(&it->second.metric);
    SLUICE_CHECK(metric != nullptr);
    return metric;
  }

  // Gives a series that has just been made what another process had counted of it. The mutex is held.
  void AddWaiting(const Family& family, SeriesMap::value_type& series) {
    const auto name =
        std::find_if(families.begin(), families.end(), [&](const auto& f) { return &f.second == &family; });
    const auto found = waiting.find(std::pair(name->first, series.first));
    if (found == waiting.end()) return;
    for (const auto& [by, counted] : found->second) AddTo(series.second, family.values, shared_slot, counted);
    waiting_count -= found->second.size();
    waiting.erase(found);
  }

  Counter MakeCounter(std::atomic<uint64_t>* cells) { return {cells, CellArena::kRowCells, shared_slot}; }

  Row* RowOf(Family& family, Labels labels, Show show) {
    labels.emplace_back(family.by, "");
    const size_t count = family.values.size();
    return SeriesOf<Row>(family, std::move(labels), family.by, show, [&](auto& metric, const std::string& key) {
      Row& row = metric.template emplace<Row>();
      std::atomic<uint64_t>* cells = arena.Allocate(count);
      for (size_t i = 0; i < count; ++i) row.counters.push_back(MakeCounter(cells + i));
      // A quote in a value stands behind a backslash, so this is found in its place only.
      const std::string empty = family.by + "=\"\"";
      row.split = (key.starts_with(empty) ? 0 : key.find("," + empty) + 1) + empty.size() - 1;
    });
  }

  // Where the family's series come from `it` on, at most kBatch of them. Moves `it`.
  using Batch = std::vector<const SeriesMap::value_type*>;
  void Take(const Family& family, SeriesMap::const_iterator& it, Batch& batch) const {
    batch.clear();
    std::lock_guard lock(mutex);
    for (; it != family.series.end() && batch.size() < kBatch; ++it) batch.push_back(&*it);
  }

  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;  // guarded by mutex
  CellArena arena;                                      // guarded by mutex (allocation; the cells are not)
  const size_t shared_slot;
  // By name and labels, then by the value of `by`: of series that are not there. Guarded by mutex.
  std::map<std::pair<std::string, std::string>, std::map<std::string, Counted>> waiting;
  size_t waiting_count = 0;               // the same
  std::atomic<size_t> rendered_bytes{0};  // of the last text: the next one is about as long
};

}  // namespace sluice::metrics
