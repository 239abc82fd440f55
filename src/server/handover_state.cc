#include "server/handover_state.h"

#include <algorithm>
#include <cmath>

#include "http2/fields/validate.h"
#include "server/handover_records.h"
#include "upstream/cluster_health.h"

namespace sluice::server {
namespace {

namespace v1 = handover::v1;
using base::TimePoint;
using upstream::EndpointRecord;

// 0 stands for kNever.
int64_t ToNanos(TimePoint at) { return at == base::kNever ? 0 : at.time_since_epoch().count(); }
TimePoint ToTime(int64_t nanos) { return nanos <= 0 ? base::kNever : TimePoint(TimePoint::duration(nanos)); }

void WriteLevels(const HandedLevels& levels, RecordsWriter& out) {
  for (const auto& [name, level] : levels.rates) {
    v1::Record record;
    record.mutable_limit()->set_name(name);
    record.mutable_limit()->set_missing(level.missing);
    record.mutable_limit()->set_outstanding(level.outstanding);
    out.Add(record);
  }
  for (const auto& [name, debts] : levels.clients) {
    v1::Record record;
    record.mutable_debt()->set_limit(name);
    for (const auto& [key, missing] : debts.keys) {
      record.mutable_debt()->set_key(key);
      record.mutable_debt()->set_missing(missing);
      out.Add(record);
    }
    if (debts.evicted.empty()) continue;
    record.mutable_evicted()->set_limit(name);
    record.mutable_evicted()->set_sets(debts.sets);
    for (const auto& [set, full_at] : debts.evicted) {
      record.mutable_evicted()->set_set(set);
      record.mutable_evicted()->set_full_at_ns(ToNanos(full_at));
      out.Add(record);
    }
  }
}

const ClientRateLimit* ClientsOf(const LimitTable& limits, const std::string& name) {
  const LimitTable::Named* named = limits.Get(name);
  return named == nullptr ? nullptr : std::get_if<ClientRateLimit>(&named->limit);
}

// --- Health ---

void WriteHealth(Clusters& clusters, TimePoint now, RecordsWriter& out) {
  for (const auto& state : clusters.States()) {
    for (const auto& [name, saved] : state->health->Save(state->endpoints, now)) {
      v1::Record record;
      v1::Health& to = *record.mutable_health();
      to.set_cluster(state->name());
      to.set_endpoint(name);
      to.set_state(std::string(ToString(saved.state)));
      to.set_detector(std::string(ToString(saved.detector)));
      to.set_since_ns(ToNanos(saved.since));
      to.set_probe_at_ns(ToNanos(saved.probe_at));
      to.set_silent(saved.silent);
      to.set_refused(saved.refused);
      to.set_joining(saved.joining);
      to.set_trial_needed(saved.trial_needed);
      to.set_tries(saved.tries);
      to.set_failed_probes(saved.failed_probes);
      to.set_trials(saved.trials);
      to.set_share(saved.share);
      to.set_warmed(saved.warmed);
      to.set_why(saved.why);
      to.set_last_error(saved.last_error);
      to.set_last_error_at_ns(ToNanos(saved.last_error_at));
      out.Add(record);
    }
  }
}

using States = std::map<std::string, std::shared_ptr<const upstream::ClusterState>, std::less<>>;

void TakeHealth(const v1::Health& from, const States& states, TimePoint now) {
  const auto cluster = states.find(from.cluster());
  const auto state = upstream::HealthStateOf(from.state());
  const auto detector = upstream::DetectorOf(from.detector());
  if (cluster == states.end() || !state || !detector) return;
  const upstream::ClusterState& list = *cluster->second;
  const uint32_t place = list.Find(from.endpoint());
  if (place == upstream::ClusterState::kNowhere) return;
  EndpointRecord::Saved saved;
  saved.state = *state;
  saved.detector = *detector;
  saved.since = from.since_ns() <= 0 ? now : ToTime(from.since_ns());
  saved.probe_at = ToTime(from.probe_at_ns());
  saved.silent = from.silent();
  saved.refused = from.refused();
  saved.joining = from.joining();
  saved.trial_needed = from.trial_needed();
  saved.tries = from.tries();
  saved.failed_probes = from.failed_probes();
  saved.trials = from.trials();
  if (std::isfinite(from.share())) saved.share = from.share();
  if (std::isfinite(from.warmed())) saved.warmed = from.warmed();
  saved.why = from.why();
  saved.last_error = from.last_error();
  saved.last_error_at = from.last_error_at_ns() <= 0 ? now : ToTime(from.last_error_at_ns());
  list.health->Restore(*list.endpoints[place].endpoint, saved, now);
}

// --- Counts ---

void ToProto(const metrics::Counted& from, v1::Series& to) {
  to.set_name(from.name);
  to.set_labels(from.labels);
  to.set_value_of_by(from.by);
  to.set_count(from.count);
  to.set_line(from.line);
  to.set_is_line(from.kind == metrics::Counted::Kind::kLine);
  if (from.kind != metrics::Counted::Kind::kHistogram) return;
  to.set_sum(from.observed.sum);
  to.set_max(from.observed.max);
  for (const uint64_t bucket : from.observed.buckets) to.add_buckets(bucket);
}

void TakeSeries(const v1::Series& from, metrics::Registry& registry) {
  metrics::Counted out{.name = from.name(), .labels = from.labels(), .by = from.value_of_by(), .count = from.count()};
  if (from.is_line()) {
    if (!std::isfinite(from.line()) || from.line() < 0) return;
    out.kind = metrics::Counted::Kind::kLine;
    out.line = from.line();
  } else if (from.buckets_size() > 0) {
    if (from.buckets_size() != static_cast<int>(metrics::Histogram::kBuckets)) return;
    out.kind = metrics::Counted::Kind::kHistogram;
    out.observed.sum = from.sum();
    out.observed.max = from.max();
    std::copy(from.buckets().begin(), from.buckets().end(), out.observed.buckets.begin());
  }
  registry.AddCounts(out);
}

// --- Responses ---

void ToProto(const proxy::FlatHeaders& from, google::protobuf::RepeatedPtrField<v1::Field>& to) {
  from.ForEach([&](std::string_view name, std::string_view value, http2::Indexing indexing) {
    v1::Field& field = *to.Add();
    field.set_name(std::string(name));
    field.set_value(std::string(value));
    field.set_indexing(static_cast<uint32_t>(indexing));
  });
}

http2::HeaderList FromProto(const google::protobuf::RepeatedPtrField<v1::Field>& from) {
  http2::HeaderList out;
  for (const v1::Field& field : from) {
    const bool known = field.indexing() <= static_cast<uint32_t>(http2::Indexing::kNever);
    out.Add(field.name(), field.value(),
            known ? static_cast<http2::Indexing>(field.indexing()) : http2::Indexing::kNever);
  }
  return out;
}

void WriteResponses(const proxy::ResponseCache& cache, RecordsWriter& out) {
  v1::Record record;
  cache.ForEachStored([&](const proxy::ResponseCache::Stored& stored) {
    record.Clear();
    v1::Response& to = *record.mutable_response();
    to.set_layout(proxy::cache_key::kLayout);
    to.set_key(std::string(stored.key));
    ToProto(stored.response.headers, *to.mutable_headers());
    to.set_message(std::string(stored.response.message.view()));
    ToProto(stored.response.trailers, *to.mutable_trailers());
    to.set_status(static_cast<uint32_t>(stored.response.status));
    to.set_ended_on_data(stored.response.ended_on_data);
    to.set_stored_ns(ToNanos(stored.response.stored));
    to.set_fresh_until_ns(ToNanos(stored.life.fresh_until));
    to.set_revalidate_until_ns(ToNanos(stored.life.revalidate_until));
    to.set_unavailable_until_ns(ToNanos(stored.life.unavailable_until));
    out.Add(record);
  });
}

void TakeResponse(const v1::Response& from, proxy::ResponseCache& cache, TimePoint now) {
  if (from.layout() != proxy::cache_key::kLayout || from.status() >= proxy::kGrpcCodes) return;
  const http2::HeaderList headers = FromProto(from.headers()), trailers = FromProto(from.trailers());
  if (http2::ValidateResponse(headers).malformed != nullptr || http2::ValidateTrailers(trailers) != nullptr) return;
  if (!from.message().empty() && !proxy::cache_key::IsOneMessage(from.message())) return;
  auto response = std::make_shared<proxy::CachedResponse>();
  response->headers = proxy::FlatHeaders(headers);
  response->message = base::Slice::Copy(from.message());
  response->trailers = proxy::FlatHeaders(trailers);
  response->status = static_cast<proxy::GrpcCode>(from.status());
  response->ended_on_data = from.ended_on_data();
  response->stored = std::min(now, ToTime(from.stored_ns()));
  proxy::cache_policy::Lifetime life;
  life.fresh_until = ToTime(from.fresh_until_ns());
  life.revalidate_until = std::max(life.fresh_until, ToTime(from.revalidate_until_ns()));
  life.unavailable_until = std::max(life.fresh_until, ToTime(from.unavailable_until_ns()));
  if (life.end() == base::kNever) return;
  (void)cache.Restore(from.key(), std::move(response), life, now);
}

}  // namespace

base::Result<handover::Descriptor> WriteState(const HandedState& state, const HandedLevels& levels,
                                              const std::vector<metrics::Counted>& counts, TimePoint now) {
  auto out = RecordsWriter::Open();
  if (!out) return out.error();
  WriteLevels(levels, *out);
  WriteHealth(state.clusters, now, *out);
  v1::Record record;
  for (const metrics::Counted& counted : counts) {
    record.Clear();
    ToProto(counted, *record.mutable_series());
    out->Add(record);
  }
  if (state.cache != nullptr) WriteResponses(*state.cache, *out);
  return out->Finish();
}

base::Status ReadState(const handover::Descriptor& file, const HandedState& state, TimePoint now) {
  States states;
  for (const auto& cluster : state.clusters.States()) states.emplace(cluster->name(), cluster);
  return ReadRecordsOf(file, [&](const v1::Record& record) {
    if (record.has_limit()) {
      const v1::Limit& from = record.limit();
      const LimitTable::Named* named = state.limits.Get(from.name());
      const auto* rate = named == nullptr ? nullptr : std::get_if<RateLimit>(&named->limit);
      if (rate != nullptr) rate->limiter->Resume({from.missing(), from.outstanding()});
    } else if (record.has_debt()) {
      if (const auto* clients = ClientsOf(state.limits, record.debt().limit()); clients != nullptr)
        clients->limiter->Resume({record.debt().key(), record.debt().missing()}, now);
    } else if (record.has_evicted()) {
      const v1::Evicted& from = record.evicted();
      if (const auto* clients = ClientsOf(state.limits, from.limit()); clients != nullptr && from.full_at_ns() > 0)
        clients->limiter->Resume(from.sets(), {from.set(), ToTime(from.full_at_ns())});
    } else if (record.has_health()) {
      TakeHealth(record.health(), states, now);
    } else if (record.has_series()) {
      TakeSeries(record.series(), state.registry);
    } else if (record.has_response() && state.cache != nullptr) {
      TakeResponse(record.response(), *state.cache, now);
    }
  });
}

base::Result<handover::Descriptor> WriteCounts(const std::vector<metrics::Counted>& counts) {
  auto out = RecordsWriter::Open();
  if (!out) return out.error();
  v1::Record record;
  for (const metrics::Counted& counted : counts) {
    record.Clear();
    ToProto(counted, *record.mutable_series());
    out->Add(record);
  }
  return out->Finish();
}

base::Status ReadCounts(const handover::Descriptor& file, metrics::Registry& registry) {
  return ReadRecordsOf(file, [&](const v1::Record& record) {
    if (record.has_series()) TakeSeries(record.series(), registry);
  });
}

namespace {

void Subtract(const metrics::Counted& from, metrics::Counted& to) {
  to.count -= from.count;
  to.line -= from.line;
  to.observed.sum -= from.observed.sum;
  to.observed.count -= from.observed.count;
  for (size_t i = 0; i < to.observed.buckets.size(); ++i) to.observed.buckets[i] -= from.observed.buckets[i];
}

}  // namespace

std::vector<metrics::Counted> CountsSince::Difference(std::vector<metrics::Counted> now) {
  std::vector<metrics::Counted> out;
  for (metrics::Counted& counted : now) {
    metrics::Counted& last = last_[KeyOf(counted)];
    metrics::Counted more = counted;
    Subtract(last, more);
    last = std::move(counted);
    if (more.count != 0 || more.line > 0 || more.observed.count != 0) out.push_back(std::move(more));
  }
  return out;
}

void CountsSince::Again(const std::vector<metrics::Counted>& found) {
  for (const metrics::Counted& counted : found) Subtract(counted, last_[KeyOf(counted)]);
}

}  // namespace sluice::server
