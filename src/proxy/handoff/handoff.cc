#include "proxy/handoff/handoff.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "proxy/call/buffered_request.h"
#include "proxy/call/call.h"
#include "proxy/call/call_context.h"

namespace sluice::proxy {

using http2::ErrorCode;

// Its connection is there as long as it has not been reset.
class Handoff::Pending final : public BufferedRequest {
 public:
  Pending(http2::RequestStream& on, CanonicalRequest&& request, base::TimePoint now, AwayClients& away_clients,
          long max)
      : BufferedRequest(on, std::move(request), now), away(away_clients), calls_max(max) {}

  AwayClients& away;
  const long calls_max;
};

void Handoff::Connect(std::span<Handoff* const> all) {
  for (Handoff* handoff : all) {
    handoff->sampled_ = handoff->worker().now();
    for (size_t i = 0; i < all.size(); ++i) {
      SLUICE_CHECK(all[i]->context_.index() == i);
      handoff->targets_[i].handoff = all[i];
    }
  }
}

Handoff::Handoff(CallContext& context, HandoffOwner& owner, size_t workers)
    : context_(context),
      owner_(owner),
      targets_(workers),
      policy_(std::min(workers - 1, HandoffController::kTargetsMax)),
      plan_(std::min(workers - 1, HandoffController::kTargetsMax)),
      sample_(plan_.size()) {}

Handoff::~Handoff() {
  for (Pending* request : pending_) {
    request->stream->Release();
    delete request;
  }
}

runtime::Worker& Handoff::worker() const { return context_.worker(); }

bool Handoff::Idle() const {
  return pending_.empty() && std::all_of(targets_.begin(), targets_.end(), [](const Target& target) {
           return target.calls == nullptr || target.calls->open() == 0;
         });
}

Handoff::Target& Handoff::TargetAfter(size_t step) { return targets_[(context_.index() + step) % targets_.size()]; }

RemoteCalls& Handoff::CallsOn(Target& target) {
  if (target.calls == nullptr) {
    target.calls.reset(new RemoteCalls(worker(), target.handoff->worker(), *target.handoff));
  }
  return *target.calls;
}

MirrorReceiver& Handoff::FieldsFrom(Target& target) {
  if (target.fields == nullptr) target.fields = std::make_unique<MirrorReceiver>(context_.connection.interns);
  return *target.fields;
}

http2::StreamEvents* Handoff::Buffer(http2::RequestStream& stream, const ClientPtr& client, AwayClients& away,
                                     long calls_max, CanonicalRequest&& fields, bool end_stream) {
  auto* request = new Pending(stream, std::move(fields), worker().now(), away, calls_max);
  request->client = client;
  request->ended = end_stream;
  pending_.push_back(request);
  worker().AtIoEnd(*this);
  return request;
}

void Handoff::OnIoEnd() {
  // What a call does when it starts brings no new request: those come from Feed only.
  absl::InlinedVector<Pending*, 16> requests;
  requests.swap(pending_);
  const auto count = static_cast<uint32_t>(requests.size());
  size_t next = 0;
  auto start_here = [&] {
    const std::unique_ptr<Pending> request(requests[next++]);
    owner_.StartHere(*request);
  };
  auto give = [&](Target& target) {
    if (requests[next]->reset) return start_here();
    const std::unique_ptr<Pending> request(requests[next++]);
    StartAway(*request, target);
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
  while (next < count) start_here();
  if (pending_.empty()) {  // the larger memory is kept
    requests.clear();
    requests.swap(pending_);
  }
}

void Handoff::StartAway(Pending& request, Target& target) {
  RemoteCalls& calls = CallsOn(target);
  WorkerChannel& channel = calls.channel();
  AwayClient& client = request.away.On(calls, request.client, request.calls_max);
  RemoteCall& call = calls.New();
  call.home().Begin(calls, *request.stream, client);
  request.stream->SetEvents(call.home());
  channel.Start(call.home().name(), client.name(), request.fields, request.ended && request.parts.empty(),
                request.started);
  for (size_t i = 0; i < request.parts.size(); ++i) {
    channel.Data(Half::kAway, call.home().name(), request.parts[i], request.ended && i + 1 == request.parts.size());
  }
  if (request.trailers) channel.Headers(Half::kAway, call.home().name(), *request.trailers, true);
  Count(moved_, 1);
}

void Handoff::Flush() {
  for (Target& target : targets_) {
    if (target.calls != nullptr) target.calls->channel().Flush();
  }
}

void Handoff::Stop() {
  mode_ = Mode::kNever;
  if (!pending_.empty()) OnIoEnd();
}

// The first new call of a turn.
void Handoff::BeginTurn() {
  last_call_ = worker().now();
  if (last_call_ >= next_sample_) TakeSample();
  ++turns_seen_;
}

void Handoff::TakeSample() {
  const base::TimePoint now = worker().now();
  const runtime::Worker::Stats stats = worker().stats();
  const double wall = static_cast<double>(std::max<int64_t>((now - sampled_).count(), 1));
  const base::Nanos own = worker().CpuTime();
  for (size_t t = 0; t < sample_.size(); ++t) {
    Target& target = TargetAfter(t + 1);
    const base::Nanos cpu = target.handoff->worker().CpuTime();
    sample_[t] = static_cast<double>((cpu - target.cpu).count()) / wall;
    target.cpu = cpu;
  }
  const uint64_t moved = moved_.load(std::memory_order_relaxed);
  HandoffController::Sample sample;
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
  next_sample_ = now + HandoffController::kPeriod;
}

// Away's side of a start.
void Handoff::StartTaken(Target& home, Item& item) {
  AwayClient& client = item.client.Open(&AwayClient::mail_use);
  AwaySide& stream = item.call.Begin(&RemoteCall::away_use);
  CanonicalRequest fields = AlreadyCanonical(FieldsFrom(home).Read(item.payload()), client.client->paths);
  stream.Begin(CallsOn(home).channel(), client);
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

void Handoff::OnBatch(WorkerChannel& channel, Batch& batch) {
  Target& from = targets_[channel.from().index()];
  batch.TakeItems(
      [&](Item& item) { item.to == Half::kHome ? TellHome(from, batch, item) : TellAway(from, batch, item); });
}

// Of a call of this worker's connections.
void Handoff::TellHome(Target& away, Batch& batch, Item& item) {
  switch (item.kind) {
    case ItemKind::kHeaders:
      return AtHome(item).SendHeaders(FieldsFrom(away).Read(item.payload()), item.end_stream);
    case ItemKind::kData:
      return AtHome(item).SendData(batch.TakeData(item), item.end_stream);
    case ItemKind::kReset:
      return AtHome(item).Reset(static_cast<ErrorCode>(item.number));
    case ItemKind::kConsume:
      return AtHome(item).Consume(item.number);
    case ItemKind::kRelease:
      return AtHome(item).Release();
    case ItemKind::kClientFreed:
      return CallsOn(away).FreeClient(item.client.Open(&AwayClient::mail_use));
    case ItemKind::kStart:
    case ItemKind::kSent:
    case ItemKind::kClientGone:
      break;
  }
  SLUICE_CHECK(false);
}

// Of a call that was taken.
void Handoff::TellAway(Target& home, Batch& batch, Item& item) {
  switch (item.kind) {
    case ItemKind::kStart:
      return StartTaken(home, item);
    case ItemKind::kHeaders:
      return AtAway(item).OnHeaders(FieldsFrom(home).Read(item.payload()));
    case ItemKind::kData:
      return AtAway(item).OnData(batch.TakeData(item), item.end_stream);
    case ItemKind::kReset:
      return AtAway(item).OnReset(static_cast<ErrorCode>(item.number), item.cause);
    case ItemKind::kSent:
      return AtAway(item).OnSent(item.number);
    case ItemKind::kClientGone:
      return ClientGone(item.client.Open(&AwayClient::mail_use), CallsOn(home).channel());
    case ItemKind::kConsume:
    case ItemKind::kRelease:
    case ItemKind::kClientFreed:
      break;
  }
  SLUICE_CHECK(false);
}

}  // namespace sluice::proxy
