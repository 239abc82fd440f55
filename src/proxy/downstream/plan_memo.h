// CachePlanMemo: what a request's headers say of a stored response that may answer it: the route, the cache's plan and
// the key as far as the headers are in it.
//
// Headers of one client repeat, and what repeats is one FieldRun, by which the plan is remembered. What follows the run
// is different each time (a request id, a trace) and mostly decides nothing; where it might, the plan is made anew.
//
//   run id, listener -> slot: plan, made for these fields and any others behind them that decide nothing
//
// Bound: kSlots plans with heads of at most kHeadBytesMax. Thread safety: one worker's. Nothing here suspends.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "http2/fields/header.h"
#include "proxy/response_cache/cache.h"
#include "proxy/snapshot.h"

namespace sluice::proxy {

struct FastPathPlan {
  bool may_hit = false;          // without it nothing else is set
  const Route* route = nullptr;  // in the configuration
  CachePlan plan;
  std::string key_head;  // the key's bytes for a message of no bytes
  uint64_t made = 0;     // each plan that its memo has made has another number
};

// A plan that a request was given, for its next look.
struct KnownPlan {
  const FastPathPlan* plan = nullptr;
  uint64_t made = 0;
  uint64_t version = 0;
};

class CachePlanMemo {
 public:
  // For a request, by `config`, which has a cache. `version` is above 0 and differs for each configuration, also where
  // one lies at the address of an earlier one (CallContext::config_version). Null: no stored response may answer the
  // request, or a Call has to find out and count why not. Good until the next For().
  const FastPathPlan* For(const RouteConfig& config, uint64_t version, const CanonicalRequest& request,
                          uint64_t listener);
  // What For() has said to a request, for Again(). `plan`: not null, as For() gave it.
  KnownPlan Remember(const FastPathPlan& plan) const { return {&plan, plan.made, version_}; }
  // For() once more for the same request and listener, at little cost. Null: it has to be asked, as its plan has given
  // way to another one, or the configuration has.
  const FastPathPlan* Again(const KnownPlan& known, uint64_t version) const {
    // By one version the plans stay where they are.
    const bool there = known.version == version && version_ == version && known.plan->made == known.made;
    return there ? known.plan : nullptr;
  }

 private:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kHeadBytesMax = 2048;
  struct Slot {
    uint64_t run = 0;  // 0: empty
    uint64_t listener = 0;
    FastPathPlan plan;
  };

  void Make(const RouteConfig& config, const CanonicalRequest& request, uint64_t listener, FastPathPlan& plan);
  void ReadNames(const RouteConfig& config, uint64_t version);
  // Whether a field from `first` on is one that routes, the cache's policy or its keys look at.
  bool AnyDecides(const CanonicalRequest& request, uint32_t first) const;

  uint64_t version_ = 0;  // of the configuration in which the plans lie
  uint64_t made_ = 0;     // plans so far
  uint64_t tokens_ = 0;   // bit T: fields with token T decide; of kOther those with one of names_
  std::vector<std::string> names_;
  std::unique_ptr<std::array<Slot, kSlots>> slots_;  // made when there is something to keep
  FastPathPlan scratch_;
};

}  // namespace sluice::proxy
