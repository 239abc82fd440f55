// AbuseReports: counts and logs the connections that ended because of what their peer did (abuse.h).
//
// A peer that is cut off may come back at once, as often as it likes: the log has at most one line a second of a worker,
// which says how many it stands for; the counters have them all.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "base/clock.h"
#include "http2/abuse.h"
#include "metrics/registry.h"
#include "runtime/worker.h"

namespace sluice::http2 {

// sluice_http2_abuse_total{side,kind}. Thread safety: as of its counters; made once a process.
struct AbuseMetrics {
  explicit AbuseMetrics(metrics::Registry& registry);
  std::array<metrics::Counter*, kAbuses> downstream{};  // [kNone] is null
  std::array<metrics::Counter*, kAbuses> upstream{};
};

// One worker's.
class AbuseReports {
 public:
  // `metrics`: null: nothing is counted. Outlives this.
  explicit AbuseReports(const AbuseMetrics* metrics = nullptr) : metrics_(metrics) {}
  // `abuse` is not kNone. `why`: the session's own words. Returns whether a line was logged.
  bool Report(runtime::Worker& worker, bool downstream, std::string_view peer, Abuse abuse, std::string_view why);

 private:
  static constexpr std::chrono::seconds kLogEvery{1};
  const AbuseMetrics* metrics_;
  base::TimePoint next_line_{};
  uint64_t not_logged_ = 0;
};

}  // namespace sluice::http2
