// Monitor: what can be seen of the proxy from outside while seeds run: its log, its metrics, its memory, how long
// honest calls take. It reports what must not be.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hostile/honest_caller.h"
#include "hostile/loop.h"
#include "hostile/tree.h"
#include "hostile/wire.h"

namespace sluice::hostile {

class Monitor {
 public:
  using Report = std::function<void(const std::string& violation)>;

  Monitor(Loop& loop, Tree& tree, Report report);
  ~Monitor();

  // Reads what the log says since the last time, and looks at the process. After each seed.
  void Look();
  // Asks for the metrics and looks at them; turns the loop. False: they do not come.
  bool LookAtMetrics();
  // Honest calls' times: the first kTimesWanted are what the others are compared with.
  void Times(std::vector<CallTime> times);
  // These calls went past the proxy: while one is slow, its backend is, or the machine.
  void DirectTimes(const std::vector<CallTime>& times);
  double p99() const { return p99_; }
  double p99_before() const { return p99_before_; }
  uint64_t resident() const { return resident_; }
  // `connections`: those that were open at most since the last look, with the upstream ones.
  void CheckMemory(size_t connections);
  void set_memory_checked(bool on) { memory_checked_ = on; }
  void set_times_checked(bool on) { times_checked_ = on; }
  // Judges the times there are, if they are enough.
  void JudgeTimes(size_t enough);
  // The busiest kind of log line, and how many of it came in one second.
  const std::map<std::string, int>& busiest() const { return busiest_; }

 private:
  void Sample();
  // How long a direct call to the same backend was slow while this one ran.
  double SlowDirectly(const CallTime& time) const;
  void Line(const std::string& line);
  void Metrics(const std::string& text);

  static constexpr size_t kTimesWanted = 400;

  Loop& loop_;
  Tree& tree_;
  const Report report_;
  size_t log_read_ = 0;
  std::string log_rest_;
  std::map<std::string, std::map<std::string, int>> second_;  // kind of line -> second -> count
  std::map<std::string, int> busiest_;
  std::map<std::string, double> lost_;  // connections of honest endpoints, as reported
  std::vector<CallTime> times_;
  std::deque<CallTime> slow_direct_;  // the latest kSlowDirectMax
  double p99_ = 0, p99_before_ = 0;
  uint64_t resident_ = 0, base_ = 0, most_resident_ = 0, sampler_ = 0;
  bool memory_checked_ = true, times_checked_ = true;
  std::unique_ptr<Wire> http_;
};

}  // namespace sluice::hostile
