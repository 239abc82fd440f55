// Exemplars: of a histogram of durations, some observations of which there is a trace: for each series and exported
// bucket the newest.
//
// Bounded: kSeriesMax series with kPerSeriesMax each. Filled where traces are exported, read by a scrape; no call comes
// here.
//
// Thread safety: any thread; a mutex is held for one series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::metrics {

struct Exemplar {
  uint64_t trace_high = 0, trace_low = 0, span = 0;
  uint64_t nanos = 0;      // the duration that was observed
  int64_t wall_nanos = 0;  // when, since 1970
  bool operator==(const Exemplar&) const = default;
};

class Exemplars {
 public:
  static constexpr size_t kSeriesMax = 4000, kPerSeriesMax = 16;

  // Of the histogram `family`, whose series have the one label `label`.
  Exemplars(std::string_view family, std::string_view label);

  // Of the series with that value of the label. One of the same bucket goes, or where there are kPerSeriesMax the
  // oldest. A series above kSeriesMax has none.
  void Put(std::string_view value, const Exemplar& exemplar);
  // By nanos. `escaped`: the label's value as it stands in the text.
  std::vector<Exemplar> Of(std::string_view escaped) const;
  // What a line of a bucket begins with; the label's value follows.
  const std::string& line_begin() const { return line_begin_; }

 private:
  const std::string line_begin_;
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<Exemplar>, std::less<>> kept_;  // by the escaped value; guarded by mutex_
};

}  // namespace sluice::metrics
