#include "proxy/call_mover.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/call.h"
#include "proxy/pending_call.h"
#include "proxy/worker_context.h"

namespace sluice::proxy {

using http2::ErrorCode;

struct CallMover::HeldCall final : PendingCall {
  AwayClients* away = nullptr;  // while not reset
  long calls_max = 0;
};

void CallMover::Connect(std::span<WorkerContext* const> contexts) {
  if (contexts.size() < 2) return;
  for (WorkerContext* context : contexts) {
    context->mover.reset(new CallMover(*context, contexts.size()));
    context->mover->sampled_ = context->worker().now();
  }
  for (WorkerContext* context : contexts) {
    for (size_t i = 0; i < contexts.size(); ++i) {
      SLUICE_CHECK(contexts[i]->index() == i);
      context->mover->targets_[i].mover = contexts[i]->mover.get();
    }
  }
}

CallMover::CallMover(WorkerContext& context, size_t workers)
    : context_(context),
      targets_(workers),
      policy_(std::min(workers - 1, MovePolicy::kTargetsMax)),
      plan_(std::min(workers - 1, MovePolicy::kTargetsMax)),
      sample_(plan_.size()) {}

CallMover::~CallMover() {
  for (HeldCall* call : pending_) call->stream->Release();
}

runtime::Worker& CallMover::worker() { return context_.worker(); }

CallMover::Target& CallMover::TargetAfter(size_t step) { return targets_[(context_.index() + step) % targets_.size()]; }

CallLane& CallMover::LaneTo(Target& target) {
  if (target.lane == nullptr) target.lane = std::make_unique<CallLane>(*this, *target.mover);
  return *target.lane;
}

http2::MirrorReceiver& CallMover::FieldsFrom(Target& target) {
  if (target.fields == nullptr) target.fields = std::make_unique<http2::MirrorReceiver>(context_.connection.interns);
  return *target.fields;
}

http2::StreamEvents* CallMover::Hold(http2::Stream& stream, const ClientPtr& client, AwayClients& away, long calls_max,
                                     http2::HeaderList fields, bool end_stream) {
  if (free_.empty()) {
    calls_.push_back(std::make_unique<HeldCall>());
    free_.push_back(calls_.back().get());
    free_.reserve(calls_.size());
  }
  HeldCall& call = *free_.back();
  free_.pop_back();
  call.stream = &stream;
  call.client = client;
  call.away = &away;
  call.calls_max = calls_max;
  call.fields = std::move(fields);
  call.ended = end_stream;
  pending_.push_back(&call);
  worker().AtIoEnd(*this);
  return &call;
}

void CallMover::Free(HeldCall& call) {
  call.client.reset();
  call.fields.Clear();
  call.parts.clear();
  call.trailers.reset();
  call.reset.reset();
  free_.push_back(&call);
}

void CallMover::OnIoEnd() {
  // What a call does when it starts may bring no new request: those come from Feed only.
  absl::InlinedVector<HeldCall*, 16> calls;
  calls.swap(pending_);
  const auto count = static_cast<uint32_t>(calls.size());
  size_t next = 0;
  auto give = [&](Target& target) {
    HeldCall& call = *calls[next++];
    call.reset ? StartHere(call) : StartAway(call, target);
  };
  if (mode_ == Mode::kAlways) {
    while (next < count) {
      give(TargetAfter(next_forced_));
      next_forced_ = next_forced_ % (targets_.size() - 1) + 1;
    }
  } else if (mode_ == Mode::kAuto && policy_.active()) {
    policy_.Plan(count, plan_);
    for (size_t t = 0; t < plan_.size(); ++t) {
      for (uint32_t i = 0; i < plan_[t]; ++i) give(TargetAfter(t + 1));
    }
  }
  Flush();  // before the others run here
  while (next < count) StartHere(*calls[next++]);
  if (pending_.empty()) {  // the larger memory is kept
    calls.clear();
    calls.swap(pending_);
  }
}

void CallMover::StartHere(HeldCall& call) {
  const bool whole = call.ended && !call.parts.empty() && !call.reset;
  if (!whole || !context_.early_hits.Answer(*call.stream, call.fields, call.parts, worker().now())) {
    call.Start(context_, worker().now());
  }
  Free(call);
}

void CallMover::StartAway(HeldCall& call, Target& target) {
  CallLane& lane = LaneTo(target);
  AwayClient& client = call.away->On(lane, call.client, call.calls_max);
  MovedCall& moved = lane.NewCall();
  moved.home().Begin(lane, *call.stream, client);
  call.stream->SetEvents(moved.home());
  lane.Start(moved, client, call.fields, call.ended && call.parts.empty(), worker().now());
  for (size_t i = 0; i < call.parts.size(); ++i) {
    lane.Data(Half::kAway, moved, call.parts[i], call.ended && i + 1 == call.parts.size());
  }
  if (call.trailers) lane.Headers(Half::kAway, moved, *call.trailers, true);
  Count(moved_, 1);
  Free(call);
}

void CallMover::Flush() {
  for (Target& target : targets_) {
    if (target.lane != nullptr) target.lane->Flush();
  }
}

void CallMover::Stop() {
  mode_ = Mode::kNever;
  if (!pending_.empty()) OnIoEnd();
}

// The first new call of a turn.
void CallMover::BeginTurn() {
  last_call_ = worker().now();
  if (last_call_ >= next_sample_) TakeSample();
  ++turns_seen_;
}

void CallMover::TakeSample() {
  const base::TimePoint now = worker().now();
  const runtime::Worker::Stats stats = worker().stats();
  const double wall = static_cast<double>(std::max<int64_t>((now - sampled_).count(), 1));
  const base::Nanos own = worker().CpuTime();
  for (size_t t = 0; t < sample_.size(); ++t) {
    Target& target = TargetAfter(t + 1);
    const base::Nanos cpu = target.mover->worker().CpuTime();
    sample_[t] = static_cast<double>((cpu - target.cpu).count()) / wall;
    target.cpu = cpu;
  }
  const uint64_t moved = moved_.load(std::memory_order_relaxed);
  MovePolicy::Sample sample;
  sample.busy = 1 - static_cast<double>(stats.idle_nanos - sampled_idle_) / wall;
  sample.own_cpu = static_cast<double>((own - sampled_cpu_).count()) / wall;
  sample.cpu = sample_;
  sample.moved = static_cast<double>(moved - sampled_moved_) / static_cast<double>(std::max<uint64_t>(calls_seen_, 1));
  sample.burst = static_cast<double>(calls_seen_) / static_cast<double>(std::max<uint64_t>(turns_seen_, 1));
  policy_.Update(sample);
  sampled_ = now;
  sampled_idle_ = stats.idle_nanos;
  sampled_cpu_ = own;
  calls_seen_ = turns_seen_ = 0;
  sampled_moved_ = moved;
  next_sample_ = now + MovePolicy::kPeriod;
}

// Away's side of a start.
void CallMover::StartTaken(Target& home, Item& item) {
  AwayClient& client = *item.client;
  RemoteStream& stream = item.call->away();
  http2::HeaderList fields = FieldsFrom(home).Read(item.payload());
  stream.Begin(LaneTo(home), client);
  Count(taken_, 1);
  // Calls alive here of this connection: those that were reset, too, until their tasks have seen it.
  if (context_.closed || client.client.use_count() > client.calls_max) {
    stream.Reset(ErrorCode::kRefusedStream);
    return stream.Release();
  }
  // The clock is one, but this worker's turn may have begun before the other's.
  const base::TimePoint said{base::TimePoint::duration(static_cast<base::TimePoint::rep>(item.number))};
  const base::TimePoint started = std::min(said, worker().now());
  http2::StreamEvents* events =
      Call::Start(context_, stream, client.client, std::move(fields), item.end_stream, started);
  if (events != nullptr) stream.SetEvents(events);
}

void CallMover::OnBatch(CallLane& lane, Batch& batch) {
  Target& from = targets_[lane.from().context_.index()];
  batch.TakeItems(
      [&](Item& item) { item.to == Half::kHome ? TellHome(from, batch, item) : TellAway(from, batch, item); });
}

// Of a call of this worker's connections.
void CallMover::TellHome(Target& away, Batch& batch, Item& item) {
  switch (item.kind) {
    case ItemKind::kHeaders:
      return item.call->home().SendHeaders(FieldsFrom(away).Read(item.payload()), item.end_stream);
    case ItemKind::kData:
      return item.call->home().SendData(batch.TakeData(item), item.end_stream);
    case ItemKind::kReset:
      return item.call->home().Reset(static_cast<ErrorCode>(item.number));
    case ItemKind::kConsume:
      return item.call->home().Consume(item.number);
    case ItemKind::kRelease:
      return item.call->home().Release();
    case ItemKind::kClientFreed:
      return LaneTo(away).FreeClient(*item.client);
    case ItemKind::kStart:
    case ItemKind::kSent:
    case ItemKind::kClientGone:
      break;
  }
  SLUICE_CHECK(false);
}

// Of a call that was taken.
void CallMover::TellAway(Target& home, Batch& batch, Item& item) {
  switch (item.kind) {
    case ItemKind::kStart:
      return StartTaken(home, item);
    case ItemKind::kHeaders:
      return item.call->away().OnHeaders(FieldsFrom(home).Read(item.payload()));
    case ItemKind::kData:
      return item.call->away().OnData(batch.TakeData(item), item.end_stream);
    case ItemKind::kReset:
      return item.call->away().OnReset(static_cast<ErrorCode>(item.number), item.cause);
    case ItemKind::kSent:
      return item.call->away().OnSent(item.number);
    case ItemKind::kClientGone:
      item.client->gone = true;
      return FreeClientIfUnused(*item.client, LaneTo(home));
    case ItemKind::kConsume:
    case ItemKind::kRelease:
    case ItemKind::kClientFreed:
      break;
  }
  SLUICE_CHECK(false);
}

}  // namespace sluice::proxy
