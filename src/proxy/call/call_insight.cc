// What a call leaves behind for a person: its name, and its record where it has failed (insight/insight.h).
#include <utility>

#include "proxy/call/call.h"
#include "proxy/insight/insight.h"
#include "proxy/message_field.h"
#include "proxy/metadata_key.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

// With an error of ours, so that what a client logs leads to what is kept. A fetch has no client: what it answers may
// go to several calls, each with a name of its own. Nothing suspends from here to the call's end (Call::Run), so the
// name is kept by the worker: a call that waits is what the proxy has most of.
void Call::AddCallId(http2::HeaderList& fields) {
  if (sink.fetch() != nullptr) return;
  context.named = {this, has_extra_ && extra().id.set() ? extra().id : context.TakeCallId()};
  fields.Add("sluice-call-id", context.named.id.ToString());
}

// The one that its client was told, or a new one. Once, at the end.
CallId Call::TakeId() {
  const auto [call, id] = std::exchange(context.named, {});
  if (call == this) return id;
  return has_extra_ && extra().id.set() ? extra().id : context.TakeCallId();
}

void Call::OnAttemptFailing(Attempt& attempt) {
  if (&attempt == &attempt_) NoteEndpoint();
}

void Call::OnConnected(Attempt& attempt, base::Nanos waited) {
  if (&attempt == &attempt_) history().connecting = waited;
}

// How long the attempt, which goes on or has ended just `now`, has waited for a connection.
base::Nanos Call::Connecting(base::TimePoint now) const {
  if (attempt_.waits_since() != base::TimePoint{}) return now - attempt_.waits_since();
  return history_ != nullptr ? history_->connecting : base::Nanos(0);
}

base::Nanos Call::AgeOfAttempt(base::TimePoint now) const {
  const bool sent = attempt_.opened() != base::TimePoint{};
  return Connecting(now) + (sent ? now - attempt_.opened() : base::Nanos(0));
}

// Of an attempt that has not ended: behind that, its endpoint may be gone.
void Call::NoteEndpoint() {
  const Attempt::State at = attempt_.state();
  if (at != Attempt::State::kPicking && at != Attempt::State::kEnded) history().endpoint = attempt_.endpoint()->name();
}

// At the call's end. Fetches of the cache are not kept: the calls that took part are.
bool Call::KeepsFailure(base::Nanos total) const {
  if (status_ == GrpcCode::kOk || config_->insight == nullptr || sink.fetch() != nullptr) return false;
  return config_->insight->failed.Takes(FailedCalls::KindOf(status_, error_.get()), started_ + total, context.index());
}

void Call::KeepFailure(const CallRecord& record) {
  config_->insight->failed.Add(record, FailedCalls::KindOf(status_, error_.get()), context.index());
}

// This call is the sample, if it has a key and its cluster goes by it.
void Call::SampleKey() {
  Insight* const insight = config_->insight.get();
  const auto on = [](const Insight* of) { return of != nullptr && of->keys.on(); };
  // The next sample is of a call by the newest configuration, which may have come since this call began.
  const bool next = on(context.config->insight.get());
  context.key_sample_in = next ? HotKeys::NextGap(context.worker().random()) : UINT32_MAX;
  if (!on(insight) || cluster_->options->policy != upstream::Policy::kRingHash) return;
  const HashBy& by = route_->options.hash_by;
  const http2::Field* path = request.Find(http2::Token::kPath);
  const auto add = [&](std::string_view text) {
    insight->keys.Add(cluster_->name(), ring_key, text, context.worker().now(), context.index());
  };
  switch (by.kind) {
    case HashBy::Kind::kRandom:
      return;
    case HashBy::Kind::kPeer:
      return add(client_->address());
    case HashBy::Kind::kMethod:
      if (path != nullptr) add(path->value());
      return;
    case HashBy::Kind::kMetadata: {
      std::string joined;
      if (const auto value = MetadataKey(request, by.metadata, by.repeated, joined)) add(*value);
      return;
    }
    case HashBy::Kind::kField: {
      const MethodField* field = path == nullptr ? nullptr : FindMethodField(by, path->value());
      if (field == nullptr) return;
      const FieldValue value = ReadField(body.parts(), field->numbers, by.field_bytes_max);
      if (!value.HasKey()) return;
      const bool text = value.delimited || value.kind != FieldValue::Kind::kFound;
      return text ? add(value.bytes()) : add(std::to_string(value.number));
    }
  }
}

}  // namespace sluice::proxy
