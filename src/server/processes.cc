#include "server/processes.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "server/clusters.h"
#include "server/handover_state.h"

namespace sluice::server {

namespace v1 = handover::v1;

namespace {

// Messages of one process that are read in a row.
constexpr int kMessagesMax = 64;

std::string NameOfEndpointLimit(const std::string& cluster, const std::string& endpoint) {
  std::string out("cluster/");
  out += cluster;
  out += "/endpoint/";
  out += endpoint;
  return out;
}

}  // namespace

SharedLimits FindSharedLimits(const LimitTable& limits, Clusters& clusters) {
  SharedLimits out;
  for (const LimitTable::Named& named : limits.all()) {
    if (const auto* permits = std::get_if<ConcurrencyLimit>(&named.limit)) out[named.name].permits = permits->limiter;
    const auto* rate = std::get_if<RateLimit>(&named.limit);
    if (rate != nullptr && rate->limiter->capped()) out[named.name].capped = rate->limiter;
  }
  for (const auto& state : clusters.States()) {
    for (const upstream::ListedEndpoint& listed : state->endpoints)
      out[NameOfEndpointLimit(state->name(), listed.endpoint->name())].permits = listed.endpoint->concurrency();
  }
  return out;
}

void Processes::Take(const v1::Take& take, std::vector<handover::Channel> channels) {
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  std::lock_guard lock(mutex_);
  for (int i = 0; i < take.processes_size(); ++i) {
    Former former;
    former.told = take.processes(i);
    if (static_cast<size_t>(i) < channels.size()) former.channel = std::move(channels[static_cast<size_t>(i)]);
    for (const v1::Held& held : former.told.held()) {
      constexpr uint64_t kUnitsMax = UINT32_MAX;  // of a limit
      if (held.units() == 0 || held.units() > kUnitsMax) continue;
      const auto limit = shared.find(held.limit());
      if (limit == shared.end()) continue;
      former.held[held.limit()] += held.units();
      // Of a capped rate the level that was handed over has them already.
      if (limit->second.permits != nullptr) limit->second.permits->AddLent(static_cast<int64_t>(held.units()));
    }
    for (const v1::Share& share : former.told.shares()) former.permille[share.limit()] = share.permille();
    former.told.clear_held();
    former.told.clear_shares();
    formers_.push_back(std::move(former));
  }
  for (const Former& former : formers_) {
    for (const auto& [limit, permille] : former.permille) ApplyShares(limit);
  }
}

void Processes::SetLastChannel(handover::Channel channel) {
  std::lock_guard lock(mutex_);
  if (!formers_.empty()) formers_.back().channel = std::move(channel);
}

size_t Processes::size() const {
  std::lock_guard lock(mutex_);
  return formers_.size();
}

bool Processes::Read() {
  std::lock_guard lock(mutex_);
  if (handed_on_) return false;
  bool heard = false;
  for (Former& former : formers_) {
    for (int i = 0; i < kMessagesMax && former.channel.open(); ++i) {
      auto received = former.channel.Receive(std::chrono::milliseconds(0));
      if (received.ok() && !*received) break;
      heard = true;
      if (received.ok()) {
        Hear(former, **received);
      } else {
        former.channel.Close();
      }
    }
  }
  const auto ended = std::stable_partition(formers_.begin(), formers_.end(),
                                           [](const Former& former) { return former.channel.open(); });
  for (auto it = ended; it != formers_.end(); ++it) End(*it);
  formers_.erase(ended, formers_.end());
  return heard;
}

void Processes::Hear(Former& former, const handover::Channel::Received& received) {
  const v1::Message& message = received.message;
  if (message.has_given()) {
    for (const v1::Held& held : message.given().held()) GiveBack(former, held.limit(), held.units());
    for (const v1::Share& share : message.given().shares()) {
      if (!former.permille.contains(share.limit())) continue;
      former.permille[share.limit()] = share.permille();
      ApplyShares(share.limit());
    }
  } else if (message.has_counted() && received.descriptors.size() == 1) {
    if (const auto status = ReadCounts(received.descriptors[0], registry_); !status)
      SLUICE_LOG_WARN("what process {} has counted: {}", former.told.pid(), status.error().detail);
  } else if (message.has_report()) {
    former.told.set_calls(message.report().calls());
    former.told.set_connections(message.report().connections());
  }
}

// No more than it has.
void Processes::GiveBack(Former& former, const std::string& limit, uint64_t units) {
  const auto held = former.held.find(limit);
  if (held == former.held.end()) return;
  units = std::min(units, held->second);
  held->second -= units;
  if (held->second == 0) former.held.erase(held);
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  const auto found = shared.find(limit);
  if (found == shared.end()) return;
  if (found->second.permits != nullptr) found->second.permits->AddLent(-static_cast<int64_t>(units));
  if (found->second.capped != nullptr) found->second.capped->ReleaseForOther(units);
}

void Processes::End(Former& former) {
  SLUICE_LOG_INFO("process {} (generation {}) has ended", former.told.pid(), former.told.generation());
  while (!former.held.empty()) {
    const auto [limit, units] = *former.held.begin();
    GiveBack(former, limit, units);
  }
  for (auto& [limit, permille] : former.permille) {
    permille = 0;
    ApplyShares(limit);
  }
}

void Processes::ApplyShares(const std::string& limit) {
  uint32_t others = 0;
  for (const Former& former : formers_) {
    if (const auto it = former.permille.find(limit); it != former.permille.end()) others += it->second;
  }
  limits_.SetPermille(limit, kWhole - std::min(others, kWhole - 1));
}

void Processes::Tell(const v1::Order& order) {
  v1::Message message;
  *message.mutable_order() = order;
  std::lock_guard lock(mutex_);
  for (Former& former : formers_) {
    if (former.channel.open() && !handed_on_) (void)former.channel.Send(message);
  }
}

void Processes::TellToEnd(std::chrono::milliseconds within) {
  v1::Order order;
  order.set_end_within_ms(static_cast<uint64_t>(within.count()));
  Tell(order);
}

void Processes::TellToReopenLogs() {
  v1::Order order;
  order.set_reopen_logs(true);
  Tell(order);
}

std::vector<admin::ProcessView> Processes::List(base::TimePoint now) const {
  std::vector<admin::ProcessView> out;
  std::lock_guard lock(mutex_);
  for (const Former& former : formers_) {
    const base::TimePoint left = base::TimePoint(std::chrono::milliseconds(former.told.left_at_ms()));
    out.push_back({former.told.pid(), former.told.generation(), former.told.version(), false,
                   former.told.left_at_ms() > 0 && left < now ? now - left : base::Nanos(0), former.told.calls(),
                   former.told.connections()});
  }
  return out;
}

void Processes::HandOn(v1::Take* take, std::vector<int>* sockets) {
  std::lock_guard lock(mutex_);
  handed_on_ = true;
  for (const Former& former : formers_) {
    v1::Process& process = *take->add_processes();
    process = former.told;
    for (const auto& [limit, units] : former.held) {
      v1::Held& held = *process.add_held();
      held.set_limit(limit);
      held.set_units(units);
    }
    for (const auto& [limit, permille] : former.permille) {
      v1::Share& share = *process.add_shares();
      share.set_limit(limit);
      share.set_permille(permille);
    }
    sockets->push_back(former.channel.fd());
  }
}

void Processes::Keep() {
  std::lock_guard lock(mutex_);
  handed_on_ = false;
}

void Processes::LetGo() {
  std::lock_guard lock(mutex_);
  formers_.clear();
}

std::map<std::string, uint64_t> Processes::Held() const {
  std::map<std::string, uint64_t> out;
  std::lock_guard lock(mutex_);
  for (const Former& former : formers_) {
    for (const auto& [limit, units] : former.held) out[limit] += units;
  }
  return out;
}

}  // namespace sluice::server
