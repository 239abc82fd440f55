// AnnounceSet: what this process announces of itself, and how a reload changes that.
//
// Thread safety: every function from any thread but a worker's; Apply and Withdraw one at a time.
#pragma once

#include <cstddef>
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
  // Takes all back. `done` is called once, on any thread, when nothing is being taken back any more, also of what a
  // reload or an earlier Withdraw has ended, or the time for it is over (Announcer::kWithdrawMax); not at all if the
  // runtime shuts down before.
  void Withdraw(std::function<void()> done);
  // Stops announcing, without taking anything back: another process announces the same.
  void Leave();
  bool empty() const;

 private:
  using Announcers = std::vector<std::shared_ptr<discovery::Announcer>>;
  // Takes back what `ending_` counts already.
  void End(const Announcers& ended);
  void Ended();

  runtime::Runtime& runtime_;
  const std::function<bool()> ready_;
  mutable std::mutex mutex_;
  // Under mutex_:
  Announcers announcers_;
  size_t ending_ = 0;  // announcers that are being taken back
  std::vector<std::function<void()>> on_ended_;
};

}  // namespace sluice::server
