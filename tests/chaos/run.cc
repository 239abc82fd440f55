#include "chaos/run.h"

#include <algorithm>

#include "base/memory_budget.h"
#include "base/slice.h"
#include "http2/fields/header.h"
#include "http2/session/stream.h"
#include "runtime/frame_pool.h"

namespace sluice::chaos {

using std::chrono::seconds;

Run::Run(uint64_t seed, bool trace) : record_(clock_, trace), dice_(seed), plan_(DrawPlan(dice_)) {
  const bool moved = seed % 4 == 3;
  proxy_ = std::make_unique<Proxy>(
      clock_, plan_.config, dice_.Bits(), moved,
      [this](runtime::Worker& worker, const net::Address& address, base::TimePoint deadline, net::Dialer::OnDone done) {
        return Dial(worker, address, deadline, std::move(done));
      });
}

Run::~Run() = default;

MemoryLimit::MemoryLimit(int64_t bytes) {
  base::Block::TrimSpares();
  runtime::TrimFrames();
  http2::HeaderList::TrimSpares();
  http2::StreamPool::TrimSpares();
  base::MemoryBudget::SetLimit(bytes == 0 ? 0 : base::MemoryBudget::held() + bytes);
}

MemoryLimit::~MemoryLimit() {
  Press(-pressed_);
  base::MemoryBudget::SetLimit(0);
}

void MemoryLimit::Press(int64_t bytes) {
  pressed_ += bytes;
  base::MemoryBudget::Add(bytes);
}

// To the next thing that happens, outside or by a timer of the proxy's; not past `end`.
void Run::Step(base::TimePoint end) {
  if (timeline_.RunOne()) return proxy_->TurnSome();
  proxy_->Turn();
  const base::TimePoint timer = proxy_->NextTimer();
  base::TimePoint next =
      std::min({timeline_.Next(), std::max(timer, clock_.Now() + std::chrono::microseconds(1)), judge_at_, end});
  if (next > clock_.Now()) clock_.Advance(next - clock_.Now());
  if (clock_.Now() >= judge_at_) Judge();
  if (timeline_.Next() > clock_.Now()) proxy_->Turn();
}

void Run::Judge() {
  const base::TimePoint now = clock_.Now();
  judge_at_ = stopped_ ? base::kNever : now + pace_.Next(proxy_->Judge(), now, now);
}

void Run::Advance(base::Nanos time) {
  const base::TimePoint end = clock_.Now() + time;
  proxy_->Turn();
  while (clock_.Now() < end || timeline_.Next() <= end) Step(end);
}

// Until all calls have ended and no peer has anything to say.
bool Run::Settle(base::Nanos most) {
  const base::TimePoint end = clock_.Now() + most;
  while (clock_.Now() < end && !(CallsEnded() && timeline_.Next() == base::kNever && !proxy_->HasCallTasks()))
    Step(end);
  return CallsEnded();
}

Outcome Run::Go() {
  proxy_->Turn();
  PlanClients();
  for (uint32_t i = 0; i < plan_.calls; ++i) PlanCall(i);
  PlanChanges();
  PlanPressure();
  Advance(plan_.span + seconds(2));
  // The script is over: what was held back goes on, and all must come to an end.
  stage_.over = true;
  record_.Say("script", "over");
  for (auto& client : clients_) client->Finish();
  for (auto& backend : backends_) backend->Finish();
  Settle(seconds(300));
  CheckCalls();
  CheckIdle("when all calls have ended");
  if (!stopped_) {
    CheckHealth();
    // Nothing keeps a connection: upstreams go with their endpoints, clients when they are told.
    config::Config empty = proxy_->config();
    for (upstream::ClusterOptions& cluster : empty.clusters) {
      cluster.endpoints.clear();
      cluster.drain_timeout = seconds(3600);
    }
    if (!proxy_->Reload(empty).ok()) record_.Fault("the last reload failed");
    Advance(seconds(10));
    if (proxy_->UpstreamPools() != 0) record_.Fault("upstream pools are left without calls and endpoints");
    if (proxy_->UpstreamConnections() != 0) record_.Fault("upstream connections are left");
    proxy_->Drain();
    // Where memory is short a client is heard in bites, and those may be cut to a few bytes: its answer to the PING
    // takes a while.
    for (int i = 0; i < 60 && (i == 0 || proxy_->open_connections() != 0); ++i) Advance(seconds(10));
    if (proxy_->open_connections() != 0) record_.Fault("client connections are left after a drain");
    if (!proxy_->Stop()) record_.Fault("calls are left after the stop");
  }
  CheckIdle("at the end");
  CheckCounters();
  Outcome outcome{record_.hash(), record_.bytes(), timeline_.done()};
  outcome.all_good = plan_.CallsMustSucceed() && !plan_.bad_clients;
  outcome.paused = proxy_->metrics().memory_read_pauses->Value() > 0;
  outcome.refused_for_memory =
      proxy_->metrics().errors[static_cast<size_t>(base::ErrorKind::kMemoryLimited)]->Value() > 0;
  for (const Call& call : calls_) {
    outcome.calls += call.stream != 0;
    outcome.ok += call.ok();
    outcome.refused += call.whole && !call.ok();
  }
  proxy_.reset();
  outcome.faults = record_.faults();
  return outcome;
}

Outcome RunSeed(uint64_t seed, bool trace) {
  const size_t blocks = base::Block::LiveBytes();
  Outcome outcome;
  {
    Run run(seed, trace);
    outcome = run.Go();
  }
  if (base::Block::LiveBytes() != blocks)
    outcome.faults.push_back("buffers are left: " + std::to_string(base::Block::LiveBytes() - blocks) + " bytes");
  return outcome;
}

}  // namespace sluice::chaos
