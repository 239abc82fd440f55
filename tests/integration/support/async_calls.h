// AsyncCalls: unary echo calls through one connection, as many at once as a test likes, none of them on a thread of its
// own. ClosedLoop: a client that always has the same number of calls under way.
//
// Thread safety: every function from any thread but where it says otherwise.
#pragma once

#include <grpcpp/alarm.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "support/echo_call.h"

namespace sluice::integration {

using SteadyClock = std::chrono::steady_clock;
using Fields = std::vector<std::pair<std::string, std::string>>;

// What a call is made of. A deadline of more than an hour is none.
struct CallSpec {
  echo::v1::EchoRequest request;
  Fields metadata;
  std::chrono::milliseconds timeout = std::chrono::seconds(40);
};

// The spec of a call with a payload, of a client if given.
CallSpec Spec(const std::string& payload, const std::string& client = "");

// One call, from Start until the test has looked at its answer.
class AsyncCall {
 public:
  bool done() const { return done_.load(std::memory_order_acquire); }
  void Cancel() { context_.TryCancel(); }
  // Once done():
  const Reply& reply() const { return reply_; }
  const grpc::Status& status() const { return reply_.status; }
  std::chrono::milliseconds took() const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(end_ - start_);
  }
  SteadyClock::time_point start() const { return start_; }
  SteadyClock::time_point end() const { return end_; }

 private:
  friend class AsyncCalls;
  grpc::ClientContext context_;
  echo::v1::EchoRequest request_;
  echo::v1::EchoReply message_;
  Reply reply_;
  SteadyClock::time_point start_, end_;
  std::atomic<bool> done_{false};  // release: publishes reply_ and end_ to the acquire in done()
};
using AsyncCallPtr = std::shared_ptr<AsyncCall>;

class AsyncCalls {
 public:
  // A connection of its own.
  explicit AsyncCalls(const std::string& target);
  // Cancels what is under way, waits for all.
  ~AsyncCalls();
  AsyncCalls(const AsyncCalls&) = delete;
  AsyncCalls& operator=(const AsyncCalls&) = delete;

  // `done` runs on one of gRPC's threads after the call is done().
  AsyncCallPtr Start(const CallSpec& spec, std::function<void(const AsyncCall&)> done = {});
  std::vector<AsyncCallPtr> Start(const CallSpec& spec, size_t count);
  // Starts it and waits for its end.
  AsyncCallPtr Run(const CallSpec& spec);
  echo::v1::Echo::Stub* stub() { return stub_.get(); }

 private:
  std::unique_ptr<echo::v1::Echo::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<AsyncCall*, AsyncCallPtr> under_way_;  // under mutex_
};

// How many of them are done, and how many of these ended with `code`.
size_t Done(const std::vector<AsyncCallPtr>& calls);
size_t Ended(const std::vector<AsyncCallPtr>& calls, grpc::StatusCode code);
// Fails the test if they are not done in kLongWait.
void Await(const std::vector<AsyncCallPtr>& calls);

class ClosedLoop {
 public:
  // `count` calls at once from now on. A refused one is made again after the pushback that it was given.
  ClosedLoop(AsyncCalls& calls, CallSpec spec, size_t count);
  // Lets the calls under way end.
  ~ClosedLoop();
  void Stop();

  uint64_t ok() const { return ok_.load(std::memory_order_relaxed); }
  uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Ended with anything but OK and RESOURCE_EXHAUSTED, described. The first hundred.
  std::vector<std::string> failures() const;

 private:
  // A place takes one call after the other.
  void Next(size_t place);
  void Ended(size_t place, const AsyncCall& call);
  void Leave();

  AsyncCalls& calls_;
  const CallSpec spec_;
  std::atomic<uint64_t> ok_{0}, refused_{0};  // relaxed: statistics
  std::atomic<bool> stop_{false};             // relaxed: one call more or less does not matter
  mutable std::mutex mutex_;
  std::condition_variable left_;
  size_t running_ = 0;                 // under mutex_: calls under way, or about to be made again
  std::vector<std::string> failures_;  // under mutex_
  // By place, used in its turn only. A new alarm each time: one set again would destroy the callback it is running.
  std::vector<std::unique_ptr<grpc::Alarm>> pauses_;
};

}  // namespace sluice::integration
