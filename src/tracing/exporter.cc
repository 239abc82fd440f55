#include "tracing/exporter.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::tracing {
namespace {

base::TimePoint Now() { return base::Clock::Steady().Now(); }

// From the steady clock to the time since 1970.
int64_t WallOffset(base::TimePoint now) {
  const base::Nanos wall = std::chrono::system_clock::now().time_since_epoch();
  return (wall - now.time_since_epoch()).count();
}

}  // namespace

Exporter::Exporter(const proxy::TracingOptions& options, std::string version, std::shared_ptr<proxy::SpanRings> rings,
                   std::shared_ptr<ExportTotals> totals, std::shared_ptr<metrics::Exemplars> exemplars, uint64_t seed)
    : options_(options),
      rings_(std::move(rings)),
      totals_(std::move(totals)),
      exemplars_(std::move(exemplars)),
      writer_(options.service_name, std::move(version), seed),
      // The rings outlive an export that ends after this: its bell is theirs.
      client_(std::make_unique<OtlpClient>(options.endpoint, [rings = rings_] { rings->bell().Ring(); })),
      thread_([this] { Run(); }) {}

Exporter::~Exporter() { thread_.join(); }

void Exporter::Wait() const {
  while (!ended()) base::FutexWaitFor(ended_, 0, 100'000'000);
}

void Exporter::Run() {
  ::pthread_setname_np(::pthread_self(), "traces");
  last_seen_ = Now();
  base::TimePoint flush_ends = base::kNever;
  for (;;) {
    rings_->bell().Hear();
    // Asked before the rings are looked at: what was written before they were closed is found.
    const bool flushing = rings_->closed();
    const base::TimePoint now = Now();
    if (flushing && flush_ends == base::kNever) flush_ends = now + kFlushMax;
    TakeResult(now);
    const bool more = Fill(now);
    SendIfDue(now, flushing);
    CountDrops();
    if (flushing && Idle() && !more) break;
    if (flushing && now >= flush_ends) {
      LoseAll();
      break;
    }
    Sleep(now, more);
  }
  client_.reset();
  ended_.store(1, std::memory_order_release);
  base::FutexWake(ended_, INT32_MAX);
}

// Calls that are taken out of the rings, as long as the batch has room. True: there are more.
bool Exporter::Fill(base::TimePoint now) {
  const int64_t offset = WallOffset(now);
  bool more = false;
  for (const auto& ring : rings_->all()) {
    bool taken = true;
    while (writer_.calls() < options_.batch_max && writer_.bytes() < kBatchBytesMax) {
      taken = ring->Take([&](std::span<const uint8_t> record) {
        view_.Read(record);
        writer_.Add(view_, offset);
        NoteExemplar(offset);
      });
      if (!taken) break;
      if (writer_.calls() == 1) batch_began_ = now;
      last_seen_ = now;
    }
    ring->Free();
    more |= taken && !ring->Empty();
    // While a batch is full and another one on its way, no worker need wake the thread.
    ring->WakeAfter(more ? uint64_t{1} << 62 : ring->capacity() / 2);
  }
  return more;
}

// Of what the route's histogram has counted: a fetch of the cache is not in it.
void Exporter::NoteExemplar(int64_t wall_offset) {
  const proxy::SpanWords& words = view_.words;
  const std::string_view route = view_.text(proxy::SpanText::kRoute);
  if (words.fetch || route.empty()) return;
  batch_exemplars_.push_back({std::string(route),
                              {words.trace.high, words.trace.low, words.span, static_cast<uint64_t>(words.durations[2]),
                               words.ended + wall_offset}});
}

void Exporter::SendIfDue(base::TimePoint now, bool flushing) {
  if (client_->sending()) return;
  if (on_way_ == nullptr) {
    const bool full = writer_.calls() >= options_.batch_max || writer_.bytes() >= kBatchBytesMax;
    if (writer_.calls() == 0 || !(full || flushing || now - batch_began_ >= kBatchDelay)) return;
    on_way_calls_ = writer_.calls();
    on_way_ = std::make_shared<const ReverseBuffer>(writer_.Take());
    on_way_exemplars_ = std::exchange(batch_exemplars_, {});
    tries_ = 0;
  } else if (now < retry_at_ && !flushing) {
    return;
  }
  ++tries_;
  client_->Send(on_way_, options_.export_timeout);
}

void Exporter::TakeResult(base::TimePoint now) {
  const std::optional<OtlpClient::Result> result = client_->TakeResult();
  if (!result) return;
  if (result->ok) {
    for (const RouteExemplar& one : on_way_exemplars_) exemplars_->Put(one.route, one.exemplar);
    totals_->exported.fetch_add(on_way_calls_, std::memory_order_relaxed);
    totals_->rejected.fetch_add(result->rejected, std::memory_order_relaxed);
    if (result->rejected > 0)
      SLUICE_LOG_WARN("tracing: {} refused {} spans: {}", options_.endpoint, result->rejected, result->detail);
    if (lost_since_ > 0)
      SLUICE_LOG_WARN("tracing: {} takes spans again; {} calls were lost", options_.endpoint, lost_since_);
    lost_since_ = 0;
    on_way_ = nullptr;
    return;
  }
  if (result->retry && tries_ < kTriesMax) {
    retry_at_ = now + kBackoff * (1 << (tries_ - 1));
    // At the end there is no time for it: the flush's bound is about as long as one wait.
    if (!rings_->closed()) return;
  }
  on_way_ = nullptr;
  Lose(on_way_calls_, result->detail);
}

void Exporter::Lose(uint64_t calls, const std::string& why) {
  totals_->lost.fetch_add(calls, std::memory_order_relaxed);
  if (lost_since_ == 0 && calls > 0)
    SLUICE_LOG_WARN("tracing: {} does not take spans; traced calls are lost: {}", options_.endpoint, why);
  lost_since_ += calls;
}

// The time to flush is over.
void Exporter::LoseAll() {
  if (client_->sending()) {
    client_->Cancel();
    const base::TimePoint until = Now() + kGrace;
    // The collector may have taken them in this moment.
    for (TakeResult(Now()); on_way_ != nullptr && Now() < until; TakeResult(Now())) {
      rings_->bell().Hear();
      pollfd bell{rings_->bell().fd(), POLLIN, 0};
      ::poll(&bell, 1, 20);
    }
  }
  uint64_t left = writer_.calls() + (on_way_ != nullptr ? on_way_calls_ : 0);
  for (const auto& ring : rings_->all()) {
    while (ring->Take([](std::span<const uint8_t>) {})) ++left;
    ring->Free();
  }
  Lose(left, "the time to send the last ones was over");
}

void Exporter::CountDrops() {
  const uint64_t dropped = rings_->dropped();
  if (dropped == dropped_seen_) return;
  totals_->dropped.fetch_add(dropped - dropped_seen_, std::memory_order_relaxed);
  if (const auto suffix = drops_log_.Allow(Now()))
    SLUICE_LOG_WARN("tracing: {} traced calls found the buffer full and were dropped{}", dropped - dropped_seen_,
                    *suffix);
  dropped_seen_ = dropped;
}

// Until the bell rings, or there is something to do.
void Exporter::Sleep(base::TimePoint now, bool more) {
  pollfd bell{rings_->bell().fd(), POLLIN, 0};
  std::chrono::milliseconds wait = kBatchDelay;
  // A batch is full, and none is on its way: it goes with the next round.
  if (more && on_way_ == nullptr) wait = std::chrono::milliseconds(0);
  if (rings_->closed()) wait = std::min(wait, std::chrono::milliseconds(50));
  const bool doze = !more && Idle() && now - last_seen_ >= kDozeAfter && MayDoze();
  ::poll(&bell, 1, doze ? -1 : static_cast<int>(wait.count()));
}

// From here on the first call rings. A call before that is seen here (concurrent/record_ring.h).
bool Exporter::MayDoze() {
  if (rings_->bell().fd() < 0) return false;
  for (const auto& ring : rings_->all()) ring->WakeAfter(1);
  concurrent::RecordRingSync::HeavyBarrier();
  return std::all_of(rings_->all().begin(), rings_->all().end(), [](const auto& ring) { return ring->Empty(); });
}

}  // namespace sluice::tracing
