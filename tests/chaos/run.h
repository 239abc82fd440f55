// Run: one seed, from the first connection to the audit.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chaos/backend.h"
#include "chaos/client.h"
#include "chaos/plan.h"
#include "chaos/proxy.h"

namespace sluice::chaos {

struct Outcome {
  uint64_t hash = 0;  // of all bytes the proxy has written, and when
  uint64_t bytes = 0, events = 0;
  uint32_t calls = 0, ok = 0, refused = 0;  // refused: ended with another status
  bool all_good = false;
  bool paused = false, refused_for_memory = false;  // reading was, calls were
  std::vector<std::string> faults;
};

Outcome RunSeed(uint64_t seed, bool trace);

// While it lives the process may hold `bytes` more than it does now; 0: no limit. What earlier runs have left in free
// lists goes back first, so that each run begins with the same.
class MemoryLimit {
 public:
  explicit MemoryLimit(int64_t bytes);
  ~MemoryLimit();
  // As if other workers held `bytes` more; negative: less again.
  void Press(int64_t bytes);
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;

 private:
  int64_t pressed_ = 0;
};

// Private to run.cc, script.cc and audit.cc.
class Run {
 public:
  Run(uint64_t seed, bool trace);
  ~Run();
  Outcome Go();

 private:
  class Attempt;

  // script.cc: what happens.
  void PlanClients();
  void PlanCall(uint32_t number);
  void PlanMischief(Client& client);
  void PlanMischief(BackendConnection& connection);
  void PlanChanges();
  void PlanPressure();
  void ChangeSomething();
  void ChangeEndpoints();
  void ChangeLimit();
  void StopInTheMiddle();
  Client& Connect(uint32_t number);
  std::unique_ptr<net::Attempt> Dial(runtime::Worker& worker, const net::Address& address, base::TimePoint deadline,
                                     net::Dialer::OnDone done);
  std::unique_ptr<net::Stream> Connected(runtime::Worker& worker, const std::string& address);
  base::Nanos Somewhere() { return dice_.Time(plan_.span + Micros(1'000'000)); }

  // run.cc
  void Advance(base::Nanos time);
  void Judge();
  void Step(base::TimePoint end);
  bool Settle(base::Nanos most);

  // audit.cc: what must hold.
  bool CallsEnded() const;
  void CheckCalls();
  void CheckCall(const Call& call, const Client& client);
  void CheckCounters();
  void CheckIdle(const char* when);
  void CheckHealth();

  base::ManualClock clock_;
  Timeline timeline_{clock_};
  Record record_;
  http2::InternTable interns_;  // of the peers
  Stage stage_{timeline_, record_, interns_};
  Dice dice_;
  Plan plan_;
  MemoryLimit memory_{plan_.buffered_bytes_max};
  bool stopped_ = false;  // the proxy was, in the middle
  uint64_t connections_ = 0;
  std::unique_ptr<Proxy> proxy_;
  server::HealthPace pace_{clock_.Now()};
  base::TimePoint judge_at_ = clock_.Now();
  std::deque<Call> calls_;
  std::vector<Client*> client_of_;  // by call
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<BackendConnection>> backends_;
  std::map<std::string, uint32_t> dials_;
};

}  // namespace sluice::chaos
