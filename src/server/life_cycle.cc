#include "server/life_cycle.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace sluice::server {

void LifeCycle::SetStarted(bool well) {
  std::lock_guard lock(mutex_);
  started_ = true;
  started_well_ = well;
  changed_.notify_all();
}

bool LifeCycle::BeginDrain(std::chrono::milliseconds timeout, size_t parts) {
  std::lock_guard lock(mutex_);
  if (phase_ != Phase::kServing) return false;
  phase_ = Phase::kDraining;
  drain_begun_ = true;
  parts_to_drain_ = parts;
  drain_deadline_ = Clock::now() + timeout;
  changed_.notify_all();
  return true;
}

void LifeCycle::PartDrained() {
  std::lock_guard lock(mutex_);
  --parts_to_drain_;
  changed_.notify_all();
}

void LifeCycle::LimitDrain(std::chrono::milliseconds timeout) {
  std::lock_guard lock(mutex_);
  if (phase_ == Phase::kDraining) drain_deadline_ = std::min(drain_deadline_, Clock::now() + timeout);
  changed_.notify_all();
}

void LifeCycle::Call(std::function<void()> fn, std::chrono::milliseconds delay) {
  std::lock_guard lock(mutex_);
  calls_.push_back({Clock::now() + delay, std::move(fn)});
  changed_.notify_all();
}

std::vector<LifeCycle::Order> LifeCycle::TakeDue(Clock::time_point now) {
  const auto later = std::stable_partition(calls_.begin(), calls_.end(), [&](const Order& o) { return o.due <= now; });
  std::vector<Order> due(std::make_move_iterator(calls_.begin()), std::make_move_iterator(later));
  calls_.erase(calls_.begin(), later);
  return due;
}

LifeCycle::Clock::time_point LifeCycle::NextDue() const {
  Clock::time_point next = Clock::time_point::max();
  for (const Order& order : calls_) next = std::min(next, order.due);
  return next;
}

void LifeCycle::Stop() {
  std::lock_guard lock(mutex_);
  if (phase_ < Phase::kStopping) phase_ = Phase::kStopping;
  changed_.notify_all();
}

void LifeCycle::SetStopped() {
  std::lock_guard lock(mutex_);
  phase_ = Phase::kStopped;
  changed_.notify_all();
}

bool LifeCycle::ready() const {
  std::lock_guard lock(mutex_);
  return started_well_ && phase_ == Phase::kServing;
}

bool LifeCycle::draining() const {
  std::lock_guard lock(mutex_);
  return drain_begun_;
}

bool LifeCycle::stopping() const {
  std::lock_guard lock(mutex_);
  return phase_ >= Phase::kStopping;
}

void LifeCycle::WaitForEnd(std::chrono::milliseconds period, const std::function<void()>& poll) {
  std::unique_lock lock(mutex_);
  // Files are polled during a drain too, which may be long: clusters and the admin RPC still make connections.
  // `until` may change meanwhile. Calls that come again and again keep no poll from its turn.
  Clock::time_point turn = Clock::now() + period;
  const auto wait = [&](const Clock::time_point& until, auto&& done) {
    for (;;) {
      const auto next = [&] { return std::min({turn, until, NextDue()}); };
      while (!done() && Clock::now() < next()) changed_.wait_until(lock, next());
      if (done()) return true;
      const std::vector<Order> calls = TakeDue(Clock::now());
      if (calls.empty() && Clock::now() >= until) return false;
      const bool due = Clock::now() >= turn;
      if (due) turn = Clock::now() + period;
      lock.unlock();
      for (const Order& call : calls) call.fn();
      if (due) poll();
      lock.lock();
    }
  };
  wait(Clock::time_point::max(), [this] { return started_ && phase_ != Phase::kServing; });
  if (phase_ != Phase::kDraining) return;
  const bool in_time = wait(drain_deadline_, [this] { return phase_ != Phase::kDraining || parts_to_drain_ == 0; });
  SLUICE_LOG_INFO("{}", !in_time                     ? "drain timeout: stopping"
                        : phase_ == Phase::kDraining ? "drained: stopping"
                                                     : "told to stop now");
  phase_ = Phase::kStopping;
}

bool LifeCycle::WaitStopped(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [this] { return phase_ == Phase::kStopped; });
}

}  // namespace sluice::server
