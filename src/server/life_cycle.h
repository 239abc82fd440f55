// LifeCycle: where a server stands between its start and its end, and the wait of its control thread.
//
//   kServing --BeginDrain--> kDraining --Stop, all drained, or too late--> kStopping --SetStopped--> kStopped
//       `--Stop--------------------------------------------------------------^
//
// A server serves from its construction on: a drain or stop may come while it still starts, and takes effect when
// SetStarted says that the start is over.
//
// Thread safety: all of it; Wait* not on a worker.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace sluice::server {

class LifeCycle {
 public:
  using Clock = std::chrono::steady_clock;

  // The start is over, well or not.
  void SetStarted(bool well);
  // False if it drains or stops already. `parts`: how many have to say PartDrained.
  bool BeginDrain(std::chrono::milliseconds timeout, size_t parts);
  void PartDrained();
  // A drain that has begun ends after `timeout` at most, counted from now.
  void LimitDrain(std::chrono::milliseconds timeout);
  // `fn` is called once by WaitForEnd, in its thread, as soon as `delay` has passed; not at all if that returns before.
  void Call(std::function<void()> fn, std::chrono::milliseconds delay = std::chrono::milliseconds(0));
  void Stop();
  void SetStopped();

  // The start was well, and it neither drains nor stops.
  bool ready() const;
  // A drain has begun; true until the end.
  bool draining() const;
  // WaitForEnd has returned, or will at once: it calls nothing any more.
  bool stopping() const;

  // Returns when the server is to be taken down (kStopping); never before SetStarted. Calls `poll` once a `period`
  // meanwhile, and what Call brings. Both may block; the end waits for them.
  void WaitForEnd(std::chrono::milliseconds period, const std::function<void()>& poll);
  // True if it has stopped within `timeout`.
  bool WaitStopped(std::chrono::milliseconds timeout);

 private:
  struct Order {
    Clock::time_point due;
    std::function<void()> fn;
  };
  enum class Phase : uint8_t { kServing, kDraining, kStopping, kStopped };

  // Under mutex_: those of calls_ that are due, and when the next of them will be (max: none).
  std::vector<Order> TakeDue(Clock::time_point now);
  Clock::time_point NextDue() const;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_:
  Phase phase_ = Phase::kServing;
  bool started_ = false;
  bool started_well_ = false;
  bool drain_begun_ = false;  // BeginDrain was called
  size_t parts_to_drain_ = 0;
  std::vector<Order> calls_;
  Clock::time_point drain_deadline_{};
};

}  // namespace sluice::server
