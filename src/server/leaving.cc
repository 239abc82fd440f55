#include "server/leaving.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace sluice::server {

namespace v1 = handover::v1;

namespace {

void AddHeld(v1::Given* given, const std::string& limit, uint64_t units) {
  v1::Held& held = *given->add_held();
  held.set_limit(limit);
  held.set_units(units);
}

// Calls that wait for a rate that is in force; nullopt: it is none.
std::optional<size_t> WaitersOf(const LimitTable::Named& named, base::TimePoint now) {
  if (const auto* rate = std::get_if<RateLimit>(&named.limit); rate != nullptr && rate->limiter->enabled())
    return rate->limiter->waiting();
  const auto* clients = std::get_if<ClientRateLimit>(&named.limit);
  if (clients != nullptr && clients->limiter->enabled()) return clients->limiter->DebtsAt(now).waiting;
  return std::nullopt;
}

}  // namespace

HandedLevels Leaving::Split(const std::map<std::string, uint64_t>& others, base::TimePoint now, v1::Process* stays) {
  state_ = State::kSplit;
  v1::Given given;
  Lend(/*all=*/false, &given);
  const auto stay = [&](const std::string& limit, uint64_t units) {
    if (units == 0) return;
    v1::Held& held = *stays->add_held();
    held.set_limit(limit);
    held.set_units(units);
  };
  const LimitTable table = limits_.Table();
  for (const auto& [name, limit] : FindSharedLimits(table, clusters_)) {
    if (limit.permits != nullptr) stay(name, limit.permits->own());
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
      outstanding_[named.name] =
          level.outstanding - (older == others.end() ? 0 : std::min(older->second, level.outstanding));
      stay(named.name, outstanding_[named.name]);
    } else if (clients != nullptr && clients->limiter->enabled()) {
      const auto& debts = levels.clients[named.name] = clients->limiter->DebtsAt(now);
      waiting = debts.waiting;
    } else {
      continue;
    }
    // At once: what is taken between the look and this is given away twice.
    const uint32_t permille = waiting > 0 ? kWithWaiters : kWithout;
    limits_.SetPermille(named.name, permille);
    permille_[named.name] = permille;
    v1::Share& share = *stays->add_shares();
    share.set_limit(named.name);
    share.set_permille(permille);
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
  for (const auto& [name, permille] : permille_) limits_.SetPermille(name, kWhole);
  lent_.clear();
  outstanding_.clear();
  permille_.clear();
}

void Leaving::Begin(handover::Channel channel, const std::vector<metrics::Counted>& counts, base::TimePoint now) {
  state_ = State::kLeaving;
  channel_ = std::move(channel);
  counts_.emplace(counts);
  counted_at_ = now;
}

void Leaving::Lend(bool all, v1::Given* given) {
  for (const auto& [name, limit] : FindSharedLimits(limits_.Table(), clusters_)) {
    if (limit.permits == nullptr || !limit.permits->enabled()) continue;
    const uint32_t free = limit.permits->own() - std::min(limit.permits->own(), limit.permits->in_use());
    // As long as clients may begin calls here some are kept for those.
    const uint32_t units = limit.permits->Lend(all ? std::numeric_limits<uint32_t>::max() : free - free / 2);
    if (units == 0) continue;
    lent_[name] += units;
    AddHeld(given, name, units);
  }
}

void Leaving::GiveShares(bool closed, v1::Given* given) {
  const LimitTable table = limits_.Table();
  for (const LimitTable::Named& named : table.all()) {
    const auto it = permille_.find(named.name);
    if (it == permille_.end()) continue;
    if (WaitersOf(named, base::Clock::Steady().Now()).value_or(0) > 0) continue;
    const uint32_t permille = closed ? 0 : std::min(it->second, kWithout);
    if (permille == it->second) continue;
    it->second = permille;
    if (permille > 0) limits_.SetPermille(named.name, permille);  // before the other process is told
    v1::Share& share = *given->add_shares();
    share.set_limit(named.name);
    share.set_permille(permille);
  }
}

Leaving::Heard Leaving::Step(const Load& load, base::TimePoint now) {
  Heard heard;
  if (state_ != State::kLeaving || !channel_.open()) return heard;
  v1::Message message;
  v1::Given& given = *message.mutable_given();
  given = std::exchange(unsent_, {});
  Lend(load.closed, &given);
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  for (auto& [name, told] : outstanding_) {
    const auto limit = shared.find(name);
    const uint64_t left =
        limit == shared.end() || limit->second.capped == nullptr ? 0 : limit->second.capped->outstanding();
    if (left >= told) continue;
    AddHeld(&given, name, told - left);
    told = left;
  }
  GiveShares(load.closed, &given);
  if (given.held_size() > 0 || given.shares_size() > 0) {
    heard.moved = true;
    const auto sent = channel_.Send(message);
    if (!sent && sent.error().kind == base::ErrorKind::kBusy) unsent_ = given;
  }
  if (load.calls != told_.calls || load.connections != told_.connections) {
    v1::Message report;
    report.mutable_report()->set_calls(load.calls);
    report.mutable_report()->set_connections(load.connections);
    if (channel_.Send(report).ok()) told_ = load;
  }
  if (now - counted_at_ >= kCountPeriod) {
    counted_at_ = now;
    SendCounts();
  }
  for (;;) {
    auto received = channel_.Receive(std::chrono::milliseconds(0));
    if (received.ok() && !*received) break;
    if (!received.ok()) {
      channel_.Close();  // the other process has gone: what runs here runs on
      break;
    }
    heard.moved = true;
    if ((*received)->message.has_order()) heard.orders.push_back((*received)->message.order());
  }
  return heard;
}

void Leaving::SendCounts() {
  const std::vector<metrics::Counted> counts = counts_->Difference(registry_.Counts());
  if (counts.empty()) return;
  auto file = WriteCounts(counts);
  if (!file) return;
  v1::Message message;
  message.mutable_counted();
  const int fd = file->get();
  (void)channel_.Send(message, {&fd, 1});
}

void Leaving::Finish() {
  if (state_ == State::kLeaving && channel_.open()) SendCounts();
  channel_.Close();
}

}  // namespace sluice::server
