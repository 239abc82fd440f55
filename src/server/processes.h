// Processes: the processes of the daemon that this one has replaced, and that still have calls. What they have of the
// limits counts here too, until they say that they have it no more, or end; what they count is counted on here.
//
// Thread safety: every function from any thread but a worker's; one mutex, which is held for as long as it takes to
// read what the processes have said.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "admin/backend.h"
#include "base/clock.h"
#include "handover/channel.h"
#include "metrics/registry.h"
#include "server/limit_set.h"

namespace sluice::server {

class Clusters;

// A limit of which a process that leaves has a part, by name: one of the two is set.
struct SharedLimit {
  std::shared_ptr<limits::ConcurrencyLimiter> permits;
  std::shared_ptr<limits::RateLimiter> capped;
};
using SharedLimits = std::map<std::string, SharedLimit>;
// All of `limits` and of the endpoints ("cluster/NAME/endpoint/ENDPOINT").
SharedLimits FindSharedLimits(const LimitTable& limits, Clusters& clusters);

// Units that are this process's and not in use.
inline uint32_t FreeOf(const limits::ConcurrencyLimiter& permits) {
  const uint32_t own = permits.own();
  return own - std::min(own, permits.in_use());
}

// Write what a process has, or has no more, into a Part or a Given.
template <typename Message>
void AddHeld(Message* message, const std::string& limit, uint64_t units) {
  handover::v1::Held& held = *message->add_held();
  held.set_limit(limit);
  held.set_units(units);
}
template <typename Message>
void AddShare(Message* message, const std::string& limit, uint32_t permille) {
  handover::v1::Share& share = *message->add_shares();
  share.set_limit(limit);
  share.set_permille(permille);
}

class Processes {
 public:
  // So many may be there: one more is not made.
  static constexpr size_t kMax = 8;

  Processes(LimitSet& limits, Clusters& clusters, metrics::Registry& registry)
      : limits_(limits), clusters_(clusters), registry_(registry) {}

  // The processes of `take`, with what each of them has (`parts`), whose channels are `channels` but for the last,
  // which has none yet. Before any call.
  void Take(const handover::v1::Take& take, std::vector<handover::v1::Part> parts,
            std::vector<handover::Channel> channels);
  void SetLastChannel(handover::Channel channel);

  size_t size() const;
  struct Heard {
    bool something = false;
    bool waits = false;  // calls of theirs wait for permits that come back here
  };
  // Reads what they have said.
  Heard Read();
  // Orders to all of them. What cannot be told to one now is told later, where it still matters.
  void TellToEnd(std::chrono::milliseconds within);
  void TellToReopenLogs();
  std::vector<admin::ProcessView> List(base::TimePoint now) const;

  // For the process that takes over from this one: the processes as this one sees them, what each of them has, and
  // their sockets. Nothing is read meanwhile: until Keep, or LetGo.
  void HandOn(handover::v1::Take* take, std::vector<handover::v1::Part>* parts, std::vector<int>* sockets);
  void Keep();
  void LetGo();
  // Units of each limit that all of them have.
  std::map<std::string, uint64_t> Held() const;

 private:
  struct Former {
    handover::v1::Process told;
    handover::Channel channel;
    std::map<std::string, uint64_t> held;
    std::map<std::string, uint32_t> permille;
    bool waits = false;                        // it asked for permits when it last said how it is
    std::map<std::string, uint32_t> promised;  // units of each limit that are this process's when they come back here
  };

  void Tell(const handover::v1::Order& order);
  // Under mutex_, all of these. `shared`: as they are at the moment.
  void Hear(Former& former, const handover::Channel::Received& received, const SharedLimits& shared);
  static void GiveBack(Former& former, const std::string& limit, uint64_t units, const SharedLimits& shared);
  static uint32_t Missing(const Former& former, const std::string& limit, const limits::ConcurrencyLimiter& permits,
                          uint64_t waiting);
  static void Lend(Former& former, const handover::v1::Report& report, const SharedLimits& shared);
  bool KeepPromises(Former& former, const SharedLimits& shared);
  uint32_t PromisedOf(const std::string& limit) const;
  static void TakePromisesBack(Former& former, const SharedLimits& shared);
  static void SendLent(Former& former, const handover::v1::Message& message, const SharedLimits& shared);
  void End(Former& former, const SharedLimits& shared);
  void ApplyShares(const std::string& limit);

  LimitSet& limits_;
  Clusters& clusters_;
  metrics::Registry& registry_;
  mutable std::mutex mutex_;
  std::vector<Former> formers_;  // oldest first
  bool handed_on_ = false;
  std::optional<std::chrono::milliseconds> end_within_;  // as it was ordered last
};

}  // namespace sluice::server
