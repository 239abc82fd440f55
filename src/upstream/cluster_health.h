// ClusterHealth: the health of a cluster's endpoints: the judge, fed from the workers' cells and with what the
// endpoints say of themselves, and what follows of its verdicts: what picks go by, log lines, metrics, probes, Watches.
// One a cluster, for as long as the process knows the cluster: changes of its list and options keep it.
//
// Thread safety: every function from any thread. Pass does nothing while another one is at work, so it never waits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log_limit.h"
#include "base/random.h"
#include "metrics/registry.h"
#include "upstream/endpoint.h"
#include "upstream/health/health_report.h"
#include "upstream/health/judge.h"
#include "upstream/health/probe_result.h"
#include "upstream/spill.h"

namespace sluice::upstream {

using ListedEndpoints = std::span<const ListedEndpoint>;

// An endpoint's health, to be shown.
struct HealthView {
  HealthState state = HealthState::kUp;
  base::Nanos in_state{};  // how long
  std::string why;         // of the last change, and which calls pass it over
  std::string last_error;  // the newest of probes, ejections and connects, else the cause of a failure; empty: none
  std::optional<base::Nanos> probe_in;          // until the next try of a connection; null: none is planned
  double share = 1;                             // of its keys that it takes
  std::string health_service;                   // what is asked of it, and its last answer; empty: it is not asked
  std::optional<base::Nanos> last_error_ago{};  // null: there is none
};
// A change, to be shown.
struct HealthChangeView {
  base::Nanos ago{};
  std::string endpoint;
  HealthState from, to;
  std::string why;
};

class ClusterHealth {
 public:
  // An endpoint that a connection is to be tried to; the result is looked for in later passes.
  struct Probe {
    std::shared_ptr<Endpoint> endpoint;
    std::shared_ptr<ProbeResult> result;
  };
  // A Watch or a Check to be begun, and one to be ended: each by the worker named.
  struct Ask {
    std::shared_ptr<Endpoint> endpoint;
    uint32_t worker = 0;
    std::shared_ptr<HealthReport> report;
    bool watch = false;
  };
  struct Stop {
    std::shared_ptr<Endpoint> endpoint;
    uint32_t worker = 0;
    std::shared_ptr<HealthReport> report;
  };
  // So many are begun by a pass: a thousand endpoints are not connected to at once.
  static constexpr uint32_t kAsksPerPass = 32;
  // How soon the next pass is wanted: of several clusters the greatest counts.
  enum class Pace : uint8_t {
    kIdle,    // all endpoints are up, none has calls or is asked: later will do
    kUsual,   // after Judge::kPeriod
    kBusy,    // after Judge::kBusy: an endpoint gets calls one after the other
    kCloser,  // after Judge::kCloser
  };
  struct Work {
    std::vector<Probe> probes;
    std::vector<Ask> asks;
    std::vector<Stop> stops;
    // Back in rotation: back-offs of workers are to end.
    std::vector<std::shared_ptr<Endpoint>> returned;
    // Ejected, or their trial has failed, because calls stay without an answer: all workers are to leave their
    // connections to it.
    std::vector<std::shared_ptr<Endpoint>> silent;
    bool backoff = false;      // a worker cannot connect to some endpoint, or it is ejected
    Pace pace = Pace::kUsual;  // of the next pass
  };

  // `seed`: of the jitter.
  ClusterHealth(std::string cluster, uint64_t seed, metrics::Registry& registry);
  // Before the first pass.
  void SetSeedForTest(uint64_t seed);

  // Judges the endpoints of this cluster's list, and says `spill` what follows of it.
  Work Pass(const ClusterOptions& options, ListedEndpoints endpoints, Spill& spill, base::TimePoint now);

  // `added` are new in the list, which is not in force yet: they begin with a small share where those that stay have
  // carried enough of the calls to take them on; else, and without slow start, with all.
  void Join(const ClusterOptions& options, ListedEndpoints before, ListedEndpoints after,
            std::span<const std::shared_ptr<Endpoint>> added, base::TimePoint now);

  enum class Order : uint8_t { kEject, kRestore, kResetBackoff };
  // To `endpoint`, one of the list. kInvalidArgument: the last endpoint in rotation is not ejected.
  base::Status Command(ListedEndpoints endpoints, Endpoint& endpoint, Order order, base::TimePoint now);
  // A handover: of the endpoints that are ejected or warm, by name; and as another process has left one of the list.
  std::vector<std::pair<std::string, EndpointRecord::Saved>> Save(ListedEndpoints endpoints, base::TimePoint now);
  void Restore(Endpoint& endpoint, const EndpointRecord::Saved& saved, base::TimePoint now);
  HealthView Describe(Endpoint& endpoint, base::TimePoint now);
  // The last ChangeLog::kChangesMax, oldest first.
  std::vector<HealthChangeView> Changes(base::TimePoint now);

 private:
  struct Pending {
    Probe probe;
    base::TimePoint until;  // a result that has not come by then is lost
  };
  void TakeResults(base::TimePoint now, Work* work);
  void BeginProbe(const std::shared_ptr<Endpoint>& endpoint, const ClusterOptions& options, base::TimePoint now,
                  Work* work);
  void Reconnect(const ClusterOptions& options, ListedEndpoints endpoints, base::TimePoint now, Work* work);
  static ConnectError::Seen LastError(Endpoint& endpoint);
  void TellReach(ListedEndpoints endpoints, base::TimePoint now);
  void Spread(const SpillOptions& options, ListedEndpoints endpoints, Spill& spill, base::TimePoint now);
  void AskAll(const ClusterOptions& options, ListedEndpoints endpoints, base::TimePoint now, Work* work);
  void Publish(Endpoint& endpoint);
  Pace PaceAfter(std::span<const Judge::Subject> subjects) const;
  void Tell();

  const std::string cluster_;
  metrics::Registry& registry_;
  std::array<metrics::Counter*, kDetectors> ejections_{};
  std::array<metrics::Counter*, kSuppressions> suppressed_{};
  metrics::Counter* doubts_;
  std::array<metrics::Counter*, kHealthStates> changes_{};

  std::mutex mutex_;
  // Under mutex_:
  Judge judge_;
  Judge::Counts told_;
  std::array<uint64_t, kHealthStates> changes_counted_{};
  uint64_t changes_told_ = 0;
  base::TimePoint latency_at_ = base::TimePoint::min();  // when times to first byte are summed next
  std::set<const Endpoint*> unreachable_;  // to which no worker has a connection or can make one, as it was logged
  base::LogLimit reach_log_;
  std::vector<Pending> pending_;
  base::Random random_;
  // When a connection to an endpoint in back-off may be tried next.
  std::map<const Endpoint*, base::TimePoint> reconnect_at_;
};

}  // namespace sluice::upstream
