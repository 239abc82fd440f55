#include "server/leaving.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::server {

namespace v1 = handover::v1;

namespace {

// Limits in one message: names are some hundred bytes at most.
constexpr int kLimitsPerMessage = 100;

// Calls that wait for a rate that is in force; nullopt: it is none.
std::optional<size_t> WaitersOf(const LimitTable::Named& named, base::TimePoint now) {
  if (const auto* rate = std::get_if<RateLimit>(&named.limit); rate != nullptr && rate->limiter->enabled())
    return rate->limiter->waiting();
  const auto* clients = std::get_if<ClientRateLimit>(&named.limit);
  if (clients != nullptr && clients->limiter->enabled()) return clients->limiter->DebtsAt(now).waiting;
  return std::nullopt;
}

uint32_t PermilleOf(const LimitTable::Named& named) {
  const auto* rate = std::get_if<RateLimit>(&named.limit);
  return rate != nullptr ? rate->permille : std::get<ClientRateLimit>(named.limit).permille;
}

}  // namespace

HandedLevels Leaving::Split(const std::map<std::string, uint64_t>& others, base::TimePoint now, v1::Part* stays) {
  state_ = State::kSplit;
  const LimitTable table = limits_.Table();
  for (const auto& [name, limit] : FindSharedLimits(table, clusters_)) {
    if (limit.permits == nullptr || !limit.permits->enabled()) continue;
    const uint32_t before = limit.permits->own(), part = before > 1 ? (before + kFirstPart - 1) / kFirstPart : 0;
    if (const uint32_t units = limit.permits->Lend(std::min(part, FreeOf(*limit.permits))); units > 0)
      lent_[name] = units;
    const uint32_t own = limit.permits->own();
    demand_[name] = {.first = own, .busy = own, .before = own};  // what calls use is not known yet
    if (own > 0) AddHeld(stays, name, own);
  }
  HandedLevels levels;
  for (const LimitTable::Named& named : table.all()) {
    const auto* rate = std::get_if<RateLimit>(&named.limit);
    const auto* clients = std::get_if<ClientRateLimit>(&named.limit);
    size_t waiting = 0;
    if (rate != nullptr && rate->limiter->enabled()) {
      waiting = rate->limiter->waiting();
      const auto& level = levels.rates[named.name] = rate->limiter->LevelAt(now);
      const auto older = others.find(named.name);
      older_[named.name] = older == others.end() ? 0 : std::min(older->second, level.outstanding);
      outstanding_[named.name] = level.outstanding - older_[named.name];
      if (outstanding_[named.name] > 0) AddHeld(stays, named.name, outstanding_[named.name]);
    } else if (clients != nullptr && clients->limiter->enabled()) {
      const auto& debts = levels.clients[named.name] = clients->limiter->DebtsAt(now);
      waiting = debts.waiting;
    } else {
      continue;
    }
    // At once: what is taken between the look and this is given away twice.
    const uint32_t before = PermilleOf(named);
    const auto part = [before](uint32_t permille) { return std::max<uint32_t>(1, before * permille / kWhole); };
    const Share share{before, part(kWithout), part(waiting > 0 ? kWithWaiters : kWithout)};
    limits_.SetPermille(named.name, share.now);
    shares_[named.name] = share;
    AddShare(stays, named.name, share.now);
  }
  return levels;
}

void Leaving::Join() {
  if (state_ != State::kSplit) return;
  state_ = State::kWhole;
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  for (const auto& [name, units] : lent_) {
    const auto limit = shared.find(name);
    if (limit != shared.end() && limit->second.permits != nullptr)
      limit->second.permits->AddLent(-static_cast<int64_t>(units));
  }
  for (const auto& [name, share] : shares_) limits_.SetPermille(name, share.before);
  lent_.clear();
  demand_.clear();
  older_.clear();
  outstanding_.clear();
  shares_.clear();
}

void Leaving::Begin(handover::Channel channel, const std::vector<metrics::Counted>& counts, uint64_t clients,
                    base::TimePoint now) {
  state_ = State::kLeaving;
  clients_ = clients;
  channel_ = std::move(channel);
  counts_.emplace(counts);
  count_at_ = look_at_ = now;
  // What older processes give up they tell the other process from now on.
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  for (const auto& [name, units] : older_) {
    const auto limit = shared.find(name);
    if (limit != shared.end() && limit->second.capped != nullptr) limit->second.capped->ReleaseForOther(units);
  }
}

// Units for this process: in proportion to the clients that are left, and no more than its calls have used lately, with
// one to spare for the next call, if there is more than one.
uint32_t Leaving::Keep(const Demand& demand, uint64_t may_begin) const {
  may_begin = std::min(may_begin, clients_);
  if (may_begin == 0) return 0;
  const auto part = static_cast<uint32_t>((demand.first * may_begin + clients_ - 1) / clients_);
  return std::min(part, std::max(demand.busy, demand.before) + (demand.first > 1 ? 1 : 0));
}

// What came back and is not kept is the other process's.
void Leaving::Lend(const SharedLimits& shared, uint64_t may_begin, bool looks) {
  for (const auto& [name, limit] : shared) {
    if (limit.permits == nullptr || !limit.permits->enabled()) continue;
    const uint32_t own = limit.permits->own(), busy = std::min(own, limit.permits->in_use());
    uint32_t keep = 0;
    if (const auto known = demand_.find(name); known != demand_.end()) {
      Demand& demand = known->second;
      demand.busy = std::max(demand.busy, busy);
      keep = Keep(demand, may_begin);
      if (looks) demand.before = std::exchange(demand.busy, 0);
    }
    const uint32_t units = own > keep ? limit.permits->Lend(own - std::max(keep, busy)) : 0;
    if (units > 0) given_[name] += units;
  }
}

void Leaving::TellEnds(const SharedLimits& shared) {
  for (auto& [name, told] : outstanding_) {
    if (told == 0) continue;
    const auto limit = shared.find(name);
    const bool there = limit != shared.end() && limit->second.capped != nullptr;
    const uint64_t left = there ? limit->second.capped->outstanding() : 0;
    if (left < told) given_[name] += told - left;
    told = std::min(told, left);
  }
}

void Leaving::GiveShares(bool closed, base::TimePoint now) {
  const LimitTable table = limits_.Table();
  for (auto& [name, share] : shares_) {
    const uint32_t least = closed ? 0 : share.little;
    const LimitTable::Named* named = share.now > least ? table.Get(name) : nullptr;
    if (named == nullptr || WaitersOf(*named, now).value_or(0) > 0) continue;
    share.now = least;
    if (least > 0) limits_.SetPermille(name, least);  // before the other process is told
    given_shares_[name] = least;
  }
}

bool Leaving::SendGiven() {
  while (!given_.empty() || !given_shares_.empty()) {
    v1::Message message;
    v1::Given& given = *message.mutable_given();
    auto held = given_.begin();
    for (; held != given_.end() && given.held_size() < kLimitsPerMessage; ++held)
      AddHeld(&given, held->first, held->second);
    auto share = given_shares_.begin();
    for (; share != given_shares_.end() && given.shares_size() < kLimitsPerMessage; ++share)
      AddShare(&given, share->first, share->second);
    if (!channel_.Send(message).ok()) return false;
    given_.erase(given_.begin(), held);
    given_shares_.erase(given_shares_.begin(), share);
  }
  return true;
}

bool Leaving::SendReport(const Load& load, const SharedLimits& shared) {
  v1::Message message;
  v1::Report& report = *message.mutable_report();
  for (auto it = shared.begin(); it != shared.end() && report.wanted_size() < kLimitsPerMessage; ++it) {
    const auto& permits = it->second.permits;
    if (permits == nullptr || !permits->enabled() || permits->waiting() == 0) continue;
    v1::Held& wanted = *report.add_wanted();
    wanted.set_limit(it->first);
    wanted.set_units(permits->waiting());
  }
  const bool waits = report.wanted_size() > 0;
  if (!waits && load.calls == told_.calls && load.connections == told_.connections) return false;
  report.set_calls(load.calls);
  report.set_connections(load.connections);
  if (channel_.Send(message).ok()) told_ = load;
  return waits;
}

Leaving::Heard Leaving::Hear(const SharedLimits& shared) {
  Heard heard;
  for (;;) {
    auto received = channel_.Receive(std::chrono::milliseconds(0));
    if (received.ok() && !*received) return heard;
    if (!received.ok()) {
      channel_.Close();  // the other process has gone: what runs here runs on
      return heard;
    }
    heard.moved = true;
    if (!(*received)->message.has_order()) continue;
    for (const v1::Held& lent : (*received)->message.order().lent()) {
      const auto limit = shared.find(lent.limit());
      const auto units = static_cast<int64_t>(std::min<uint64_t>(lent.units(), std::numeric_limits<uint32_t>::max()));
      if (limit != shared.end() && limit->second.permits != nullptr) limit->second.permits->AddLent(-units);
    }
    heard.orders.push_back((*received)->message.order());
  }
}

Leaving::Heard Leaving::Step(const Load& load, base::TimePoint now) {
  if (state_ != State::kLeaving || !channel_.open()) return {};
  const bool looks = now >= look_at_;
  if (looks) {
    look_at_ = now + kLookPeriod;
    shared_ = FindSharedLimits(limits_.Table(), clusters_);
  }
  Heard heard = Hear(shared_);
  if (!channel_.open()) return heard;
  Lend(shared_, load.may_begin, looks);
  TellEnds(shared_);
  if (looks) GiveShares(load.may_begin == 0, now);
  heard.moved = heard.moved || !given_.empty() || !given_shares_.empty();
  if (!SendGiven()) return heard;
  if (looks) waits_ = SendReport(load, shared_);
  heard.waits = waits_;
  if (now >= count_at_) {
    count_at_ = now + kCountPeriod;
    SendCounts();
  }
  return heard;
}

void Leaving::SendCounts() {
  const std::vector<metrics::Counted> counts = counts_->Difference(registry_.Counts());
  if (counts.empty()) return;
  const auto file = WriteCounts(counts);
  v1::Message message;
  message.mutable_counted();
  const int fd = file.ok() ? file->get() : -1;
  if (!file.ok() || !channel_.Send(message, {&fd, 1}).ok()) counts_->Again(counts);
}

void Leaving::Finish() {
  shared_.clear();
  if (state_ == State::kLeaving && channel_.open()) SendCounts();
  channel_.Close();
}

}  // namespace sluice::server
