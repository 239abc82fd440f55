// Admission: a call's way through the limits, in order: process, route's rate, client's rate, cluster's rate, cluster; then,
// for each attempt, the endpoint. What it was given it holds, and gives back when it is destroyed, whatever came of the call.
//
//   Advance ... kWait: the task sleeps until it is woken or check_at, and calls Advance again ... kGo
//
// The worker of the call only; may be destroyed at any time. A call whose route and cluster have no limits has none
// (Needed), so that it pays a few loads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "limits/bound.h"
#include "limits/concurrency_limiter.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/rate_limiter.h"
#include "proxy/snapshot.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

class Admission {
 public:
  // Who asks, and for what. The pointers must live as long as the Admission; see Keep.
  struct Request {
    const RouteConfig* config;
    const Route* route;
    const upstream::ClusterState* cluster;
    uint64_t flow;            // the client connection: connections share a queue fairly
    uint32_t worker;          // slot of the counters
    uint64_t client_key = 0;  // for the route's client_rate_limit; Needed does not look at it
  };
  struct Wait {
    std::string bound;
    base::Nanos time{0};
  };

  static bool Needed(const Request& request);
  explicit Admission(const Request& request) : request_(request) {}
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  // Through all limits but the endpoint's. After kGo: kGo again.
  limits::Answer Advance(base::TimePoint now, base::TimePoint deadline);
  // Takes the endpoint's permit if one is free. After a former attempt's was dropped.
  bool TryEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster);
  // As Advance, for the endpoint's permit, in its queue.
  limits::Answer AdvanceEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster, base::TimePoint now);
  // The attempt is over.
  void DropEndpoint() { endpoint_.Drop(); }

  // The bound that the call waits for, or that refused it last. Null: none.
  const limits::BoundMetrics* bound() const { return bound_; }
  bool is_rate() const { return stage_ >= kRouteRate && stage_ <= kClusterRate; }
  bool waiting() const { return waiting_; }
  // The call has ended otherwise while it waited: by its deadline, or because the client has gone.
  void GiveUp(bool deadline_passed, base::TimePoint now);
  // The call ended before it was sent anywhere: what the rates let go is for the next call.
  void RefundRates();
  // The pointers of the Request stay alive, though the call goes on with newer ones.
  void Keep(const WorkerRef<RouteConfig>& config, const WorkerRef<Snapshot>& snapshot);
  // The call has been sent: nothing is refunded any more, and what was kept may go.
  void Forget();
  // What it waited for so far, in order; the wait that goes on is not in it.
  const absl::InlinedVector<Wait, 1>& waits() const { return waits_; }

 private:
  enum Stage : uint8_t { kProcess, kRouteRate, kClientRate, kClusterRate, kCluster, kEndpoint };

  limits::Answer Ask(base::TimePoint now, base::TimePoint deadline);
  limits::Answer Poll(base::TimePoint now);
  limits::Answer Settle(limits::Answer answer, base::TimePoint now);
  void EndWait(base::TimePoint now);
  void NoteGrant();

  Request request_;
  uint8_t stage_ = kProcess;
  bool waiting_ = false;
  base::TimePoint since_{};
  const limits::BoundMetrics* bound_ = nullptr;
  limits::ConcurrencyLimiter::Ticket process_, cluster_, endpoint_;
  std::array<limits::RateLimiter::Ticket, 3> rates_;
  std::array<limits::RateLimiter*, 3> granted_{};  // uncapped ones that have let it go
  std::shared_ptr<limits::RateLimiter> client_rate_;
  WorkerRef<RouteConfig> kept_config_;
  WorkerRef<Snapshot> kept_snapshot_;
  absl::InlinedVector<Wait, 1> waits_;
};

// "cluster/users/rate=3.200ms,process/concurrency=0.150ms": for the log and the sluice-waited trailer.
std::string FormatWaits(const absl::InlinedVector<Admission::Wait, 1>& waits);

}  // namespace sluice::proxy
