// FloodReports: counts, logs and remembers the connections that ended because of what their peer did (flood/kind.h),
// and counts and logs requests that the session has refused (flood/refusal.h).
//
// A peer that is cut off may come back, as often as it likes: the log has at most one line a second of a worker,
// which says how many it stands for; the counters have them all.
#pragma once

#include <array>
#include <chrono>
#include <string_view>

#include "base/log_limit.h"
#include "http2/fields/respell.h"
#include "http2/flood/kind.h"
#include "http2/flood/penalty_box.h"
#include "http2/flood/refusal.h"
#include "metrics/registry.h"
#include "runtime/worker.h"

namespace sluice::http2 {

// What the process knows of floods: sluice_http2_abuse_total{side,kind}, sluice_http2_refused_requests_total{reason},
// sluice_http2_delayed_connections_total, and which clients it came from. Thread safety: as of its members; made once a
// process.
struct FloodRecord {
  explicit FloodRecord(metrics::Registry& registry);
  std::array<metrics::Counter*, kFloodKinds> downstream{};  // [kNone] is null
  std::array<metrics::Counter*, kFloodKinds> upstream{};
  metrics::Counter* delayed = nullptr;
  std::array<metrics::Counter*, kRefusals> refused{};
  // sluice_http2_respelled_fields_total{side,change}; of each side blanks, bin, dropped.
  struct Respelling {
    metrics::Counter *blanks = nullptr, *bin = nullptr, *dropped = nullptr;
  };
  Respelling respelled_downstream, respelled_upstream;
  PenaltyBox clients;
};

// One worker's.
class FloodReports {
 public:
  // `record`: null: nothing is counted or remembered. Outlives this.
  explicit FloodReports(FloodRecord* record = nullptr) : record_(record) {}
  // `kind` is not kNone. `why`: the session's own words. Returns whether a line was logged.
  bool Report(runtime::Worker& worker, bool downstream, std::string_view peer, FloodKind kind, std::string_view why);
  // A request that the session has not passed on. `why` may be empty; `path` is the client's, as it came. Returns
  // whether a line was logged.
  bool ReportRefused(runtime::Worker& worker, std::string_view peer, Refusal refusal, std::string_view why,
                     std::string_view path);
  // Fields of a message of the peer's that go on otherwise than they came, or not. Returns whether a line was logged,
  // which is only where an endpoint's response lost a field.
  bool ReportRespelled(runtime::Worker& worker, bool downstream, std::string_view peer, const Respelled& respelled);
  // A new connection of the client `peer`: how long its bytes wait, because its address was cut off a short while ago;
  // `most` at most.
  base::Nanos Delay(runtime::Worker& worker, std::string_view peer, base::Nanos most);

 private:
  FloodRecord* record_;
  base::LogLimit log_{1, std::chrono::seconds(1)};
  base::LogLimit refused_log_{};
  base::LogLimit dropped_log_{1, std::chrono::seconds(1)};
};

}  // namespace sluice::http2
