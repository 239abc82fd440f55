// Leaving: how a process that is replaced gives up its part of what both have: permits, rates, and what it counts.
//
//   kWhole --Split--> kSplit --Begin--> kLeaving
//     ^-----Join--------'
//
// Permits are conserved: a unit is taken away here (limits::ConcurrencyLimiter::Lend) before the other process is told
// that it has it. They follow the calls: what stays here falls with the connections on which a client may still begin
// a call, and with what calls here have used lately. Where calls wait here, and no unit is here to come back to them,
// the other process is asked for some. Of a rate each process has a part, and the parts are one: here nearly all of it
// as long as calls wait, which came first; then little; then, when no call can come any more, nothing.
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
  // Of a limit's permits, what the other process gets before it serves: its first clients find one at least, unless
  // there is only one.
  static constexpr uint32_t kFirstPart = 8;  // 1/8
  // Of the part of a rate that was this process's: while calls wait for it here, and while new calls may still come.
  static constexpr uint32_t kWithWaiters = 875, kWithout = 125;  // permille
  // Between two looks at which limits there are and whether calls wait for rates, two questions for permits and two
  // reports of the load.
  static constexpr std::chrono::milliseconds kLookPeriod{20};
  // Between two reports of what was counted.
  static constexpr std::chrono::milliseconds kCountPeriod{1000};

  enum class State : uint8_t { kWhole, kSplit, kLeaving };

  Leaving(LimitSet& limits, Clusters& clusters, metrics::Registry& registry)
      : limits_(limits), clusters_(clusters), registry_(registry) {}

  State state() const { return state_; }
  // The first part for the other process; what stays here. `others`: what older processes have of each limit. The
  // levels of the rates just before, of which the other process gets what is not kept here.
  HandedLevels Split(const std::map<std::string, uint64_t>& others, base::TimePoint now, handover::v1::Part* stays);
  // As it was before.
  void Join();
  // The other process has the rest. `counts`: as it was told them. `clients`: Load::may_begin now.
  void Begin(handover::Channel channel, const std::vector<metrics::Counted>& counts, uint64_t clients,
             base::TimePoint now);

  struct Load {
    uint64_t may_begin = 0;  // connections on which a client may begin a call here; once 0 it stays so
    uint64_t calls = 0, connections = 0;
  };
  struct Heard {
    bool moved = false;  // something was said or heard
    bool waits = false;  // calls here wait for permits that the other process may have
    std::vector<handover::v1::Order> orders;
  };
  // Gives what there is to give, says what was counted, and hears what is ordered.
  Heard Step(const Load& load, base::TimePoint now);
  // The last counts.
  void Finish();

 private:
  // A share of a rate: before the split, and what it may come to.
  struct Share {
    uint32_t before, little, now;
  };
  // What calls here make of a limit's permits.
  struct Demand {
    uint32_t first;         // units that stayed here at the split
    uint32_t busy, before;  // most that were in use since the last look, and before that
  };
  uint32_t Keep(const Demand& demand, uint64_t may_begin) const;
  void Lend(const SharedLimits& shared, uint64_t may_begin, bool looks);
  void TellEnds(const SharedLimits& shared);
  void GiveShares(bool closed, base::TimePoint now);
  // False: not all of it could be said now.
  bool SendGiven();
  // True: it asks for permits.
  bool SendReport(const Load& load, const SharedLimits& shared);
  void SendCounts();
  Heard Hear(const SharedLimits& shared);

  LimitSet& limits_;
  Clusters& clusters_;
  metrics::Registry& registry_;
  State state_ = State::kWhole;
  handover::Channel channel_;
  std::map<std::string, uint64_t> lent_;         // permits that were taken away here
  std::map<std::string, Demand> demand_;         // for permits
  std::map<std::string, uint64_t> older_;        // of capped rates: what older processes have
  std::map<std::string, uint64_t> outstanding_;  // of capped rates, as the other process knows them
  std::map<std::string, Share> shares_;          // of rates
  // What the other process has yet to be told.
  std::map<std::string, uint64_t> given_;
  std::map<std::string, uint32_t> given_shares_;
  std::optional<CountsSince> counts_;
  uint64_t clients_ = 0;                    // Load::may_begin when the other process began to serve
  base::TimePoint count_at_{}, look_at_{};  // the next ones
  SharedLimits shared_;                     // as of the last look, as the next one
  bool waits_ = false;
  Load told_;
};

}  // namespace sluice::server
