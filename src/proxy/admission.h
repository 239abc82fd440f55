// Admission: a call's way through the limits, in order: process, route's rate, client's rate, cluster's rate, cluster;
// then, for each attempt, the endpoint. What it was given it holds, and gives back when it is destroyed, whatever came
// of the call.
//
//   Advance ... kWait: the task sleeps until it is woken or check_at, and calls Advance again ... kGo
//
// A call waits at one limit at a time, and most never do: what it holds is a pointer for each limit; a place in a queue
// is made when it first has to wait (Waiting).
//
// Lifetime of the limiters, which keep no count of those who hold something of them: those of the process and the route
// live as long as the configuration, those of the cluster as long as ClusterLimits, and this holds both by its worker's
// counts; the client's has a shared pointer here. The endpoint's is the caller's: see TryEndpoint.
//
// The worker of the call only; may be destroyed at any time. A call whose route and cluster have no limits has none
// (Needed), so that it pays a few loads.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "limits/bound.h"
#include "limits/concurrency_limiter.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/rate_limiter.h"
#include "proxy/snapshot.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

class Admission {
 public:
  struct Wait {
    std::string bound;
    base::Nanos time{0};
  };
  // The call's key at its route's client_rate_limit; asked where that is in force.
  using ClientKey = absl::FunctionRef<uint64_t()>;

  static bool Needed(const RouteConfig& config, const Route& route, const upstream::ClusterState& cluster);
  // `route`: of `config`. `flow`: the client connection: connections share a queue fairly. `worker`: slot of the
  // counters.
  Admission(const WorkerRef<RouteConfig>& config, const WorkerRef<upstream::ClusterLimits>& cluster, const Route& route,
            uint64_t flow, uint32_t worker)
      : config_(config), cluster_limits_(cluster), route_(route), flow_(flow), worker_(worker) {}
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;
  ~Admission();
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  // Through all limits but the endpoint's. After kGo: kGo again.
  limits::Answer Advance(base::TimePoint now, base::TimePoint deadline, ClientKey client_key);
  // Takes the endpoint's permit if one is free; none is held. From here to DropEndpoint the caller keeps the endpoint
  // alive, by the list in which it stands or by the worker's pool.
  bool TryEndpoint(upstream::Endpoint& endpoint);
  // As Advance, for the endpoint's permit, in its queue. As for TryEndpoint, and the bound's name is the cluster's.
  limits::Answer AdvanceEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster,
                                 base::TimePoint now);
  // The attempt is over. Leaves the endpoint's queue, too.
  void DropEndpoint();

  // The bound that the call waits for, or that refused it last. Null: none.
  const limits::BoundMetrics* bound() const { return bound_; }
  bool is_rate() const { return stage_ >= kRouteRate && stage_ <= kClusterRate; }
  bool waiting() const { return waits_now_; }
  // The call has ended otherwise while it waited: by its deadline, or because the client has gone.
  void GiveUp(bool deadline_passed, base::TimePoint now);
  // The call ended before it was sent anywhere: what the rates let go is for the next call.
  void RefundRates();
  // The call has been sent: nothing is refunded any more.
  void Forget();
  // What it waited for so far, in order; the wait that goes on is not in it.
  std::span<const Wait> waits() const { return waiting_ == nullptr ? std::span<const Wait>() : waiting_->over; }

 private:
  enum Stage : uint8_t { kProcess, kRouteRate, kClientRate, kClusterRate, kCluster, kEndpoint };
  // Of a call that has had to wait.
  struct Waiting {
    static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
    static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

    limits::ConcurrencyLimiter::Ticket permit;
    limits::RateLimiter::Ticket rate;
    base::TimePoint since{};
    absl::InlinedVector<Wait, 1> over;
  };
  // What a rate limiter let go. `held`: a capped token, which comes back at the call's end; else one that only a refund
  // concerns.
  struct Grant {
    limits::RateLimiter* limiter = nullptr;
    bool held = false;
  };

  static bool Take(limits::ConcurrencyLimiter& limiter, limits::ConcurrencyLimiter*& permit);
  static void Return(limits::ConcurrencyLimiter*& permit);
  Grant& grant() { return grants_[stage_ - kRouteRate]; }
  bool Start(limits::RateLimiter& limiter, base::TimePoint now);
  bool GoesAtOnce(base::TimePoint now, ClientKey client_key);
  limits::Answer Queue(base::TimePoint now, base::TimePoint deadline);
  limits::Answer QueueForPermit(limits::ConcurrencyLimiter& limiter, const limits::BoundMetrics& bound,
                                limits::ConcurrencyLimiter*& permit, base::TimePoint now);
  limits::Answer QueueForRate(limits::RateLimiter& limiter, const limits::BoundMetrics& bound, base::TimePoint now,
                              base::TimePoint deadline);
  void Settle(const limits::Answer& answer, base::TimePoint now);
  void EndWait(base::TimePoint now);

  // First, so that they go last.
  const WorkerRef<RouteConfig> config_;
  const WorkerRef<upstream::ClusterLimits> cluster_limits_;
  std::shared_ptr<limits::RateLimiter> client_rate_;
  const Route& route_;
  const uint64_t flow_;
  const uint32_t worker_;
  uint8_t stage_ = kProcess;
  bool waits_now_ = false;
  const limits::BoundMetrics* bound_ = nullptr;
  limits::ConcurrencyLimiter *process_ = nullptr, *cluster_ = nullptr,
                             *endpoint_ = nullptr;  // a unit of each; null: none
  std::array<Grant, 3> grants_;
  std::unique_ptr<Waiting> waiting_;
};

// "cluster/users/rate=3.200ms,process/concurrency=0.150ms": for the log and the sluice-waited trailer.
std::string FormatWaits(std::span<const Admission::Wait> waits);

}  // namespace sluice::proxy
