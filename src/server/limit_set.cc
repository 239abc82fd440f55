#include "server/limit_set.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "config/values.h"
#include "limits/option_table.h"

namespace sluice::server {
namespace {

using base::ErrorKind;
using base::MakeError;
using limits::ConcurrencyOptions;
using limits::RateOptions;

constexpr std::string_view kProcess = "process/concurrency";

template <typename... Parts>
std::string Join(const Parts&... parts) {
  std::string out;
  ((out += parts), ...);
  return out;
}

std::string Name(std::string_view scope, std::string_view owner, std::string_view what) {
  return Join(scope, "/", owner, "/", what);
}

base::Error Bad(std::string why) { return MakeError(ErrorKind::kInvalidArgument, std::move(why)); }

// Whether each option is in its range, by the table that the configuration is checked with.
template <typename Options, size_t N>
base::Status CheckRanges(const base::Option<Options> (&table)[N], const Options& options) {
  for (const base::Option<Options>& option : table) {
    const double value = option.Get(options);
    const auto& [kind, min, max] = option.range;
    const bool or_zero = kind == base::OptionKind::kDecimalOrZero;
    if ((or_zero && value == 0) || (value >= min && value <= max)) continue;  // not so for what is not a number
    return Bad(Join(option.key, ": ", config::FormatDecimal(value),
                    or_zero ? " is neither 0 (no limit) nor in [" : " is not in [", config::FormatDecimal(min), ", ",
                    config::FormatDecimal(max), "]"));
  }
  return base::Ok();
}

// A limit's options as `change` wants them; an error says what is allowed.
base::Result<RateOptions> Changed(RateOptions options, const admin::LimitChange& change) {
  if (change.max) return Bad(Join(change.name, " is a rate: it has rate, burst, queue and queue_time, not max"));
  options.rate = change.rate.value_or(options.rate);
  options.burst = change.burst.value_or(options.burst);
  options.queue_max = change.queue_max.value_or(options.queue_max);
  options.queue_time = change.queue_time.value_or(options.queue_time);
  // With a cap of one call the next may start only when it has ended, whatever the rate.
  if (options.capped && options.burst < 2) return Bad(Join(change.name, " is capped: burst must be in [2, 10000000]"));
  if (auto status = CheckRanges(limits::kRateOptions, options); !status) return status.error();
  return options;
}

base::Result<ConcurrencyOptions> Changed(ConcurrencyOptions options, const admin::LimitChange& change) {
  if (change.rate || change.burst)
    return Bad(Join(change.name, " has max, queue and queue_time, neither rate nor burst"));
  options.max = change.max.value_or(options.max);
  options.queue_max = change.queue_max.value_or(options.queue_max);
  options.queue_time = change.queue_time.value_or(options.queue_time);
  if (auto status = CheckRanges(limits::kConcurrencyOptions, options); !status) return status.error();
  return options;
}

// What is in force unless a change by RPC says otherwise.
const RateOptions& OptionsOf(const RateOptions& configured) { return configured; }
const RateOptions& OptionsOf(const proxy::ClientRateOptions& configured) { return configured.rate; }
const ConcurrencyOptions& OptionsOf(const ConcurrencyOptions& configured) { return configured; }

// The part of a rate that is this process's.
RateOptions PartOf(RateOptions options, uint32_t permille) {
  if (permille == kWhole) return options;
  options.rate *= static_cast<double>(permille) / kWhole;
  options.burst = std::max<uint32_t>(1, static_cast<uint32_t>(uint64_t{options.burst} * permille / kWhole));
  return options;
}

// Gives a limit new options.
void Configure(RateLimit& limit, const RateOptions& options, base::TimePoint now) {
  limit.in_force = options;
  limit.limiter->Configure(PartOf(options, limit.permille), now);
}
void Configure(ClientRateLimit& limit, const RateOptions& options, base::TimePoint now) {
  limit.in_force = options;
  limit.limiter->Configure(PartOf(options, limit.permille), now);
}
void Configure(ConcurrencyLimit& limit, const ConcurrencyOptions& options, base::TimePoint) {
  limit.in_force = options;
  limit.limiter->Configure(options);
}
void Configure(EndpointLimit& limit, const ConcurrencyOptions& options, base::TimePoint) { limit.in_force = options; }

// A limit as configured: goes on with the limiter of `old` (may be null) where that can be.
RateLimit Make(const RateOptions& configured, const RateLimit* old, base::TimePoint now) {
  RateLimit limit{configured, configured, nullptr};
  const bool stays = old != nullptr && old->limiter->capped() == configured.capped;
  limit.limiter = stays ? old->limiter : std::make_shared<limits::RateLimiter>(configured, now);
  if (stays) limit.permille = old->permille;
  return limit;
}
// Where keys mean something else, or another number of them is kept, the limiter is another one.
ClientRateLimit Make(const proxy::ClientRateOptions& configured, const ClientRateLimit* old, base::TimePoint) {
  ClientRateLimit limit{configured, configured.rate, nullptr};
  const bool stays = old != nullptr && old->configured.metadata == configured.metadata &&
                     old->configured.clients_max == configured.clients_max;
  limit.limiter =
      stays ? old->limiter : std::make_shared<limits::KeyedRateLimiter>(configured.rate, configured.clients_max);
  if (stays) limit.permille = old->permille;
  return limit;
}
ConcurrencyLimit Make(const ConcurrencyOptions& configured, const ConcurrencyLimit* old, base::TimePoint) {
  ConcurrencyLimit limit{configured, configured, nullptr};
  limit.limiter = old != nullptr ? old->limiter : std::make_shared<limits::ConcurrencyLimiter>(configured);
  return limit;
}

void Close(RateLimit& limit, base::TimePoint) { limit.limiter->Close(); }
void Close(ClientRateLimit& limit, base::TimePoint now) { limit.limiter->Configure(RateOptions(), now); }
void Close(ConcurrencyLimit& limit, base::TimePoint) { limit.limiter->Close(); }
void Close(EndpointLimit&, base::TimePoint) {}  // with its endpoints

// `next`, of a plan, takes over from `old`, the limit of the same name that is in force.
template <typename Kind>
void TakeOver(Kind& next, Kind& old, base::TimePoint now) {
  const auto options = next.configured == old.configured ? old.in_force : OptionsOf(next.configured);
  if constexpr (requires { next.limiter; }) {
    const bool stays = next.limiter == old.limiter;
    if (!stays) Close(old, now);
    if constexpr (requires { next.permille; }) {
      if (stays) next.permille = old.permille;  // it may have changed since the plan was made
    }
    // A limiter that has the options already is not disturbed.
    if (options == (stays ? old.in_force : next.in_force)) {
      next.in_force = options;
      return;
    }
  }
  Configure(next, options, now);
}

void Describe(const RateOptions& options, admin::LimitView& view) {
  view.rate = options.rate;
  view.burst = options.burst;
  view.capped = options.capped;
  view.queue_max = options.queue_max;
  view.queue_time = options.queue_time;
}
void Describe(const ConcurrencyOptions& options, admin::LimitView& view) {
  view.max = options.max;
  view.queue_max = options.queue_max;
  view.queue_time = options.queue_time;
}

std::string ToString(const RateOptions& options) {
  return Join("rate ", config::FormatDecimal(options.rate), ", burst ", std::to_string(options.burst), ", queue ",
              std::to_string(options.queue_max), ", queue_time ", config::FormatDuration(options.queue_time));
}
std::string ToString(const ConcurrencyOptions& options) {
  return Join("max ", std::to_string(options.max), ", queue ", std::to_string(options.queue_max), ", queue_time ",
              config::FormatDuration(options.queue_time));
}

}  // namespace

template <typename Kind>
const Kind* LimitTable::Find(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : std::get_if<Kind>(&limits_[it->second].limit);
}

const LimitTable::Named* LimitTable::Get(std::string_view name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &limits_[it->second];
}

LimitTable::Named* LimitTable::Find(std::string_view name) {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &limits_[it->second];
}

void LimitTable::Add(std::string name, Limit limit) {
  if (!index_.emplace(name, limits_.size()).second) return;  // a configuration made by hand: the first of that name
  limits_.push_back({std::move(name), std::move(limit)});
}

std::shared_ptr<limits::ConcurrencyLimiter> LimitTable::Process() const {
  const auto* limit = Find<ConcurrencyLimit>(kProcess);
  return limit == nullptr ? nullptr : limit->limiter;
}

std::shared_ptr<limits::RateLimiter> LimitTable::ClusterRate(std::string_view cluster) const {
  const auto* limit = Find<RateLimit>(Name("cluster", cluster, "rate"));
  return limit == nullptr ? nullptr : limit->limiter;
}

std::shared_ptr<limits::ConcurrencyLimiter> LimitTable::ClusterConcurrency(std::string_view cluster) const {
  const auto* limit = Find<ConcurrencyLimit>(Name("cluster", cluster, "concurrency"));
  return limit == nullptr ? nullptr : limit->limiter;
}

ConcurrencyOptions LimitTable::EndpointConcurrency(std::string_view cluster) const {
  const auto* limit = Find<EndpointLimit>(Name("cluster", cluster, "endpoint_concurrency"));
  return limit == nullptr ? ConcurrencyOptions() : limit->in_force;
}

std::shared_ptr<limits::RateLimiter> LimitTable::RouteRate(std::string_view route) const {
  const auto* limit = Find<RateLimit>(Name("route", route, "rate"));
  return limit == nullptr ? nullptr : limit->limiter;
}

std::shared_ptr<limits::KeyedRateLimiter> LimitTable::RouteClientRate(std::string_view route) const {
  const auto* limit = Find<ClientRateLimit>(Name("route", route, "client_rate"));
  return limit == nullptr ? nullptr : limit->limiter;
}

LimitSet::LimitSet(const base::Clock& clock) : clock_(clock) {
  table_.Add(std::string(kProcess), Make(ConcurrencyOptions(), static_cast<const ConcurrencyLimit*>(nullptr), {}));
}

LimitTable LimitSet::MakePlan(const config::Config& config) const {
  std::lock_guard lock(mutex_);
  const base::TimePoint now = clock_.Now();
  LimitTable plan;
  const auto add = [&]<typename Kind>(std::string name, const auto& configured, std::in_place_type_t<Kind>) {
    Kind limit = Make(configured, table_.Find<Kind>(name), now);
    plan.Add(std::move(name), std::move(limit));
  };
  constexpr std::in_place_type_t<RateLimit> kRate;
  constexpr std::in_place_type_t<ClientRateLimit> kClientRate;
  constexpr std::in_place_type_t<ConcurrencyLimit> kConcurrency;
  add(std::string(kProcess), config.concurrency, kConcurrency);
  for (const upstream::ClusterOptions& cluster : config.clusters) {
    add(Name("cluster", cluster.name, "rate"), cluster.rate_limit, kRate);
    add(Name("cluster", cluster.name, "concurrency"), cluster.concurrency, kConcurrency);
    const ConcurrencyOptions& endpoint = cluster.endpoint_concurrency;
    std::string name = Name("cluster", cluster.name, "endpoint_concurrency");
    const auto* old = table_.Find<EndpointLimit>(name);
    // The snapshot built from the plan makes endpoints with these options: those that will be in force.
    const bool stays = old != nullptr && old->configured == endpoint;
    plan.Add(std::move(name), EndpointLimit{endpoint, stays ? old->in_force : endpoint, cluster.name});
  }
  for (const proxy::RouteOptions& route : config.routes) {
    add(Name("route", route.name, "rate"), route.rate_limit, kRate);
    add(Name("route", route.name, "client_rate"), route.client_rate_limit, kClientRate);
  }
  return plan;
}

void LimitSet::Commit(LimitTable plan) {
  std::lock_guard lock(mutex_);
  const base::TimePoint now = clock_.Now();
  for (LimitTable::Named& old : table_.limits_) {
    LimitTable::Named* next = plan.Find(old.name);
    std::visit(
        [&](auto& limit) {
          using Kind = std::decay_t<decltype(limit)>;
          if (next == nullptr) return Close(limit, now);
          TakeOver(*std::get_if<Kind>(&next->limit), limit, now);
        },
        old.limit);
  }
  table_ = std::move(plan);
}

LimitTable LimitSet::Table() const {
  std::lock_guard lock(mutex_);
  return table_;
}

ConcurrencyOptions LimitSet::EndpointConcurrency(std::string_view cluster) const {
  std::lock_guard lock(mutex_);
  return table_.EndpointConcurrency(cluster);
}

void LimitSet::TakeInForce(const LimitTable::Named& limit) {
  std::lock_guard lock(mutex_);
  LimitTable::Named* named = table_.Find(limit.name);
  if (named == nullptr) return;
  std::visit(
      [&](auto& ours) {
        const auto* theirs = std::get_if<std::decay_t<decltype(ours)>>(&limit.limit);
        if (theirs == nullptr || !(OptionsOf(theirs->configured) == OptionsOf(ours.configured))) return;
        if (!(theirs->in_force == ours.in_force)) Configure(ours, theirs->in_force, clock_.Now());
      },
      named->limit);
}

void LimitSet::SetPermille(std::string_view name, uint32_t permille) {
  std::lock_guard lock(mutex_);
  LimitTable::Named* named = table_.Find(name);
  if (named == nullptr) return;
  std::visit(
      [&](auto& limit) {
        if constexpr (requires { limit.permille; }) {
          if (limit.permille == permille) return;
          limit.permille = permille;
          Configure(limit, limit.in_force, clock_.Now());
        }
      },
      named->limit);
}

std::vector<admin::LimitView> LimitSet::List() const {
  const LimitTable table = Table();
  std::vector<admin::LimitView> out;
  for (const LimitTable::Named& named : table.limits_) out.push_back(View(named));
  return out;
}

admin::LimitView LimitSet::View(const LimitTable::Named& named) const {
  admin::LimitView view;
  view.name = named.name;
  std::visit(
      [&](const auto& limit) {
        using Kind = std::decay_t<decltype(limit)>;
        Describe(limit.in_force, view);
        view.overridden = !(limit.in_force == OptionsOf(limit.configured));
        if constexpr (std::is_same_v<Kind, RateLimit>) {
          view.waiting = limit.limiter->waiting();
          view.in_use = limit.limiter->outstanding();
        } else if constexpr (std::is_same_v<Kind, ClientRateLimit>) {
          view.keys = limit.limiter->keys();
        } else if constexpr (std::is_same_v<Kind, ConcurrencyLimit>) {
          view.waiting = limit.limiter->waiting();
          view.in_use = limit.limiter->in_use();
        } else if (hooks_.endpoint_use) {
          const EndpointUse use = hooks_.endpoint_use(limit.cluster);
          view.waiting = use.waiting;
          view.in_use = use.in_use;
        }
      },
      named.limit);
  return view;
}

base::Result<admin::LimitView> LimitSet::Change(const admin::LimitChange& change) {
  const bool sets = change.rate || change.burst || change.max || change.queue_max || change.queue_time;
  if (change.reset == sets) return Bad(change.reset ? "reset goes with nothing else" : "nothing to change");
  std::unique_lock lock(mutex_);
  LimitTable::Named* named = table_.Find(change.name);
  if (named == nullptr) return MakeError(ErrorKind::kNotFound, Join("no limit ", change.name));
  std::string in_force;
  base::Status status = std::visit(
      [&](auto& limit) -> base::Status {
        auto options = limit.in_force;
        if (change.reset) {
          options = OptionsOf(limit.configured);
        } else {
          auto changed = Changed(options, change);
          if (!changed) return changed.error();
          options = *changed;
        }
        Configure(limit, options, clock_.Now());
        in_force = ToString(options);
        return base::Ok();
      },
      named->limit);
  if (!status) return status.error();
  const LimitTable::Named copy = *named;
  lock.unlock();
  SLUICE_LOG_INFO("limit {} {} by RPC: {}", change.name, change.reset ? "reset" : "changed", in_force);
  const auto* endpoints = std::get_if<EndpointLimit>(&copy.limit);
  if (endpoints != nullptr && hooks_.endpoint_concurrency_changed) {
    hooks_.endpoint_concurrency_changed(endpoints->cluster);
  }
  return View(copy);
}

}  // namespace sluice::server
