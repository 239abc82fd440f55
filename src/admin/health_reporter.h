// HealthReporter: asks whether the daemon is ready, again and again, and tells when the answer changes.
//
// grpc.health.v1 is push: its Watch streams need to be told. The Backend is pull. A thread of its own with a
// timer lies between: no call has to know that somebody watches.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace sluice::admin {

class HealthReporter {
 public:
  // `tell` is called once before the constructor returns, then by the reporter's thread at each change.
  HealthReporter(std::chrono::milliseconds period, std::function<bool()> ask, std::function<void(bool)> tell);
  // Returns when neither function runs, nor will.
  ~HealthReporter();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::admin
