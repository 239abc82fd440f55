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
// Permits of a limit that are lent at a time.
constexpr uint32_t kLendMax = 64;
// Of a limit.
constexpr uint64_t kUnitsMax = UINT32_MAX;

// Units of a limit in a map by name; 0: it is not there.
template <typename Units>
Units UnitsOf(const std::map<std::string, Units>& map, const std::string& limit) {
  const auto it = map.find(limit);
  return it == map.end() ? 0 : it->second;
}

void AddLent(v1::Message* message, const std::string& limit, uint64_t units) {
  v1::Held& lent = *message->mutable_order()->add_lent();
  lent.set_limit(limit);
  lent.set_units(units);
}

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

void Processes::Take(const v1::Take& take, std::vector<v1::Part> parts, std::vector<handover::Channel> channels) {
  const SharedLimits shared = FindSharedLimits(limits_.Table(), clusters_);
  std::lock_guard lock(mutex_);
  parts.resize(static_cast<size_t>(take.processes_size()));
  channels.resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    Former former;
    former.told = take.processes(static_cast<int>(i));
    former.channel = std::move(channels[i]);
    for (const v1::Held& held : parts[i].held()) {
      const auto limit = shared.find(held.limit());
      if (limit == shared.end() || held.units() == 0 || held.units() > kUnitsMax) continue;
      former.held[held.limit()] += held.units();
      // Of a capped rate the level that was handed over has them already.
      if (limit->second.permits != nullptr) limit->second.permits->AddLent(static_cast<int64_t>(held.units()));
    }
    for (const v1::Share& share : parts[i].shares())
      former.permille[share.limit()] = std::min(share.permille(), kWhole);
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

Processes::Heard Processes::Read() {
  std::lock_guard lock(mutex_);
  if (handed_on_ || formers_.empty()) return {};
  std::optional<SharedLimits> shared;  // looked for once, where there is something to hear
  const auto now_shared = [&]() -> const SharedLimits& {
    if (!shared) shared = FindSharedLimits(limits_.Table(), clusters_);
    return *shared;
  };
  Heard heard;
  for (Former& former : formers_) {
    for (int i = 0; i < kMessagesMax && former.channel.open(); ++i) {
      auto received = former.channel.Receive(std::chrono::milliseconds(0));
      if (received.ok() && !*received) break;
      heard.something = true;
      if (received.ok()) {
        Hear(former, **received, now_shared());
      } else {
        former.channel.Close();
      }
    }
    if (!former.promised.empty() && former.channel.open()) heard.something |= KeepPromises(former, now_shared());
    heard.waits |= former.waits || !former.promised.empty();
  }
  const auto ended = std::stable_partition(formers_.begin(), formers_.end(),
                                           [](const Former& former) { return former.channel.open(); });
  for (auto it = ended; it != formers_.end(); ++it) End(*it, now_shared());
  formers_.erase(ended, formers_.end());
  return heard;
}

void Processes::Hear(Former& former, const handover::Channel::Received& received, const SharedLimits& shared) {
  const v1::Message& message = received.message;
  if (message.has_given()) {
    for (const v1::Held& held : message.given().held()) GiveBack(former, held.limit(), held.units(), shared);
    for (const v1::Share& share : message.given().shares()) {
      const auto known = former.permille.find(share.limit());
      if (known == former.permille.end()) continue;
      known->second = std::min(share.permille(), known->second);  // a share is given, never taken
      ApplyShares(share.limit());
    }
  } else if (message.has_counted() && received.descriptors.size() == 1) {
    if (const auto status = ReadCounts(received.descriptors[0], registry_); !status)
      SLUICE_LOG_WARN("what process {} has counted: {}", former.told.pid(), status.error().detail);
  } else if (message.has_report()) {
    former.told.set_calls(message.report().calls());
    former.told.set_connections(message.report().connections());
    former.waits = message.report().wanted_size() > 0;
    Lend(former, message.report(), shared);
  }
}

// No more than it has.
void Processes::GiveBack(Former& former, const std::string& limit, uint64_t units, const SharedLimits& shared) {
  const auto held = former.held.find(limit);
  if (held == former.held.end()) return;
  units = std::min(units, held->second);
  held->second -= units;
  if (held->second == 0) former.held.erase(held);
  const auto found = shared.find(limit);
  if (found == shared.end()) return;
  if (found->second.permits != nullptr) found->second.permits->AddLent(-static_cast<int64_t>(units));
  if (found->second.capped != nullptr) found->second.capped->ReleaseForOther(units);
}

// How many units more than it has that process is to have of a limit for which `waiting` calls wait there: of the units
// of both processes a part as large as that of its waiters, which are the older ones.
uint32_t Processes::Missing(const Former& former, const std::string& limit, const limits::ConcurrencyLimiter& permits,
                            uint64_t waiting) {
  const uint64_t here = permits.waiting(), promised = UnitsOf(former.promised, limit);
  const uint64_t there = UnitsOf(former.held, limit) + promised, both = there + permits.own();
  const uint64_t part = (both * waiting + waiting + here - 1) / (waiting + here);  // rounded up
  if (part <= there || waiting <= promised) return 0;
  return static_cast<uint32_t>(std::min({part - there, waiting - promised, uint64_t{kLendMax}}));
}

// Calls wait there. Half of the units that are free here go at once, as calls begin here, too. The rest is promised, of
// the units that are returned here next: the waiters here would let none go there.
void Processes::Lend(Former& former, const v1::Report& report, const SharedLimits& shared) {
  v1::Message message;
  for (const v1::Held& wanted : report.wanted()) {
    const std::string& limit = wanted.limit();
    const auto found = shared.find(limit);
    const uint64_t waiting = std::min<uint64_t>(wanted.units(), kUnitsMax);
    if (waiting == 0) continue;
    if (found == shared.end() || found->second.permits == nullptr || !found->second.permits->enabled()) {
      AddLent(&message, limit, waiting);  // no call here has use for them: an endpoint that is listed there alone
      continue;
    }
    limits::ConcurrencyLimiter& permits = *found->second.permits;
    const uint32_t more = Missing(former, limit, permits, waiting);
    if (const uint32_t units = permits.Lend(std::min(more, (FreeOf(permits) + 1) / 2)); units > 0) {
      AddLent(&message, limit, units);
    } else if (const uint32_t most = std::min(more, permits.own()); most > 0 && FreeOf(permits) == 0) {
      former.promised[limit] += most;
      permits.AddLent(most);
    }
  }
  SendLent(former, message, shared);
}

// True: units have come back, and went.
bool Processes::KeepPromises(Former& former, const SharedLimits& shared) {
  v1::Message message;
  for (auto it = former.promised.begin(); it != former.promised.end();) {
    const auto found = shared.find(it->first);
    uint32_t units = it->second;
    if (found != shared.end() && found->second.permits != nullptr) {
      const limits::ConcurrencyLimiter& permits = *found->second.permits;
      const uint32_t in_use = permits.in_use(), own = permits.own(), owed = in_use - std::min(own, in_use);
      const uint32_t promised = PromisedOf(it->first);
      units = std::min(units, promised - std::min(promised, owed));
      if (units > 0) AddLent(&message, it->first, units);
    }
    it->second -= units;
    it = it->second == 0 ? former.promised.erase(it) : std::next(it);
  }
  SendLent(former, message, shared);
  return message.has_order();
}

uint32_t Processes::PromisedOf(const std::string& limit) const {
  uint32_t sum = 0;
  for (const Former& former : formers_) sum += UnitsOf(former.promised, limit);
  return sum;
}

void Processes::TakePromisesBack(Former& former, const SharedLimits& shared) {
  for (const auto& [limit, units] : former.promised) {
    const auto found = shared.find(limit);
    if (found != shared.end() && found->second.permits != nullptr)
      found->second.permits->AddLent(-static_cast<int64_t>(units));
  }
  former.promised.clear();
}

// What `message` lends has been taken away here.
void Processes::SendLent(Former& former, const v1::Message& message, const SharedLimits& shared) {
  if (!message.has_order()) return;
  for (const v1::Held& lent : message.order().lent()) former.held[lent.limit()] += lent.units();
  if (former.channel.Send(message).ok()) return;
  for (const v1::Held& lent : message.order().lent()) GiveBack(former, lent.limit(), lent.units(), shared);
}

void Processes::End(Former& former, const SharedLimits& shared) {
  SLUICE_LOG_INFO("process {} (generation {}) has ended", former.told.pid(), former.told.generation());
  TakePromisesBack(former, shared);
  while (!former.held.empty()) {
    const auto [limit, units] = *former.held.begin();
    GiveBack(former, limit, units, shared);
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
  if (order.has_end_within_ms()) end_within_ = std::chrono::milliseconds(order.end_within_ms());
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

void Processes::HandOn(v1::Take* take, std::vector<v1::Part>* parts, std::vector<int>* sockets) {
  std::lock_guard lock(mutex_);
  handed_on_ = true;
  std::optional<SharedLimits> shared;
  for (Former& former : formers_) {
    if (!former.promised.empty()) {
      if (!shared) shared = FindSharedLimits(limits_.Table(), clusters_);
      TakePromisesBack(former, *shared);  // it asks again, of the process that takes over
    }
    *take->add_processes() = former.told;
    v1::Part& part = parts->emplace_back();
    for (const auto& [limit, units] : former.held) AddHeld(&part, limit, units);
    for (const auto& [limit, permille] : former.permille) AddShare(&part, limit, permille);
    sockets->push_back(former.channel.fd());
  }
}

void Processes::Keep() {
  std::optional<std::chrono::milliseconds> end_within;
  {
    std::lock_guard lock(mutex_);
    handed_on_ = false;
    end_within = end_within_;
    for (const Former& former : formers_) {
      for (const auto& [limit, permille] : former.permille) ApplyShares(limit);
    }
  }
  if (end_within) TellToEnd(*end_within);
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
