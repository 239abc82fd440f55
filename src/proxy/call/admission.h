// Admission: a call's way through the limits, in order: process, route's rate, client's rate, cluster's rate, cluster;
// then, for each attempt, the endpoint. It holds what it was given until it is destroyed, however the call ends; the
// endpoint's permit is the attempt's.
//
//   Advance ... kWait: the task sleeps until it is woken or check_at, and calls Advance again ... kGo
//
// A call waits at one limit at a time, and most never do. It holds a pointer for each limit; a place in a queue is made
// when it first has to wait (Waiting). A wait ends by the limit's queue_time, or when what is left of the deadline is
// less than the service lately took: then the call is refused.
//
// A call that waits holds nothing that calls elsewhere wait for. While it waits at a limit of its route, client or
// cluster it gives the process's unit back; while it waits at an endpoint, or between two attempts, the cluster's too.
// It takes them again, behind others, before it goes on.
//
// Lifetime of the limiters, which keep no count of their units' holders: those of the process and the route live as
// long as the configuration, those of the cluster as long as ClusterLimits, and this holds both by its worker's counts;
// the client's has a shared pointer here. The endpoint's is the caller's: see TryEndpoint.
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
#include "limits/concurrency_limiter.h"
#include "limits/keyed_rate_limiter.h"
#include "limits/limiter_metrics.h"
#include "limits/rate_limiter.h"
#include "limits/service_times.h"
#include "proxy/snapshot.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

// A unit of a limiter, which outlives it; comes back when this is destroyed. Null: none.
struct ReturnPermit {
  void operator()(limits::ConcurrencyLimiter* limiter) const { limiter->Return(); }
};
using Permit = std::unique_ptr<limits::ConcurrencyLimiter, ReturnPermit>;

class Admission {
 public:
  struct Wait {
    std::string bound;
    base::Nanos time{0};
    base::TimePoint ended{};
  };
  // What limits ask about a call; only where the answer is needed.
  struct Asker {
    // Its key at its route's client_rate_limit.
    absl::FunctionRef<uint64_t()> client_key;
    // How long calls like it lately took from the limits to their answer; 0: not known.
    absl::FunctionRef<base::Nanos()> service_time;
  };

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
  limits::Verdict Advance(base::TimePoint now, base::TimePoint deadline, const Asker& asker);
  // For a call that has passed limits before: only the endpoint's are left.
  void PassForAttempt(base::TimePoint now) {
    stage_ = kEndpoint;
    passed_at_ = now;
  }
  // The call waits between two attempts: gives back the units of cluster and process. Then paused(), and Advance takes
  // them again.
  void Pause();
  bool paused() const { return stage_ < kEndpoint; }
  // Takes the endpoint's permit if one is free, or goes without one where there is no limit. The caller keeps the
  // endpoint alive while it has the permit, by the list in which it stands or by the worker's pool.
  static bool TryEndpoint(upstream::Endpoint& endpoint, Permit& permit) {
    return Take(*endpoint.concurrency(), permit);
  }
  // As Advance, for the endpoint's permit, in its queue: of one endpoint at a time, which the caller keeps alive until
  // the verdict is not kWait, or LeaveEndpointQueue. The bound's name is the cluster's.
  limits::Verdict AdvanceEndpoint(upstream::Endpoint& endpoint, const upstream::ClusterState& cluster,
                                  base::TimePoint now, base::TimePoint deadline, const Asker& asker, Permit& permit);
  void LeaveEndpointQueue() {
    if (waiting_ != nullptr && (stage_ == kEndpoint || endpoint_granted_)) [[unlikely]]
      DropEndpointTicket();
  }

  // The bound that the call waits for, or that refused it last. Null: none.
  const limits::LimiterMetrics* bound() const { return bound_; }
  bool is_rate() const { return stage_ >= kRouteRate && stage_ <= kClusterRate; }
  bool waiting() const { return waits_now_; }
  // ... at the one of its client.
  bool waits_for_client() const { return waits_now_ && stage_ == kClientRate; }
  // Of a call that was refused, for the words of its refusal: how long it waited there; the service time it was judged
  // by (0: not known); the queue_time of that limit.
  struct Refused {
    base::Nanos waited{0}, service{0};
    std::chrono::milliseconds queue_time{0};
  };
  const Refused& refused() const { return waiting_->refused; }
  // The call has ended otherwise while it waited: by its deadline, or because the client has gone.
  void GiveUp(bool deadline_passed, base::TimePoint now) {
    if (waits_now_) [[unlikely]]
      GiveUpWait(deadline_passed, now);
  }
  // The call ended before it was sent anywhere: what the rates let go is for the next call.
  void RefundRates();
  // The call has been sent: nothing is refunded any more.
  void Forget();
  // When all limits but the endpoint's let it go last.
  base::TimePoint passed_at() const { return passed_at_; }
  // Then the request was whole: what passes until the answer is the service's time, and not the client's upload.
  void NoteRequest(bool whole) { request_was_whole_ = whole; }
  bool request_was_whole() const { return request_was_whole_; }
  const upstream::ClusterLimits& cluster_limits() const { return *cluster_limits_; }
  // What it waited for so far, in order; the wait that goes on is not in it.
  std::span<const Wait> waits() const { return waiting_ == nullptr ? std::span<const Wait>() : waiting_->over; }

 private:
  // In order. kProcessAgain: for a call that gave the unit back while it waited.
  enum Stage : uint8_t { kProcess, kRouteRate, kClientRate, kClusterRate, kCluster, kProcessAgain, kEndpoint };
  // Of a call that has had to wait.
  struct Waiting {
    static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
    static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

    limits::ConcurrencyLimiter::Ticket permit;
    limits::RateLimiter::Ticket rate;
    base::TimePoint since{};
    Permit endpoint;  // while the units that were given back for its sake are taken again
    Refused refused;
    absl::InlinedVector<Wait, 1> over;
  };
  // What a rate limiter let go. `held`: a capped token, which comes back at the call's end; else one that only a refund
  // concerns.
  struct Grant {
    limits::RateLimiter* limiter = nullptr;
    bool held = false;
  };
  // When a wait ends, and why the call is refused then.
  struct End {
    base::TimePoint at;
    limits::Refusal why;
  };

  static bool Take(limits::ConcurrencyLimiter& limiter, Permit& permit) {
    if (!limiter.enabled()) return true;
    if (!limiter.TryTake()) return false;
    permit.reset(&limiter);
    return true;
  }
  Grant& grant() { return grants_[stage_ - kRouteRate]; }
  bool Start(limits::RateLimiter& limiter, base::TimePoint now);
  bool GoesAtOnce(base::TimePoint now, const Asker& asker);
  template <Stage... stages>
  bool PassesAtOnce(base::TimePoint now, const Asker& asker);
  limits::Verdict Queue(base::TimePoint now, base::TimePoint deadline, const Asker& asker);
  template <typename Limiter>
  End EndOfWait(const Limiter& limiter, base::TimePoint now, base::TimePoint deadline, const Asker& asker);
  limits::Verdict QueueForPermit(limits::ConcurrencyLimiter& limiter, const limits::LimiterMetrics& bound,
                                 Permit& permit, base::TimePoint now, base::TimePoint deadline, const Asker& asker);
  limits::Verdict QueueForRate(limits::RateLimiter& limiter, const limits::LimiterMetrics& bound, base::TimePoint now,
                               base::TimePoint deadline, const Asker& asker);
  limits::Verdict Settle(limits::Verdict verdict, const End& end, base::TimePoint now);
  void GiveUpWait(bool deadline_passed, base::TimePoint now);
  void DropEndpointTicket();
  void GiveBackShared();
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
  bool gave_back_process_ = false;  // and has not taken it again
  bool gave_back_cluster_ = false;
  bool endpoint_granted_ = false;  // what was given back while it waited at the endpoint is being taken again
  const limits::LimiterMetrics* bound_ = nullptr;
  base::TimePoint passed_at_{};
  bool request_was_whole_ = false;
  Permit process_, cluster_;
  std::array<Grant, 3> grants_;
  std::unique_ptr<Waiting> waiting_;
};

// "cluster/users/rate=3.200ms,process/concurrency=0.150ms": for the log and the sluice-waited trailer.
std::string FormatWaits(std::span<const Admission::Wait> waits);

}  // namespace sluice::proxy
