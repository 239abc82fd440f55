// AnnounceSet: what this process announces of itself, and how a reload changes that.
//
// Thread safety: every function from any thread but a worker's; Apply and Withdraw one at a time.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "discovery/etcd/announcer.h"
#include "metrics/registry.h"
#include "runtime/runtime.h"

namespace sluice::server {

class AnnounceSet {
 public:
  // All outlive the runtime's tasks. `ready`: whether calls may come; from any thread, does not block.
  AnnounceSet(runtime::Runtime& runtime, metrics::Registry& registry, std::function<bool()> ready);

  // The start, or a reload. What is announced as before goes on.
  void Apply(const std::vector<discovery::AnnounceOptions>& wanted);
  // Takes all back. `done` is called once, on any thread, when that is so or the time for it is over
  // (Announcer::kWithdrawMax); not at all if the runtime shuts down before.
  void Withdraw(std::function<void()> done);
  bool empty() const;

 private:
  runtime::Runtime& runtime_;
  const std::function<bool()> ready_;
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<discovery::Announcer>> announcers_;  // under mutex_
};

}  // namespace sluice::server
