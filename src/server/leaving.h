// Leaving: how a process that is replaced gives up its part of what both have: permits, rates, and what it counts.
//
//   kWhole --Split--> kSplit --Begin--> kLeaving
//     ^-----Join--------'
//
// Permits are conserved: a unit is taken away here (limits::ConcurrencyLimiter::Lend) before the other process is told
// that it has it. Of a rate each process has a part, and the parts are one: here nearly all of it as long as calls
// wait, which came first; then little; then, when no call can come any more, nothing.
//
// Thread safety: none; the control thread's.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "handover/channel.h"
#include "server/handover_state.h"
#include "server/processes.h"

namespace sluice::server {

class Leaving {
 public:
  // Of a rate, while calls wait for it here, and while new calls may still come: permille.
  static constexpr uint32_t kWithWaiters = 875, kWithout = 125;
  // Between two reports of what was counted.
  static constexpr std::chrono::milliseconds kCountPeriod{1000};

  enum class State : uint8_t { kWhole, kSplit, kLeaving };

  Leaving(LimitSet& limits, Clusters& clusters, metrics::Registry& registry)
      : limits_(limits), clusters_(clusters), registry_(registry) {}

  State state() const { return state_; }
  // The first part for the other process; what stays here. `others`: what older processes have of each limit. The
  // levels of the rates just before, of which the other process gets what is not kept here.
  HandedLevels Split(const std::map<std::string, uint64_t>& others, base::TimePoint now, handover::v1::Process* stays);
  // As it was before.
  void Join();
  // The other process has the rest. `counts`: as it was told them.
  void Begin(handover::Channel channel, const std::vector<metrics::Counted>& counts, base::TimePoint now);

  struct Load {
    bool closed = false;  // no client can begin a call here any more
    uint64_t calls = 0, connections = 0;
  };
  struct Heard {
    bool moved = false;  // something was said or heard
    std::vector<handover::v1::Order> orders;
  };
  // Gives what there is to give, says what was counted, and hears what is ordered.
  Heard Step(const Load& load, base::TimePoint now);
  // The last counts.
  void Finish();

 private:
  void Lend(bool all, handover::v1::Given* given);
  void GiveShares(bool closed, handover::v1::Given* given);
  void SendCounts();

  LimitSet& limits_;
  Clusters& clusters_;
  metrics::Registry& registry_;
  State state_ = State::kWhole;
  handover::Channel channel_;
  std::map<std::string, uint64_t> lent_;         // permits that were taken away here
  std::map<std::string, uint64_t> outstanding_;  // of capped rates, as the other process knows them
  std::map<std::string, uint32_t> permille_;     // of rates
  handover::v1::Given unsent_;                   // there was no room
  std::optional<CountsSince> counts_;
  base::TimePoint counted_at_{};
  Load told_;
};

}  // namespace sluice::server
