// CallExtra: what only a call has that a fault was asked for, or that is mirrored.
#pragma once

#include <memory>

#include "base/clock.h"
#include "proxy/call/fault.h"
#include "proxy/call/mirror_call.h"
#include "proxy/call_id.h"

namespace sluice::proxy {

// Of a call that was asked whether a fault is for it, or that is mirrored.
struct CallExtra {
  std::shared_ptr<const Fault> fault;       // that has met it
  base::TimePoint fault_at = base::kNever;  // until it has begun
  std::unique_ptr<CutFilter> cut;           // set up where the fault may cut the response off
  bool fault_asked = false;                 // whether one is for it
  bool cut_told = false;                    // that it has been cut off
  std::unique_ptr<MirrorTap> mirror;        // set up where it is made a second time
  CallId id;                                // taken before its end
};

}  // namespace sluice::proxy
