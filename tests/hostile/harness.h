// Harness: the process tree with its callers and its monitor, which seeds are played on, and what was seen to be wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hostile/control_plane.h"
#include "hostile/honest_caller.h"
#include "hostile/hostile_backend.h"
#include "hostile/loop.h"
#include "hostile/monitor.h"
#include "hostile/move.h"
#include "hostile/player.h"
#include "hostile/tree.h"

namespace sluice::hostile {

class Harness {
 public:
  Harness(TreeOptions options, bool memory_checked, bool times_checked);
  ~Harness();

  // A new process tree, with callers under way and a first look at how fast honest calls are by themselves. False: it
  // fails.
  bool Start(const std::string& variant);
  const std::string& variant() const { return options_.variant; }
  void Stop();
  bool running() const { return tree_ != nullptr; }
  // Plays it beside the honest callers. What is wrong may show later: see Settle.
  void Play(const Script& script);
  // Looks at everything again when the calls that were under way have ended. `patiently`: waits for calls that must
  // end.
  void Settle(bool patiently);
  // What was wrong since the last time.
  std::vector<std::string> TakeViolations();
  bool any_violation() const { return !violations_.empty(); }

  uint64_t honest_calls() const;
  double p99() const { return monitor_ ? monitor_->p99() : 0; }
  double p99_before() const { return monitor_ ? monitor_->p99_before() : 0; }
  uint64_t resident() const { return monitor_ ? monitor_->resident() : 0; }
  uint64_t hostile_calls() const { return backend_->calls(); }

 private:
  void Report(const std::string& violation, bool again = false);
  bool Probe();  // keys of the honest endpoints in the cluster that they share with the hostile one
  bool AddCallers();
  void TakeTimes();

  Loop loop_;
  TreeOptions options_;
  const bool memory_checked_, times_checked_;
  std::unique_ptr<HostileBackend> backend_, zero_;
  ControlPlane plane_;
  std::unique_ptr<Tree> tree_;
  std::unique_ptr<Player> player_;
  std::unique_ptr<Monitor> monitor_;
  std::vector<std::unique_ptr<HonestCaller>> callers_, direct_;  // through the proxy; past it, to compare with
  std::vector<std::string> honest_keys_;
  std::vector<std::string> violations_;
  double next_metrics_ = 0;
  uint64_t calls_before_ = 0;
};

// What violations of one kind have in common: the text up to its first colon, without numbers.
std::string ClassOf(const std::string& violation);
// Whether one of this class, seen once and not again, may be the machine's and not the proxy's.
bool MayBeNoise(const std::string& violation);
// Whether the process tree can be used on behind it: a wrong answer, not a wrong state.
bool LeavesNothing(const std::string& violation);

}  // namespace sluice::hostile
