// Endpoint: one backend of a cluster, shared by all workers and by all lists in which it stands.
//
// It holds what must survive a change of the list: identity, metrics, and each worker's pool of connections. What a
// list says of it (weight, draining) is in ClusterState. Immutable but for the atomics and the pools; pool w belongs to
// worker w.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "limits/concurrency_limiter.h"
#include "metrics/registry.h"
#include "upstream/cluster_limits.h"
#include "upstream/connect_error.h"
#include "upstream/drain_ramp.h"
#include "upstream/endpoint_series.h"
#include "upstream/endpoint_state.h"
#include "upstream/feedback.h"
#include "upstream/health/active_health.h"
#include "upstream/health/health_report.h"
#include "upstream/health/judge.h"
#include "upstream/health/outcome_cell.h"
#include "upstream/options.h"

namespace sluice::upstream {

class EndpointPool;

struct EndpointMetrics {
  metrics::Counter* failures;
  metrics::Gauge* in_flight;
  metrics::Gauge* connections;
  metrics::Counter* connects;
  metrics::Counter* connect_failures;
  metrics::Counter* lost;
  metrics::Counter* timeouts;
};

class Endpoint {
 public:
  // `load`: of its cluster. `own_series`: it is not counted with others (EndpointSeries).
  Endpoint(std::string cluster, std::string name, net::Address address, std::shared_ptr<const ClusterOptions> options,
           std::shared_ptr<ClusterLoad> load, uint32_t workers, metrics::Registry& registry, bool own_series = true);
  ~Endpoint();
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  const std::string& cluster() const { return cluster_; }
  const std::string& name() const { return name_; }
  const net::Address& address() const { return address_; }
  // Of the list it came with first. A pool goes by those of the newest list it has seen.
  const std::shared_ptr<const ClusterOptions>& options() const { return options_; }
  EndpointMetrics& metrics() { return metrics_; }
  bool has_own_series() const { return own_series_ != nullptr; }
  EndpointSeries& series() { return has_own_series() ? *own_series_ : load_->shared_series(); }
  // Attempts begun, over all workers. Any thread; may be a moment old.
  uint64_t calls() const;
  // Bounds the calls under way to it, over all workers. Never null; begins with options().endpoint_concurrency.
  const std::shared_ptr<limits::ConcurrencyLimiter>& concurrency() const { return concurrency_; }
  ClusterLoad& load() { return *load_; }

  // Worker `w` only: its pool, or null if it has none (yet, or any more).
  EndpointPool* pool(uint32_t w) const { return pools_[w]; }
  void set_pool(uint32_t w, EndpointPool* pool) { pools_[w] = pool; }

  // Out of every list from now on. Set before workers are told to drain their pools, so that a call with an older list
  // does not open a new one. Relaxed: the Post that tells the worker orders it.
  void MarkRemoved() { health_.fetch_or(kRemovedBit, std::memory_order_relaxed); }
  bool removed() const { return (health_.load(std::memory_order_relaxed) & kRemovedBit) != 0; }
  // One load. kBackoff: at least one worker is in back-off, until its next attempt to connect; each worker picks by its
  // own (EndpointPool::Usable).
  EndpointHealth health() const;

  // How much of what its health says a pick goes by.
  enum class Choosiness : uint8_t {
    kShare,  // an endpoint that warms or is slow takes its share of the keys
    kOut,    // one that is ejected is passed over
    kNone,   // only one that was removed is
  };
  // Whether it takes a call with this key. One load. The keys that a share admits are those of every larger one too.
  bool Admits(Choosiness choosiness, uint64_t key) const {
    const uint32_t word = health_.load(std::memory_order_relaxed);
    if ((word & (kRemovedBit | kOutBit | kRepeatableBit | kRefusedMask)) == 0) [[likely]]
      return true;
    return AdmitsBy(word, choosiness, key, /*repeatable=*/false);
  }
  // The same of a call that may be repeated. True also for an endpoint that is out, where a trial is asked for:
  // TakeTrial follows if it is picked.
  bool AdmitsRepeatable(Choosiness choosiness, uint64_t key) const {
    return AdmitsBy(health_.load(std::memory_order_relaxed), choosiness, key, /*repeatable=*/true);
  }
  // Calls pass it over.
  bool out() const { return (health_.load(std::memory_order_relaxed) & kOutBit) != 0; }
  // The caller, to one that is out, is the one call that the judge asks for; false: another one is.
  bool TakeTrial() { return (health_.fetch_and(~kRepeatableBit, std::memory_order_relaxed) & kRepeatableBit) != 0; }

  // What the judge says: calls pass it over; or it takes `share` of its keys, 0..1.
  struct Admission {
    bool out = false;
    double share = 1;
    // Calls that may be repeated are treated otherwise: one may be sent though it is out; or they alone are to be sent.
    bool repeatable = false;
    bool drained = false;  // to the end
  };
  void SetAdmission(const Admission& admission);
  bool drained() const { return (health_.load(std::memory_order_relaxed) & kDrainedBit) != 0; }

  // What worker `w` has counted of its answers; made on first use. Worker `w` only.
  OutcomeCell& MakeCell(uint32_t w);
  // Null: it has counted nothing. Any thread.
  OutcomeCell* cell(uint32_t w) const { return cells_[w].load(std::memory_order_acquire); }
  // Its health, under its cluster's ClusterHealth.
  EndpointRecord& record() { return record_; }
  // Its health's state as it was published last. Any thread may read.
  HealthState shown_state() const { return shown_state_.load(std::memory_order_relaxed); }
  void set_shown_state(HealthState state) { shown_state_.store(state, std::memory_order_relaxed); }
  // What it says of itself, and the Watch or Check that is out. Under its cluster's ClusterHealth.
  struct Asked {
    ActiveHealth health;
    std::shared_ptr<HealthReport> report;  // of what is out; null: nothing
    uint32_t worker = 0;                   // where that is
  };
  Asked& asked() { return asked_; }
  // What the workers have counted, for the judge; `with_latency`: its record is told the times to first byte. Under its
  // cluster's ClusterHealth.
  Judge::Subject Look(bool with_latency, base::TimePoint now);

  // What worker `w` has seen of the endpoint; `count` times. Every outcome comes here (EndpointPool), and is counted.
  void Report(uint32_t w, Outcome outcome, uint64_t count = 1);

  // Any worker: the port has refused a connection; a connection to it works. The next Look says kRestarted where the
  // second follows the first.
  void NoteRefused() { port_.store(EndpointPort::kRefused, std::memory_order_relaxed); }
  void NoteConnected();

  // Its server has ended a connection on which `resets` streams had been reset lately: half of that is the most that
  // one of them is to have. Any thread.
  void LearnResets(uint32_t resets, base::TimePoint now);
  // The bound doubles after kResetsKept: what was learned may have been another process's, or another fault's. Any
  // thread.
  static constexpr base::Nanos kResetsKept = std::chrono::minutes(10);
  void EaseResets(base::TimePoint now);
  // UINT32_MAX: nothing is known of such a bound.
  uint32_t resets_max() const { return resets_max_.load(std::memory_order_relaxed); }

  // Why a worker could not connect last.
  ConnectError& connect_error() { return connect_error_; }

  // The state of each worker's connections, for inspection: any thread may read, worker w writes its own.
  void set_link(uint32_t w, EndpointLink link);
  // The best of all workers: connected, else connecting, else in back-off, else idle.
  EndpointLink link() const;
  // A worker that is connected: the first from `from` (modulo their number) on; `from` itself where none is.
  uint32_t ConnectedWorker(uint32_t from) const;

 private:
  const std::string cluster_, name_;
  const net::Address address_;
  const std::shared_ptr<const ClusterOptions> options_;
  const std::shared_ptr<ClusterLoad> load_;
  const std::shared_ptr<limits::ConcurrencyLimiter> concurrency_;
  const std::unique_ptr<EndpointSeries> own_series_;  // null: it counts in its cluster's shared ones
  EndpointMetrics metrics_;
  std::vector<EndpointPool*> pools_;
  std::vector<std::atomic<EndpointLink>> links_;
  bool AdmitsBy(uint32_t word, Choosiness choosiness, uint64_t key, bool repeatable) const;

  // Why calls pass it over. Bit 0: it was removed. Bit 1: it is ejected. Bit 2: it has been drained, which counts where
  // the list says so (ListedEndpoint). Bit 3: of calls that may be repeated it takes one though it is ejected; if it is
  // not ejected, it takes only such calls. Bits 4 to 11: how many of 256 keys it does not take. From bit 16 on: how
  // many workers are in back-off.
  static constexpr uint32_t kRemovedBit = 1, kOutBit = 2, kDrainedBit = 4, kRepeatableBit = 8, kRefusedShift = 4,
                            kRefusedMask = 255 << kRefusedShift, kOneInBackoff = 1 << 16;
  std::atomic<uint32_t> health_{0};
  std::vector<std::atomic<OutcomeCell*>> cells_;  // owned; each made by its worker
  EndpointRecord record_;
  std::atomic<HealthState> shown_state_{HealthState::kUp};
  std::atomic<EndpointPort> port_{EndpointPort::kSame};
  Asked asked_;
  ConnectError connect_error_;
  // A bound, beside any other state, and when it was set: relaxed.
  std::atomic<uint32_t> resets_max_{UINT32_MAX};
  std::atomic<base::TimePoint> resets_at_{};
};

// An endpoint, and what a list says of it.
struct ListedEndpoint {
  std::shared_ptr<Endpoint> endpoint;
  double weight = 1.0;
  DrainRamp ramp{};       // while draining
  bool draining = false;  // keeps its place on the ring, takes no new calls, or fewer and fewer by the ramp
  uint8_t tier = 0;       // Tier::id

  // Whether new calls may go to it, as far as the list goes.
  bool TakesCalls() const { return !draining || (ramp.gradual() && !endpoint->drained()); }
};

}  // namespace sluice::upstream
