#include "upstream/cluster_health.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "base/log.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;
using base::TimePoint;

namespace {

// Times to first byte are summed this often only: 122 buckets an endpoint and worker.
constexpr base::Nanos kLatencyPeriod = std::chrono::milliseconds(500);
// A prober that is still at work so long after connect_timeout has been dropped.
constexpr base::Nanos kProbeGrace = std::chrono::seconds(5);
// An endpoint that has been sent so many since the last pass gets calls one after the other.
constexpr uint32_t kBusyCalls = 2;

}  // namespace

ClusterHealth::ClusterHealth(std::string cluster, uint64_t seed, metrics::Registry& registry)
    : cluster_(std::move(cluster)), registry_(registry), judge_(seed), random_(~seed) {
  const metrics::Labels labels = {{"cluster", cluster_}};
  // The values of an enum from `first` on, as labels; where their counters stand is put into `out`.
  const auto add = [&](const char* name, const char* help, const char* by, size_t first, auto value, auto& out) {
    std::vector<std::string_view> values;
    for (size_t i = first; i < out.size(); ++i) values.push_back(ToString(static_cast<decltype(value)>(i)));
    const auto counters = registry.AddCounters(name, help, labels, by, values, metrics::Show::kTouched);
    for (size_t i = first; i < out.size(); ++i) out[i] = &counters[i - first];
  };
  add("sluice_ejections_total", "Endpoints ejected, by what found them sick.", "detector", 1, Detector(), ejections_);
  add("sluice_ejections_suppressed_total", "Endpoints not ejected for all the evidence, by why.", "reason", 1,
      Suppression(), suppressed_);
  doubts_ = registry.AddCounter("sluice_doubts_total", "Times that calls not to be repeated began to pass one over.",
                                labels, metrics::Show::kTouched);
  add("sluice_health_changes_total", "Changes of endpoints' health, by the new state.", "to", 0, HealthState(),
      changes_);
}

void ClusterHealth::SetSeedForTest(uint64_t seed) {
  judge_ = Judge(seed);
  random_ = base::Random(~seed);
}

ClusterHealth::Work ClusterHealth::Pass(const ClusterOptions& options, ListedEndpoints endpoints, Spill& spill,
                                        TimePoint now) {
  Work work;
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return work;
  judge_.Configure(options.ejection, options.slow_start);
  AskAll(options, endpoints, now, &work);
  const bool with_latency = now >= latency_at_;
  if (with_latency) latency_at_ = now + kLatencyPeriod;
  std::vector<Judge::Subject> subjects;
  subjects.reserve(endpoints.size());
  for (const ListedEndpoint& listed : endpoints) {
    // A trial is of few calls, and over soon.
    subjects.push_back(listed.endpoint->Look(with_latency || listed.endpoint->record().on_trial(), now));
    subjects.back().weight = listed.weight;
    if (!listed.draining) continue;
    subjects.back().cap = listed.ramp.ShareAt(now);
    subjects.back().draining = subjects.back().cap <= 0;
  }
  TakeResults(now, &work);
  for (const uint32_t place : judge_.Pass(subjects, now)) BeginProbe(endpoints[place].endpoint, options, now, &work);
  if (options.ejection.enabled) Reconnect(options, endpoints, now, &work);
  for (const ListedEndpoint& listed : endpoints) {
    const EndpointRecord& record = listed.endpoint->record();
    if (record.since() == now) {
      if (record.state() == HealthState::kSuspect) listed.endpoint->asked().health.Suspect(now);
      if (record.state() == HealthState::kEjected && record.silent()) work.silent.push_back(listed.endpoint);
    }
    work.backoff |= record.ejected() || listed.endpoint->health() == EndpointHealth::kBackoff;
    Publish(*listed.endpoint);
  }
  TellReach(endpoints, now);
  Spread(options.spill, endpoints, spill, now);
  Tell();
  work.pace = PaceAfter(subjects);
  return work;
}

ClusterHealth::Pace ClusterHealth::PaceAfter(std::span<const Judge::Subject> subjects) const {
  if (judge_.looks_closer()) return Pace::kCloser;
  const auto rests = [](const Judge::Subject& subject) {
    const EndpointRecord& record = *subject.record;
    if (subject.in_flight > 0 || subject.active != nullptr || record.more.sent > 0) return false;
    return record.state() == HealthState::kUp || record.state() == HealthState::kDraining;
  };
  const auto busy = [](const Judge::Subject& subject) { return subject.record->more.sent >= kBusyCalls; };
  if (std::any_of(subjects.begin(), subjects.end(), busy)) return Pace::kBusy;
  const bool idle = pending_.empty() && reconnect_at_.empty() && std::all_of(subjects.begin(), subjects.end(), rests);
  return idle ? Pace::kIdle : Pace::kUsual;
}

// One that is back counts when it is warm: then the keys that were spilled for it come home to where they belong, and
// not to another one first. One that is new takes nothing away and adds what it takes.
void ClusterHealth::Spread(const SpillOptions& options, ListedEndpoints endpoints, Spill& spill, TimePoint now) {
  Spill::Weights weights{};
  std::array<double, kTiersMax> joining{};  // what is still to come of those that are new
  std::array<bool, kTiersMax> others{};     // there are some that are not new
  for (const ListedEndpoint& listed : endpoints) {
    const Endpoint& endpoint = *listed.endpoint;
    const EndpointRecord& record = listed.endpoint->record();
    weights[listed.tier].all += listed.weight;
    others[listed.tier] |= !record.joining();
    const bool connects = endpoint.health() != EndpointHealth::kBackoff || endpoint.link() != EndpointLink::kBackoff;
    if (!listed.TakesCalls() || !connects) continue;
    if (record.state() == HealthState::kWarming && !record.joining()) continue;
    weights[listed.tier].healthy += listed.weight * record.share();
    if (record.joining()) joining[listed.tier] += listed.weight * (1 - record.share());
  }
  for (size_t tier = 0; tier < kTiersMax; ++tier) {
    // A tier of new ones alone has no others that carry their keys.
    if (others[tier]) weights[tier].all -= joining[tier];
  }
  if (!spill.Update(weights, options, now)) return;
  std::string shares;
  for (size_t tier = 0; tier < kTiersMax; ++tier) {
    if (weights[tier].all <= 0) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%spriority %zu%s %.0f%%", shares.empty() ? "" : ", ", tier / 2,
                  tier % 2 == 0 ? "" : " elsewhere", spill.ShareOf(tier) * 100);
    shares += text;
  }
  SLUICE_LOG_INFO("cluster {}: calls go to {}", cluster_, shares);
}

// What the endpoints have said since the last pass, and what they are to be asked now. One that takes no calls is not
// asked.
void ClusterHealth::AskAll(const ClusterOptions& options, ListedEndpoints endpoints, TimePoint now, Work* work) {
  static const HealthOptions kNotAsked;
  for (uint32_t i = 0; i < endpoints.size(); ++i) {
    Endpoint& endpoint = *endpoints[i].endpoint;
    Endpoint::Asked& asked = endpoint.asked();
    const HealthOptions& wanted = endpoints[i].TakesCalls() ? options.health : kNotAsked;
    if (wanted.mode == HealthMode::kOff && !asked.health.active()) continue;
    const bool out = asked.health.out();
    if (asked.report != nullptr) {
      asked.health.Read(*asked.report, now, random_);
      if (!asked.health.asking()) asked.report.reset();
    }
    const ActiveHealth::Act act = asked.health.Next(wanted, now, random_, work->asks.size() < kAsksPerPass);
    if (act == ActiveHealth::Act::kStop) {
      work->stops.push_back({endpoints[i].endpoint, asked.worker, std::exchange(asked.report, nullptr)});
    } else if (act != ActiveHealth::Act::kNothing) {
      asked.worker = endpoint.ConnectedWorker(i);
      asked.report = std::make_shared<HealthReport>();
      work->asks.push_back({endpoints[i].endpoint, asked.worker, asked.report, act == ActiveHealth::Act::kWatch});
    }
    // A connection to it works again: the back-offs of workers end.
    if (out && !asked.health.out()) work->returned.push_back(endpoints[i].endpoint);
  }
}

void ClusterHealth::BeginProbe(const std::shared_ptr<Endpoint>& endpoint, const ClusterOptions& options, TimePoint now,
                               Work* work) {
  Probe probe{endpoint, std::make_shared<ProbeResult>()};
  pending_.push_back({probe, base::DeadlineAfter(now, options.connect_timeout + kProbeGrace)});
  work->probes.push_back(std::move(probe));
}

// An endpoint that is not ejected (it may be the only one) and that some worker could not connect to: one connection is
// tried for all workers, so that none of them has to wait for the end of its own back-off.
void ClusterHealth::Reconnect(const ClusterOptions& options, ListedEndpoints endpoints, TimePoint now, Work* work) {
  const auto before = std::exchange(reconnect_at_, {});  // so that none stays that is not in back-off any more
  for (const ListedEndpoint& listed : endpoints) {
    const Endpoint* endpoint = listed.endpoint.get();
    if (!listed.TakesCalls() || endpoint->health() != EndpointHealth::kBackoff || listed.endpoint->record().out())
      continue;
    const base::Nanos wait(static_cast<int64_t>(static_cast<double>(EndpointRecord::kRefusedProbe.count()) *
                                                (0.8 + 0.4 * random_.Unit())));
    const auto known = before.find(endpoint);
    TimePoint& at = reconnect_at_[endpoint] = known == before.end() ? now + wait : known->second;
    const bool pending = std::any_of(pending_.begin(), pending_.end(),
                                     [&](const Pending& each) { return each.probe.endpoint.get() == endpoint; });
    if (now < at || pending) continue;
    at = now + wait;
    BeginProbe(listed.endpoint, options, now, work);
  }
}

void ClusterHealth::TakeResults(TimePoint now, Work* work) {
  std::erase_if(pending_, [&](Pending& pending) {
    const ProbeResult& result = *pending.probe.result;
    if (!result.done() && now < pending.until) return false;
    Endpoint& endpoint = *pending.probe.endpoint;
    const std::string error = result.done() ? result.error() : "the probe was given up";
    judge_.Probed(endpoint.record(), endpoint.name(), error, result.done() && result.refused(), now);
    if (!error.empty()) endpoint.record().set_last_error(error, now);  // also of one that is not ejected
    if (error.empty()) work->returned.push_back(std::move(pending.probe.endpoint));
    return true;
  });
}

// The newest of what probes and ejections said and of why a worker could not connect; else what the last failure was.
ConnectError::Seen ClusterHealth::LastError(Endpoint& endpoint) {
  const EndpointRecord& record = endpoint.record();
  ConnectError::Seen connect = endpoint.connect_error().Last();
  if (!connect.text.empty() && (record.last_error().empty() || connect.at > record.last_error_at())) return connect;
  if (!record.last_error().empty()) return {record.last_error(), record.last_error_at()};
  if (record.cause == Cause::kNone) return {};
  return {std::string(ToString(record.cause)), record.cause_at};
}

// An endpoint with few calls, or where all are lost, is not ejected and changes no state: that it was lost, and that it
// is back, is a line all the same.
void ClusterHealth::TellReach(ListedEndpoints endpoints, TimePoint now) {
  const std::set<const Endpoint*> before = std::exchange(unreachable_, {});
  for (const ListedEndpoint& listed : endpoints) {
    const Endpoint* endpoint = listed.endpoint.get();
    const bool known = before.contains(endpoint);
    if (!known && endpoint->health() != EndpointHealth::kBackoff) continue;
    const EndpointLink link = endpoint->link();
    if (known ? link != EndpointLink::kConnected : link == EndpointLink::kBackoff) unreachable_.insert(endpoint);
    if (known == unreachable_.contains(endpoint)) continue;
    const auto note = reach_log_.Allow(now);
    if (!note) continue;
    if (known) {
      SLUICE_LOG_INFO("cluster {} endpoint {}: connected again{}", cluster_, endpoint->name(), *note);
    } else {
      const std::string error = LastError(*listed.endpoint).text;
      SLUICE_LOG_WARN("cluster {} endpoint {}: no connection can be made: {}{}", cluster_, endpoint->name(),
                      error.empty() ? "the first one is still being tried" : error, *note);
    }
  }
}

void ClusterHealth::Publish(Endpoint& endpoint) {
  const EndpointRecord& record = endpoint.record();
  const bool drained = record.state() == HealthState::kDraining;
  // Of one that is out the same word asks for a trial.
  const bool repeatable = record.out() ? record.wants_trial() : record.passed_over();
  endpoint.SetAdmission({record.out(), record.share(), repeatable, drained});
  endpoint.set_shown_state(record.state());
}

// What is new: counted and logged.
void ClusterHealth::Tell() {
  const Judge::Counts& counts = judge_.counts();
  const size_t slot = registry_.shared_slot();
  for (size_t i = 1; i < kDetectors; ++i) ejections_[i]->Add(slot, counts.ejections[i] - told_.ejections[i]);
  for (size_t i = 1; i < kSuppressions; ++i) suppressed_[i]->Add(slot, counts.suppressed[i] - told_.suppressed[i]);
  doubts_->Add(slot, counts.doubts - told_.doubts);
  told_ = counts;
  const ChangeLog& log = judge_.changes();
  if (log.total() == changes_told_) return;
  for (size_t i = 0; i < kHealthStates; ++i) changes_[i]->Add(slot, log.to()[i] - changes_counted_[i]);
  changes_counted_ = log.to();
  const uint64_t news =
      std::min<uint64_t>(log.total() - std::exchange(changes_told_, log.total()), log.changes().size());
  for (auto it = log.changes().end() - static_cast<std::ptrdiff_t>(news); it != log.changes().end(); ++it) {
    SLUICE_LOG_INFO("cluster {} endpoint {}: {} -> {}: {}", cluster_, it->endpoint, ToString(it->from),
                    ToString(it->to), it->why);
  }
}

// Of 10 endpoints 9 are replaced at once: the one that stays must not get the keys of the others while they warm.
// min_available says how much of the weight is enough, here as for ejections.
void ClusterHealth::Join(const ClusterOptions& options, ListedEndpoints before, ListedEndpoints after,
                         std::span<const std::shared_ptr<Endpoint>> added, TimePoint now) {
  if (added.empty() || options.slow_start.window.count() == 0) return;
  const absl::flat_hash_set<std::shared_ptr<Endpoint>> fresh(added.begin(), added.end());
  double served = 0, stays = 0;
  for (const ListedEndpoint& listed : before) served += listed.draining ? 0 : listed.weight;
  for (const ListedEndpoint& listed : after)
    stays += listed.draining || fresh.contains(listed.endpoint) ? 0 : listed.weight;
  if (stays <= 0 || stays < options.ejection.min_available * served) return;
  std::lock_guard lock(mutex_);
  judge_.Configure(options.ejection, options.slow_start);
  for (const std::shared_ptr<Endpoint>& endpoint : added) {
    judge_.Join(endpoint->record(), endpoint->name(), now);
    Publish(*endpoint);
  }
  Tell();
}

base::Status ClusterHealth::Command(ListedEndpoints endpoints, Endpoint& endpoint, Order order, TimePoint now) {
  std::lock_guard lock(mutex_);
  if (order == Order::kEject) {
    const bool others = std::any_of(endpoints.begin(), endpoints.end(), [&](const ListedEndpoint& other) {
      return other.endpoint.get() != &endpoint && !other.draining && !other.endpoint->record().out();
    });
    if (!others)
      return MakeError(ErrorKind::kInvalidArgument,
                       "endpoint " + endpoint.name() + " is the last one in rotation: it is not ejected");
    judge_.Eject(endpoint.record(), endpoint.name(), now);
  } else if (order == Order::kRestore) {
    judge_.Restore(endpoint.record(), endpoint.name(), now);
  } else {
    endpoint.record().ResetBackoff(now);
    endpoint.asked().health.Hurry(now);
  }
  Publish(endpoint);
  Tell();
  return base::Ok();
}

std::vector<std::pair<std::string, EndpointRecord::Saved>> ClusterHealth::Save(ListedEndpoints endpoints,
                                                                               TimePoint now) {
  std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, EndpointRecord::Saved>> out;
  for (const ListedEndpoint& listed : endpoints) {
    if (auto saved = listed.endpoint->record().Save(now)) out.emplace_back(listed.endpoint->name(), std::move(*saved));
  }
  return out;
}

void ClusterHealth::Restore(Endpoint& endpoint, const EndpointRecord::Saved& saved, TimePoint now) {
  std::lock_guard lock(mutex_);
  if (endpoint.record().state() != HealthState::kUp) return;  // it has been judged here
  judge_.Restore(endpoint.record(), endpoint.name(), saved, now);
  Publish(endpoint);
  Tell();
}

HealthView ClusterHealth::Describe(Endpoint& endpoint, TimePoint now) {
  std::lock_guard lock(mutex_);
  const EndpointRecord& record = endpoint.record();
  HealthView view;
  view.state = record.state();
  if (record.since() != TimePoint()) view.in_state = now - record.since();
  view.why = record.why();
  if (record.passed_over() && !record.out())
    view.why += (view.why.empty() ? "" : "; ") + std::string("calls that may not be repeated pass it over");
  if (ConnectError::Seen error = LastError(endpoint); !error.text.empty()) {
    view.last_error = std::move(error.text);
    view.last_error_ago = std::max(base::Nanos(0), base::Nanos(now - error.at));
  }
  TimePoint probe_at = record.probe_at();
  if (const auto known = reconnect_at_.find(&endpoint); known != reconnect_at_.end())
    probe_at = std::min(probe_at, known->second);
  if (probe_at != base::kNever) view.probe_in = std::max(base::Nanos(0), base::Nanos(probe_at - now));
  view.share = record.state() == HealthState::kDraining ? 0 : record.share();
  view.health_service = endpoint.asked().health.Describe();
  return view;
}

std::vector<HealthChangeView> ClusterHealth::Changes(TimePoint now) {
  std::lock_guard lock(mutex_);
  std::vector<HealthChangeView> out;
  for (const HealthChange& change : judge_.changes().changes())
    out.push_back({now - change.at, change.endpoint, change.from, change.to, change.why});
  return out;
}

}  // namespace sluice::upstream
