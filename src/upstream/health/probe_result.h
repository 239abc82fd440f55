// ProbeResult: what a probe of an endpoint came to, from the worker that made it to the judge.
#pragma once

#include <atomic>
#include <string>
#include <utility>

namespace sluice::upstream {

class ProbeResult {
 public:
  // Once, by the prober. `error` empty: a new connection to the endpoint works. `refused`: nothing listens there.
  void Set(std::string error, bool refused) {
    error_ = std::move(error);
    refused_ = refused;
    done_.store(true, std::memory_order_release);  // with done()
  }
  bool done() const { return done_.load(std::memory_order_acquire); }
  // When done.
  const std::string& error() const { return error_; }
  bool refused() const { return refused_; }

 private:
  std::string error_;
  bool refused_ = false;
  std::atomic<bool> done_{false};
};

}  // namespace sluice::upstream
