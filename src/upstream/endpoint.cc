#include "upstream/endpoint.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace sluice::upstream {

Endpoint::Endpoint(std::string cluster, std::string name, net::Address address,
                   std::shared_ptr<const ClusterOptions> options, std::shared_ptr<ClusterLoad> load, uint32_t workers,
                   metrics::Registry& registry, bool own_series)
    : cluster_(std::move(cluster)),
      name_(std::move(name)),
      address_(std::move(address)),
      options_(std::move(options)),
      load_(std::move(load)),
      concurrency_(std::make_shared<limits::ConcurrencyLimiter>(options_->endpoint_concurrency)),
      own_series_(own_series ? std::make_unique<EndpointSeries>(workers) : nullptr),
      pools_(workers, nullptr),
      links_(workers),
      cells_(workers) {
  constexpr auto kShow = metrics::Show::kTouched;
  metrics::Labels labels = {{"cluster", cluster_}, {"endpoint", name_}};
  metrics_.failures = registry.AddCounter(
      "sluice_endpoint_failures_total",
      "Failures that count against the endpoint: attempts, and connections that could not be made.", labels, kShow);
  metrics_.in_flight = registry.AddGauge("sluice_endpoint_in_flight", "Attempts in flight.", labels, kShow);
  metrics_.connections =
      registry.AddGauge("sluice_upstream_connections", "Connections open to the endpoint.", labels, kShow);
  metrics_.connects = registry.AddCounter("sluice_upstream_connects_total", "Connections opened.", labels, kShow);
  metrics_.connect_failures =
      registry.AddCounter("sluice_upstream_connect_failures_total", "Connections that failed to open.", labels, kShow);
  metrics_.lost = registry.AddCounter("sluice_upstream_connections_lost_total",
                                      "Connections that ended with calls on them, but for those that a bound ended.",
                                      labels, kShow);
  metrics_.timeouts =
      registry.AddCounter("sluice_upstream_timeouts_total",
                          "Connections to the endpoint, or calls on them, that a bound in time ended.", labels, kShow);
}

Endpoint::~Endpoint() {
  for (EndpointPool* pool : pools_) SLUICE_CHECK(pool == nullptr);
  for (const auto& cell : cells_) delete cell.load(std::memory_order_relaxed);
}

uint64_t Endpoint::calls() const {
  uint64_t sum = 0;
  for (const auto& each : cells_) {
    if (const OutcomeCell* cell = each.load(std::memory_order_acquire))
      sum += cell->sent.load(std::memory_order_relaxed) + cell->unended.load(std::memory_order_relaxed);
  }
  return sum;
}

OutcomeCell& Endpoint::MakeCell(uint32_t w) {
  OutcomeCell* cell = cells_[w].load(std::memory_order_relaxed);
  if (cell == nullptr) {
    cell = new OutcomeCell;
    cells_[w].store(cell, std::memory_order_release);  // with cell(): its zeros are there
  }
  return *cell;
}

bool Endpoint::AdmitsBy(uint32_t word, Choosiness choosiness, uint64_t key, bool repeatable) const {
  if ((word & kRemovedBit) != 0) return false;
  if (choosiness == Choosiness::kNone) return true;
  if ((word & kOutBit) != 0) return repeatable && (word & kRepeatableBit) != 0;
  if ((word & kRepeatableBit) != 0 && !repeatable) return false;
  // Another hash than the ring's, or the keys of one arc would be admitted together.
  constexpr uint64_t kSeed = 0x736c6f7773746172;
  return choosiness == Choosiness::kOut || base::Hash64(key, kSeed) >> 56 >= (word & kRefusedMask) >> kRefusedShift;
}

Judge::Subject Endpoint::Look(bool with_latency, base::TimePoint now) {
  Judge::Subject subject{&record_, name_};
  if (asked_.health.active()) subject.active = &asked_.health;
  LatencyWindow::Counts first_bytes{};
  for (const auto& each : cells_) {
    OutcomeCell* cell = each.load(std::memory_order_acquire);
    if (cell == nullptr) continue;
    const uint32_t bad = cell->bad.load(std::memory_order_relaxed);
    const uint32_t ended_later = cell->ended_later.load(std::memory_order_relaxed);
    subject.counts += {static_cast<uint32_t>(cell->sent.load(std::memory_order_relaxed)) + ended_later,
                       cell->answered.load(std::memory_order_relaxed),
                       cell->good.load(std::memory_order_relaxed),
                       bad,
                       cell->soft.load(std::memory_order_relaxed),
                       cell->withdrawn.load(std::memory_order_relaxed),
                       cell->apart.load(std::memory_order_relaxed),
                       static_cast<uint32_t>(cell->unended.load(std::memory_order_relaxed)),
                       ended_later};
    // A row of a worker without calls is old, and another worker may have seen good answers since.
    if (std::exchange(cell->judged_bad, bad) != bad) {
      subject.row = std::max(subject.row, cell->row.load(std::memory_order_relaxed));
    }
    subject.answered_at = std::max(subject.answered_at, cell->answered_at.load(std::memory_order_relaxed));
    const Cause cause = cell->cause.load(std::memory_order_relaxed);
    if (cause != Cause::kNone) subject.cause = cause;
    if (!with_latency) continue;
    for (size_t i = 0; i < first_bytes.size(); ++i)
      first_bytes[i] += cell->first_byte[i].load(std::memory_order_relaxed);
  }
  subject.in_flight = static_cast<uint32_t>(std::max<int64_t>(0, metrics_.in_flight->Value()));
  if (with_latency) record_.TakeLatency(first_bytes, now);
  subject.port = port_.load(std::memory_order_relaxed);
  if (EndpointPort port = EndpointPort::kRestarted; subject.port == port)
    port_.compare_exchange_strong(port, EndpointPort::kSame, std::memory_order_relaxed);
  return subject;
}

void Endpoint::LearnResets(uint32_t resets, base::TimePoint now) {
  uint32_t known = resets_max();
  while (resets / 2 < known && !resets_max_.compare_exchange_weak(known, resets / 2, std::memory_order_relaxed)) {
  }
  resets_at_.store(now, std::memory_order_relaxed);
}

void Endpoint::EaseResets(base::TimePoint now) {
  base::TimePoint at = resets_at_.load(std::memory_order_relaxed);
  if (now - at < kResetsKept || !resets_at_.compare_exchange_strong(at, now, std::memory_order_relaxed)) return;
  uint32_t known = resets_max();
  while (known != UINT32_MAX &&
         !resets_max_.compare_exchange_weak(known, known > UINT32_MAX / 2 ? UINT32_MAX : known * 2,
                                            std::memory_order_relaxed)) {
  }
}

void Endpoint::NoteConnected() {
  EndpointPort port = EndpointPort::kRefused;
  port_.compare_exchange_strong(port, EndpointPort::kRestarted, std::memory_order_relaxed);
}

void Endpoint::SetAdmission(const Admission& admission) {
  constexpr uint32_t kMask = kOutBit | kRepeatableBit | kDrainedBit | kRefusedMask;
  const auto refused = static_cast<uint32_t>(std::lround(255 * (1 - std::clamp(admission.share, 0.0, 1.0))));
  const uint32_t bits = (admission.out ? kOutBit : refused << kRefusedShift) |
                        (admission.repeatable ? kRepeatableBit : 0) | (admission.drained ? kDrainedBit : 0);
  uint32_t word = health_.load(std::memory_order_relaxed);
  while ((word & kMask) != bits &&
         !health_.compare_exchange_weak(word, (word & ~kMask) | bits, std::memory_order_relaxed)) {
  }
}

EndpointHealth Endpoint::health() const {
  const uint32_t word = health_.load(std::memory_order_relaxed);
  if ((word & kRemovedBit) != 0) return EndpointHealth::kRemoved;
  return word >= kOneInBackoff ? EndpointHealth::kBackoff : EndpointHealth::kHealthy;
}

void Endpoint::Report(uint32_t w, Outcome outcome, uint64_t count) {
  switch (outcome) {
    case Outcome::kAnswered:
    case Outcome::kAbandoned:
      return;
    case Outcome::kFailed:
      return metrics_.failures->Add(w, count);
    case Outcome::kConnected:
      return metrics_.connects->Add(w, count);
    case Outcome::kConnectFailed:
      metrics_.failures->Add(w, count);  // as the judge counts it
      return metrics_.connect_failures->Add(w, count);
    case Outcome::kTimedOut:
      return metrics_.timeouts->Add(w, count);
  }
}

void Endpoint::set_link(uint32_t w, EndpointLink link) {
  const EndpointLink former = links_[w].load(std::memory_order_relaxed);
  links_[w].store(link, std::memory_order_relaxed);
  if (former == link) return;
  if (link == EndpointLink::kBackoff) health_.fetch_add(kOneInBackoff, std::memory_order_relaxed);
  if (former == EndpointLink::kBackoff) health_.fetch_sub(kOneInBackoff, std::memory_order_relaxed);
}

EndpointLink Endpoint::link() const {
  bool seen[4] = {};
  for (const auto& link : links_) seen[static_cast<size_t>(link.load(std::memory_order_relaxed))] = true;
  for (const EndpointLink best : {EndpointLink::kConnected, EndpointLink::kConnecting, EndpointLink::kBackoff}) {
    if (seen[static_cast<size_t>(best)]) return best;
  }
  return EndpointLink::kIdle;
}

uint32_t Endpoint::ConnectedWorker(uint32_t from) const {
  const auto workers = static_cast<uint32_t>(links_.size());
  for (uint32_t i = 0; i < workers; ++i) {
    const uint32_t w = (from + i) % workers;
    if (links_[w].load(std::memory_order_relaxed) == EndpointLink::kConnected) return w;
  }
  return from % workers;
}

std::string_view ToString(EndpointState state) {
  switch (state) {
    case EndpointState::kActive:
      return "active";
    case EndpointState::kDraining:
      return "draining";
    case EndpointState::kRemoved:
      return "removed";
  }
  return "active";
}

std::string_view ToString(EndpointLink link) {
  switch (link) {
    case EndpointLink::kIdle:
      return "idle";
    case EndpointLink::kConnecting:
      return "connecting";
    case EndpointLink::kConnected:
      return "connected";
    case EndpointLink::kBackoff:
      return "backoff";
  }
  return "idle";
}

}  // namespace sluice::upstream
