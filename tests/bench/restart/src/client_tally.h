// Tally: what a client of tests/bench/restart has noticed, as the JSON that README.md describes. Thread safe.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "json.h"

namespace sluice::bench {

class Tally {
 public:
  Tally(std::string client, size_t channels) : client_(std::move(client)), answered_at_(channels) {}

  void CallBegun() {
    std::lock_guard lock(mutex_);
    ++outstanding_;
  }
  void CallEnded(size_t channel, bool ok, const std::string& status, Clock::duration took) {
    std::lock_guard lock(mutex_);
    if (--outstanding_ == 0) idle_.notify_all();
    ++calls_;
    if (!ok) return Failed("call", status, &failed_);
    const Clock::time_point now = Clock::now();
    Gap(answered_at_[channel], now);
    answered_at_[channel] = now;
    latencies_ms_.push_back(static_cast<float>(Milliseconds(took)));
  }
  void StreamAnswered(Clock::duration took) {
    std::lock_guard lock(mutex_);
    ++messages_;
    stream_wait_ = std::max(stream_wait_, took);
  }
  void StreamEnded(bool ok, bool answered, const std::string& status) {
    std::lock_guard lock(mutex_);
    ++streams_;
    if (ok) return;
    Failed(answered ? "stream" : "open", status, answered ? &broken_ : &unopened_);
  }
  void Lag(Clock::duration lag) {
    std::lock_guard lock(mutex_);
    lag_ = std::max(lag_, lag);
  }

  uint64_t outstanding() {
    std::lock_guard lock(mutex_);
    return outstanding_;
  }
  bool AllAnswered() {
    std::lock_guard lock(mutex_);
    for (const auto& at : answered_at_) {
      if (at == Clock::time_point()) return false;
    }
    return true;
  }
  // No more calls are made: a channel without an answer since long has a gap too.
  void Stop() {
    std::lock_guard lock(mutex_);
    const Clock::time_point now = Clock::now();
    for (const auto& at : answered_at_) Gap(at, now);
  }
  // Each call has a deadline, so this ends.
  void WaitForCalls() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return outstanding_ == 0; });
  }

  void Restart() {
    std::lock_guard lock(mutex_);
    calls_ = streams_ = messages_ = 0;
    gap_ = lag_ = stream_wait_ = Clock::duration::zero();
    gap_at_ = 0;
    latencies_ms_.clear();
    failed_.clear();
    broken_.clear();
    unopened_.clear();
    events_.clear();
  }

  std::string Json() {
    std::lock_guard lock(mutex_);
    std::sort(latencies_ms_.begin(), latencies_ms_.end());
    const auto quantile = [this](double q) {
      if (latencies_ms_.empty()) return std::string("0");
      return std::to_string(latencies_ms_[static_cast<size_t>(q * static_cast<double>(latencies_ms_.size() - 1))]);
    };
    std::string out = "{\"client\": " + Quoted(client_) + ", \"calls\": " + std::to_string(calls_);
    out += ", \"failed\": " + Object(failed_) + ", \"gap_ms\": " + std::to_string(Milliseconds(gap_));
    out += ", \"gap_at\": " + std::to_string(gap_at_) + ", \"lag_ms\": " + std::to_string(Milliseconds(lag_));
    out += ", \"p50_ms\": " + quantile(0.5) + ", \"p99_ms\": " + quantile(0.99) + ", \"max_ms\": " + quantile(1);
    out += ", \"streams\": " + std::to_string(streams_) + ", \"broken\": " + Object(broken_);
    out += ", \"unopened\": " + Object(unopened_) + ", \"messages\": " + std::to_string(messages_);
    out += ", \"stream_wait_ms\": " + std::to_string(Milliseconds(stream_wait_)) + ", \"events\": [";
    for (size_t i = 0; i < events_.size(); ++i) {
      if (i != 0) out += ", ";
      out += events_[i];
    }
    out += "]}";
    return out;
  }

 private:
  static constexpr size_t kEventsMax = 20000;  // failures with their time; more are only counted

  void Gap(Clock::time_point before, Clock::time_point now) {
    if (before == Clock::time_point() || now - before <= gap_) return;
    gap_ = now - before;
    gap_at_ = WallSeconds();
  }

  void Failed(const char* what, const std::string& status, std::map<std::string, uint64_t>* counts) {
    ++(*counts)[status];
    if (events_.size() >= kEventsMax) return;
    std::string event = "[";
    event += std::to_string(WallSeconds()) + ", \"" + what + "\", " + Quoted(status) + "]";
    events_.push_back(std::move(event));
  }

  const std::string client_;
  std::mutex mutex_;  // guards all below
  std::condition_variable idle_;
  std::vector<Clock::time_point> answered_at_;  // by channel
  std::vector<float> latencies_ms_;
  std::map<std::string, uint64_t> failed_, broken_, unopened_;
  std::vector<std::string> events_;
  uint64_t calls_ = 0, outstanding_ = 0, streams_ = 0, messages_ = 0;
  Clock::duration gap_{0}, lag_{0}, stream_wait_{0};
  double gap_at_ = 0;
};

}  // namespace sluice::bench
