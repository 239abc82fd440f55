// The steps of a call up to its attempt, but for the cache: gates, limits, the key, the endpoint and its permit.

#include <algorithm>

#include "base/hash.h"
#include "proxy/call/call.h"
#include "proxy/call/hash_key.h"
#include "proxy/call/limit_refusal.h"
#include "proxy/message_field.h"
#include "proxy/metadata_key.h"

namespace sluice::proxy {

using base::ErrorKind;
using VerdictKind = limits::Verdict::Kind;

uint64_t Call::ClientKey() const {
  const ClientRateOptions& by = route_->options.client_rate_limit;
  if (by.metadata.empty()) return base::Hash64(client_->limit_key, config_->hash_seed);
  std::string joined;
  const auto key = MetadataKey(request, by.metadata, by.repeated, joined);
  return key ? base::Hash64(*key, config_->hash_seed) : 0;
}

const Gate* Call::WaitingGate() const {
  return history_ != nullptr && history_->gates != nullptr ? history_->gates->waiting() : nullptr;
}

bool Call::AskGates(GateStage stage) {
  // Each call that takes part in a fetch has passed the gates before the cache: the fetch has no client to be asked
  // about.
  if (over() || (stage == GateStage::kBeforeCache && sink.fetch() != nullptr)) return false;
  std::unique_ptr<GateWalk>& gates = history().gates;
  if (gates == nullptr) gates.reset(new GateWalk(sink.fetch() != nullptr));
  const Gate* const waited_for = gates->waiting();
  const bool waited = waited_for != nullptr;
  const base::TimePoint now = context.worker().now();
  GateVerdict verdict = gates->Advance(
      stage, route_->gates,
      {request, *client_, now, deadline, context.index(), GateFields(request, &gates->credential_dropped)});
  if (gates->waiting() != waited_for) TraceGate(waited_for);
  switch (verdict.kind) {
    case GateVerdict::Kind::kRefused:
      Fail(std::move(*verdict.error));
      return false;
    case GateVerdict::Kind::kWait:
      ArmTimer(verdict.check_at);
      state_ = stage == GateStage::kBeforeCache ? State::kAtGate : State::kAdmitting;
      return true;
    case GateVerdict::Kind::kGo:
      if (stage == GateStage::kBeforeCache && !std::exchange(gates->cache_planned, true)) TakeCachePlan();
      if (!waited || stage != GateStage::kToUpstream) return false;
      // The list and the routes may have changed.
      Reroute();
      return !over() && !MetGates() && AskGates(stage);
  }
  return false;
}

// It has been asked by the gates of its present route, at least by those before the cache.
bool Call::MetGates() const {
  if (route_->gates == nullptr || sink.fetch() != nullptr) return true;
  return history_ != nullptr && history_->gates != nullptr && history_->gates->Knows(route_->gates);
}

namespace {

// Of a call, or of a fetch, which calls with more time may have joined since its timer was armed.
base::TimePoint DeadlineOf(const Exchange& call) {
  const ResponseCollector* fetch = call.sink.fetch();
  return fetch == nullptr ? call.deadline : std::max(call.deadline, fetch->deadline());
}

}  // namespace

bool Call::WaitsForAdmission() {
  if (over() || (admission_ == nullptr && !Admission::Needed(*config_, *route_, *cluster_))) return false;
  return AskAdmission();
}

bool Call::AskAdmission() {
  if (admission_ == nullptr) {
    state_ = State::kAdmitting;
    admission_.reset(
        new Admission(config_, context.LimitsOf(PlaceOfCluster(), *cluster_), *route_, client_->flow, context.index()));
  }
  const auto client_key = [this] { return ClientKey(); };
  const auto service_time = [this] { return RecentServiceTime(context, *admission_, request); };
  const limits::Verdict verdict =
      admission_->Advance(context.worker().now(), DeadlineOf(*this), {client_key, service_time});
  if (verdict.kind == VerdictKind::kRefused) Refuse(verdict);
  admission_->NoteRequest(request_ended);
  if (sink.fetch() != nullptr && admission_->waits_for_client()) sink.fetch()->LeaveToClient();
  ArmTimer(verdict.check_at);
  if (verdict.kind == VerdictKind::kGo && !admission_->waits().empty()) {
    // The list and the routes may have changed while it waited.
    Reroute();
  }
  return verdict.kind == VerdictKind::kWait;
}

void Call::Refuse(const limits::Verdict& verdict) {
  Fail(RefusalByLimit(*admission_, verdict, DeadlineOf(*this) - context.worker().now()));
}

// Of the ring of the cluster that the call goes to now: a failover cluster, or a reload, may have brought another kind.
bool Call::KeyFitsRing() const { return key_ring_ == cluster_->options->ring; }

void Call::TakeKey() {
  key_ring_ = cluster_->options->ring;
  ring_key = HashKey(key_ring_);
  if (--context.key_sample_in == 0) [[unlikely]]
    SampleKey();
}

uint64_t Call::HashKey(upstream::Ring ring) const {
  const HashBy& by = route_->options.hash_by;
  if (by.kind != HashBy::Kind::kField) {
    if (const auto key = KeyOfHeaders(by, ring, request, *client_, config_->hash_seed)) return *key;
  } else if (const http2::Field* path = request.Find(http2::Token::kPath)) {
    if (const MethodField* field = FindMethodField(by, path->value())) {
      const FieldValue value = ReadField(body.parts(), field->numbers, by.field_bytes_max);
      if (value.HasKey())
        return ring == upstream::Ring::kXds ? XxHashField(value) : HashField(value, config_->hash_seed);
    }
  }
  return context.worker().random().Next();
}

// A trial is made while this much of the retry budget is left: the hedge beside it takes none below a half.
constexpr double kTrialBudget = 0.6;

// How choosy a pick is. Each level gives up one wish of the one before.
enum Level : int {
  kIdeal,     // a free permit, below the bounded load, not tried by this call
  kOverLoad,  // a free permit, not tried
  kFull,      // not tried: the call waits in its queue; also above the share that one takes as it warms
  kAwaited,   // not tried: the call waits for its connection, which was lost or takes long
  kTriedToo,  // all that are left have been tried: one that refused may take the call on another connection
  kSick,      // ejected: better than no endpoint
  kLevels
};

// Among all endpoints, or those of `tier`.
uint32_t Call::PickAtLevel(int level, const upstream::Tier* tier) {
  using Choosiness = upstream::Endpoint::Choosiness;
  const uint32_t w = context.index();
  const Choosiness choosiness = level < kFull   ? Choosiness::kShare
                                : level < kSick ? Choosiness::kOut
                                                : Choosiness::kNone;
  // Only the ring keeps a key where it is, and it draws nothing.
  const uint64_t key =
      cluster_->options->policy == upstream::Policy::kRingHash ? ring_key : context.worker().random().Next();
  const upstream::FailingKeys* failing = cluster_->load->any_failing_keys(w);
  auto ok = [&](uint32_t index) {
    const upstream::ListedEndpoint& entry = cluster_->endpoints[index];
    if (!entry.TakesCalls() || !MayTake(*entry.endpoint, choosiness, key)) return false;
    if (failing != nullptr && level < kAwaited &&
        failing->PassesOver(ring_key, entry.endpoint.get(), context.worker().now()))
      return false;
    if (level < kTriedToo && history_ != nullptr && history_->Tried(*entry.endpoint)) return false;
    if (level < kFull && admission_ != nullptr && !entry.endpoint->concurrency()->HasRoom()) return false;
    if (level < kOverLoad && !cluster_->BelowBoundedLoad(index, w)) return false;
    upstream::EndpointPool* pool = entry.endpoint->pool(w);
    return pool == nullptr || (level < kAwaited ? pool->TakesCalls() : pool->Usable());
  };
  auto load = [&](uint32_t index) {
    const upstream::EndpointPool* pool = cluster_->endpoints[index].endpoint->pool(w);
    return pool == nullptr ? 0u : pool->in_flight();
  };
  const bool again = history_ != nullptr && !history_->tried.empty();
  if (tier == nullptr) [[likely]]
    return cluster_->balancer->Pick({ring_key, key, w, ok, load, again});
  auto ok_in_tier = [&](uint32_t i) { return ok(tier->places[i]); };
  auto load_in_tier = [&](uint32_t i) { return load(tier->places[i]); };
  const uint32_t i = tier->balancer->Pick({ring_key, key, w, ok_in_tier, load_in_tier, again});
  return i == upstream::LoadBalancer::kNone ? i : tier->places[i];
}

// The tier that the call is for; null: there is only one.
const upstream::Tier* Call::TierOfCall() const {
  if (cluster_->tiers.empty()) [[likely]]
    return nullptr;
  const bool keyed = cluster_->options->policy == upstream::Policy::kRingHash;
  const uint64_t key = keyed ? ring_key : context.worker().random().Next();
  return &cluster_->tiers[cluster_->spill->TierOf(key, cluster_->tiers)];
}

// Besides those tried: an endpoint that takes the call at once, with its permit; kNone. One of the call's own tier:
// that the first attempt takes long is no reason to go farther.
uint32_t Call::PickBeside(Permit& permit) {
  const upstream::Tier* tier = TierOfCall();
  for (int level = kIdeal; level < kFull; ++level) {
    const uint32_t index = PickAtLevel(level, tier);
    if (index == upstream::LoadBalancer::kNone) continue;
    if (admission_ == nullptr || Admission::TryEndpoint(*cluster_->endpoints[index].endpoint, permit)) return index;
  }
  return upstream::LoadBalancer::kNone;
}

// Whether the endpoint's health lets it take the call; `key`: what its share goes by.
bool Call::MayTake(const upstream::Endpoint& endpoint, upstream::Endpoint::Choosiness choosiness, uint64_t key) {
  if (endpoint.Admits(choosiness, key)) [[likely]]
    return true;
  if (!endpoint.AdmitsRepeatable(choosiness, key) || !MayRepeat(route_->options.retry, request)) return false;
  if (!endpoint.out()) return true;
  // A trial: its failure must not be the call's.
  if (attempts_ > 0 || (history_ != nullptr && history_->trial) || !MayFollow(AttemptEnd::kInDoubt)) return false;
  using Account = upstream::RetryBudget::Account;
  const upstream::RetryBudgetOptions& bounds = cluster_->options->retry_budget;
  return cluster_->load->retry_budget().Left(bounds, Account::kRepeated, context.worker().now()) >= kTrialBudget;
}

// The judge asks for one call to an endpoint that is out, and this one was picked for it. False: another one was
// faster.
bool Call::BeginTrial(upstream::Endpoint& endpoint) {
  if (!endpoint.TakeTrial()) return false;
  history().trial = true;
  return true;
}

// False: no endpoint takes the call at this level.
bool Call::PickOne(int level, const upstream::Tier* tier) {
  uint32_t index = PickAtLevel(level, tier);
  // One that is out was picked for a trial; another call may have been faster.
  while (level < kSick && index != upstream::LoadBalancer::kNone && cluster_->endpoints[index].endpoint->out() &&
         !BeginTrial(*cluster_->endpoints[index].endpoint))
    [[unlikely]] index = PickAtLevel(level, tier);
  if (index == upstream::LoadBalancer::kNone) return false;
  picked_ = index;
  Permit permit;
  upstream::Endpoint& endpoint = *cluster_->endpoints[index].endpoint;
  if (admission_ == nullptr || Admission::TryEndpoint(endpoint, permit)) {
    attempt_.SetEndpoint(endpoint, std::move(permit));
    return true;
  }
  return level >= kFull;  // WaitsForEndpoint; on a lower level another call was faster
}

// The call's own tier, as long as it has an endpoint that could take the call without a wait for a connection that was
// lost or takes long; where the call may have been processed and failed, an untried one of another tier comes before a
// second try at the same. Then the tiers behind it, then those before it, each from the nearest on.
bool Call::PickByTier() {
  const std::vector<upstream::Tier>& tiers = cluster_->tiers;
  const auto own = static_cast<size_t>(TierOfCall() - tiers.data());
  const auto pick = [&](size_t tier, int from, int to) {
    for (int level = from; level < to; ++level) {
      if (PickOne(level, &tiers[tier])) return true;
    }
    return false;
  };
  const auto pick_elsewhere = [&](int from, int to) {
    for (size_t tier = own + 1; tier < tiers.size(); ++tier) {
      if (pick(tier, from, to)) return true;
    }
    for (size_t tier = own; tier-- > 0;) {
      if (pick(tier, from, to)) return true;
    }
    return false;
  };
  if (pick(own, kIdeal, kAwaited)) return true;
  const bool repeats = history_ != nullptr && history_->repeats > 0;
  const bool awaits = PickAtLevel(kAwaited, &tiers[own]) != upstream::LoadBalancer::kNone;
  if ((repeats || awaits) && pick_elsewhere(kIdeal, kAwaited)) return true;
  if (pick(own, kAwaited, kTriedToo) || (repeats && pick_elsewhere(kAwaited, kTriedToo))) return true;
  return pick(own, kTriedToo, kSick) || pick_elsewhere(kIdeal, kSick) || PickOne(kSick, nullptr);
}

bool Call::PickAny() {
  if (!cluster_->tiers.empty()) [[unlikely]]
    return PickByTier();
  for (int level = kIdeal; level < kLevels; ++level) {
    if (PickOne(level, nullptr)) return true;
  }
  return false;
}

void Call::Pick() {
  if (state_ != State::kTrying || !KeyFitsRing()) {
    TakeKey();
    state_ = State::kTrying;
  }
  if (PickAny()) [[likely]]
    return;
  // All of a list may have been replaced since the call has read it, though that was in this turn: where the machine
  // has more to do than it can, a worker stands still between two instructions for longer than a change of the list
  // takes.
  if (const Snapshot* before = snapshot_.get(); context.Refresh(), context.snapshot.get() != before) {
    Reroute();
    if (over()) return;
    if (!KeyFitsRing()) TakeKey();
    if (MetGates() && PickAny()) return;
  }
  // Why the last attempt failed says more than that nothing is left.
  if (history_ != nullptr && history_->last_failure != nullptr) return Fail(*history_->last_failure);
  Fail(ErrorKind::kNoEndpoint,
       "no endpoint of cluster " + cluster_->name() + " can take the call: " +
           (cluster_->endpoints.empty() ? "the list is empty" : "all are in back-off or draining"));
}

bool Call::WaitsForEndpoint() {
  while (!over() && attempt_.state() == Attempt::State::kPicking) {
    if (picked_ == upstream::LoadBalancer::kNone) {
      const bool paused = admission_ != nullptr && admission_->paused();
      if (paused && WaitsForAdmission()) return true;
      if (paused && !over() && !MetGates()) {
        event_.Set();  // the route may be another one now: Run asks its gates before the next pick
        return true;
      }
      if (!over()) Pick();
      continue;
    }
    upstream::Endpoint& endpoint = *cluster_->endpoints[picked_].endpoint;
    Permit permit;
    const auto client_key = [] { return uint64_t{0}; };  // it has passed there
    const auto service_time = [this] { return RecentServiceTime(context, *admission_, request); };
    const limits::Verdict verdict = admission_->AdvanceEndpoint(endpoint, *cluster_, context.worker().now(),
                                                                DeadlineOf(*this), {client_key, service_time}, permit);
    ArmTimer(verdict.check_at);
    if (verdict.kind == VerdictKind::kWait) return true;
    if (verdict.kind == VerdictKind::kRefused) {
      Refuse(verdict);
    } else if (endpoint.removed()) {
      // It left the list while the call waited.
      permit.reset();
      picked_ = upstream::LoadBalancer::kNone;
      Reroute();
      if (over() || MetGates()) continue;
      event_.Set();  // Run asks the gates of the new route before the next pick
      return true;
    } else {
      attempt_.SetEndpoint(endpoint, std::move(permit));
    }
  }
  return false;
}

}  // namespace sluice::proxy
