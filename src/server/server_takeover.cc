// The server's start where it takes over from another process of the daemon (docs/handover.md).
#include <unistd.h>

#include "base/log.h"
#include "handover/predecessor.h"
#include "server/handover_state.h"
#include "server/processes.h"
#include "server/server.h"

namespace sluice::server {

namespace v1 = handover::v1;
using std::chrono::milliseconds;

// How soon what the replaced processes say is read: in the first moments, when permits of theirs are waited for; then
// while they say something, and while they say nothing.
constexpr milliseconds kReadAtOnce{1}, kReadSoon{5}, kReadLater{50};
constexpr milliseconds kReadAtOnceFor{2'000};

// Behind LimitSet::Apply, before there are clusters and listeners.
base::Result<HandedLists> Server::MeetPredecessor() {
  handover::Predecessor& former = *options_.predecessor;
  sockets_ours_->store(false, std::memory_order_relaxed);
  changes_.Close("this process is about to take over; repeat it");
  generation_ = former.begin().generation() + 1;
  auto lists = ReadLists(former.lists());
  if (!lists) return lists.error();
  for (const LimitTable::Named& limit : lists->limits) limits_.TakeInForce(limit);
  std::vector<Listeners::Inherited> sockets;
  for (int i = 0; i < former.begin().sockets_size(); ++i) {
    const v1::Socket& socket = former.begin().sockets(i);
    if (socket.owner() != v1::Socket::OWNER_LISTENER) continue;
    auto adopted = net::ListenSocket::Adopt(former.TakeSocket(i).Release(), !socket.supervised());
    if (!adopted) return adopted.error();
    adopted->SetTenure(sockets_ours_);
    sockets.push_back({socket.configured(), socket.name(), std::move(*adopted)});
  }
  listeners_.SetInherited(std::move(sockets));
  return lists;
}

std::optional<net::ListenSocket> Server::AdoptAdmin(bool rpc, const std::string& address) {
  if (options_.predecessor == nullptr) return std::nullopt;
  const auto owner = rpc ? v1::Socket::OWNER_ADMIN_RPC : v1::Socket::OWNER_ADMIN_HTTP;
  const v1::Begin& begin = options_.predecessor->begin();
  for (int i = 0; i < begin.sockets_size(); ++i) {
    if (begin.sockets(i).owner() != owner || begin.sockets(i).configured() != address) continue;
    auto adopted = net::ListenSocket::Adopt(options_.predecessor->TakeSocket(i).Release(), true);
    if (!adopted) return std::nullopt;
    adopted->SetTenure(sockets_ours_);
    return std::move(*adopted);
  }
  return std::nullopt;
}

// Everything is built, and nothing accepts: the rest is what the predecessor knows at the last moment.
base::Status Server::TakeOver() {
  handover::Predecessor& former = *options_.predecessor;
  if (auto status = former.Ready(); !status) return status;
  auto parts = ReadParts(former.held());
  if (!parts) return parts.error();
  processes_->Take(former.take(), std::move(*parts), former.TakeChannels());
  const std::shared_ptr<proxy::ResponseCache> cache = cache_->cache();
  return ReadState(former.state(), {*clusters_, limits_.Table(), *registry_, cache.get()}, base::Clock::Steady().Now());
}

// Just before the first connection is accepted, which cannot fail.
void Server::BeginServing() {
  serving_since_ = base::Clock::Steady().Now();
  if (options_.predecessor == nullptr) return;
  handover::Predecessor& former = *options_.predecessor;
  sockets_ours_->store(true, std::memory_order_relaxed);
  processes_->SetLastChannel(former.Serving());
  listeners_.DropInherited();
  // Those of admin addresses that are configured otherwise now.
  for (int i = 0; i < former.begin().sockets_size(); ++i) {
    if (handover::Descriptor left = former.TakeSocket(i); left.get() >= 0)
      (void)net::ListenSocket::Adopt(left.Release(), !former.begin().sockets(i).supervised());
  }
  clusters_->TakeStateFile();
  changes_.Open();
  SLUICE_LOG_INFO("has taken over from process {}, as generation {}", former.begin().pid(), generation_);
  if (life_.draining()) TellProcessesToEnd(config_.drain_timeout);
  life_.Call([this] { StepProcesses(); });
}

void Server::StepProcesses() {
  const Processes::Heard heard = processes_->Read();
  const bool first = base::Clock::Steady().Now() < serving_since_ + kReadAtOnceFor;
  const milliseconds pause = first || heard.waits ? kReadAtOnce : heard.something ? kReadSoon : kReadLater;
  if (processes_->size() > 0) return life_.Call([this] { StepProcesses(); }, pause);
  if (waits_for_processes_.exchange(false, std::memory_order_relaxed)) life_.PartDrained();
}

void Server::TellProcessesToEnd(milliseconds within) {
  // Not before this process serves: until then they are the predecessor's.
  if (processes_ != nullptr && sockets_ours_->load(std::memory_order_relaxed)) processes_->TellToEnd(within);
}

std::vector<admin::ProcessView> Server::ListProcesses() {
  const base::TimePoint now = base::Clock::Steady().Now();
  const admin::ServerView self = DescribeServer();
  std::vector<admin::ProcessView> out = processes_->List(now);
  out.push_back({self.pid, generation_, self.version, true, now - serving_since_, self.calls_in_flight,
                 self.downstream_connections});
  return {out.rbegin(), out.rend()};
}

}  // namespace sluice::server
