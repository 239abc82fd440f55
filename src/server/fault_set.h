// FaultSet: the failures of calls that operators have asked for (proxy/call/fault.h): adds, lists and removes them,
// ends them when their time is over, and gives each worker the table that is in force. Nothing is kept over a restart.
//
// Thread safety: any thread but a worker's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "proxy/call/fault.h"

namespace sluice::server {

class FaultSet {
 public:
  // Gives all workers the table; null: none. It has taken effect when it returns.
  using Publish = std::function<void(std::shared_ptr<const proxy::FaultTable>)>;
  FaultSet(const base::Clock& clock, Publish publish) : clock_(clock), publish_(std::move(publish)) {}

  // `route`: the one that the order's target means, or why it means none; then it is a method. kNotFound,
  // kInvalidArgument.
  base::Result<admin::FaultView> Add(const admin::FaultOrder& order, const base::Result<std::string>& route);
  base::Status Remove(uint64_t id);
  std::vector<admin::FaultView> List();
  // Takes away those that have ended: calls do not meet them any more, but look.
  void Poll();

 private:
  void PublishLocked();
  bool DropEndedLocked(base::TimePoint now);

  const base::Clock& clock_;
  const Publish publish_;
  std::mutex mutex_;
  // Under mutex_, which is held while workers are given a table, so that they all have the last one.
  proxy::FaultTable faults_;
  uint64_t last_id_ = 0;
};

}  // namespace sluice::server
