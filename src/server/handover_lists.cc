// What the next process must know before it builds anything: endpoint lists, and limits as they are in force.
#include <algorithm>
#include <cmath>
#include <optional>

#include "server/handover_records.h"
#include "server/handover_state.h"
#include "server/processes.h"

namespace sluice::server {
namespace {

namespace v1 = handover::v1;
using base::TimePoint;
using upstream::ListSource;

// --- Lists ---

v1::List::Source ToProto(ListSource source) {
  switch (source) {
    case ListSource::kConfig:
      return v1::List::SOURCE_CONFIG;
    case ListSource::kRpc:
      return v1::List::SOURCE_RPC;
    case ListSource::kDiscovery:
      return v1::List::SOURCE_DISCOVERY;
  }
  return v1::List::SOURCE_CONFIG;
}

void ToProto(const upstream::WantedEndpoint& from, v1::Endpoint& to) {
  to.set_name(from.name);
  to.set_address(from.address.ToString());
  to.set_weight(from.weight);
  to.set_priority(from.standing.priority);
  to.set_locality(from.standing.locality);
  to.set_draining(from.draining);
  to.set_drain_begin_ns(from.ramp.from.time_since_epoch().count());
  to.set_drain_over_ms(from.ramp.over.count());
  to.set_drain_share(from.ramp.share);
}

// nullopt: its address is none.
std::optional<upstream::WantedEndpoint> FromProto(const v1::Endpoint& from) {
  auto address = net::Address::Parse(from.address());
  if (!address) return std::nullopt;
  upstream::WantedEndpoint out;
  out.name = from.name();
  out.address = std::move(*address);
  out.weight = from.weight();
  out.draining = from.draining();
  out.standing = {from.priority(), from.locality()};
  const auto most = static_cast<uint32_t>(upstream::DrainRamp::kOverMax.count());
  out.ramp.over = upstream::DrainRamp::Milliseconds(std::min(from.drain_over_ms(), most));
  out.ramp.from = TimePoint(TimePoint::duration(std::max<int64_t>(0, from.drain_begin_ns())));
  if (std::isfinite(from.drain_share())) out.ramp.share = std::clamp(from.drain_share(), 0.0f, 1.0f);
  return out;
}

// A list of which an endpoint cannot be read is none.
void TakeList(const v1::List& from, InheritedLists& lists) {
  InheritedList list;
  list.version = from.version();
  list.released = from.released();
  list.list.configured = from.configured();
  list.list.at = from.put_at();
  list.list.source = from.source() == v1::List::SOURCE_RPC         ? ListSource::kRpc
                     : from.source() == v1::List::SOURCE_DISCOVERY ? ListSource::kDiscovery
                                                                   : ListSource::kConfig;
  for (const v1::Endpoint& endpoint : from.endpoints()) {
    auto wanted = FromProto(endpoint);
    if (!wanted) return;
    list.list.endpoints.push_back(std::move(*wanted));
  }
  lists[from.cluster()] = std::move(list);
}

// --- Limits ---

void ToProto(const limits::RateOptions& from, v1::Rate& to) {
  to.set_rate(from.rate);
  to.set_burst(from.burst);
  to.set_capped(from.capped);
  to.set_queue_max(from.queue_max);
  to.set_queue_time_ms(static_cast<uint64_t>(from.queue_time.count()));
}
void ToProto(const limits::ConcurrencyOptions& from, v1::Concurrency& to) {
  to.set_max(from.max);
  to.set_queue_max(from.queue_max);
  to.set_queue_time_ms(static_cast<uint64_t>(from.queue_time.count()));
}
// Of an older process: the default, which is what its clients get here.
std::chrono::milliseconds QueueTime(const auto& from) {
  constexpr uint64_t kMost = std::chrono::milliseconds(std::chrono::hours(1)).count();
  if (!from.has_queue_time_ms()) return limits::kQueueTime;
  return std::chrono::milliseconds(std::min<uint64_t>(from.queue_time_ms(), kMost));
}
limits::RateOptions FromProto(const v1::Rate& from) {
  return {from.rate(), from.burst(), from.capped(), from.queue_max(), QueueTime(from)};
}
limits::ConcurrencyOptions FromProto(const v1::Concurrency& from) {
  return {from.max(), from.queue_max(), QueueTime(from)};
}

void ToProto(const LimitTable::Named& from, v1::Limit& to) {
  to.set_name(from.name);
  std::visit(
      [&](const auto& limit) {
        if constexpr (requires { limit.configured.rate.rate; }) {
          ToProto(limit.configured.rate, *to.mutable_configured_rate());
          ToProto(limit.in_force, *to.mutable_rate());
        } else if constexpr (requires { limit.in_force.rate; }) {
          ToProto(limit.configured, *to.mutable_configured_rate());
          ToProto(limit.in_force, *to.mutable_rate());
        } else {
          ToProto(limit.configured, *to.mutable_configured_concurrency());
          ToProto(limit.in_force, *to.mutable_concurrency());
        }
      },
      from.limit);
}

// What is configured and in force, as a limit of the kind that its name has.
LimitTable::Named FromProto(const v1::Limit& from) {
  LimitTable::Named out{from.name(), RateLimit{}};
  const std::string_view name = from.name();
  if (name.ends_with("/client_rate")) {
    ClientRateLimit limit;
    limit.configured.rate = FromProto(from.configured_rate());
    limit.in_force = FromProto(from.rate());
    out.limit = std::move(limit);
  } else if (name.ends_with("/endpoint_concurrency")) {
    out.limit = EndpointLimit{FromProto(from.configured_concurrency()), FromProto(from.concurrency()), {}};
  } else if (name.ends_with("/concurrency")) {
    out.limit = ConcurrencyLimit{FromProto(from.configured_concurrency()), FromProto(from.concurrency()), nullptr};
  } else {
    out.limit = RateLimit{FromProto(from.configured_rate()), FromProto(from.rate()), nullptr};
  }
  return out;
}

}  // namespace

base::Result<handover::Descriptor> WriteLists(const InheritedLists& lists, const LimitTable& limits) {
  auto out = RecordsWriter::Open();
  if (!out) return out.error();
  for (const auto& [cluster, list] : lists) {
    v1::Record record;
    v1::List& to = *record.mutable_list();
    to.set_cluster(cluster);
    to.set_version(list.version);
    to.set_configured(list.list.configured);
    to.set_source(ToProto(list.list.source));
    to.set_put_at(list.list.at);
    to.set_released(list.released);
    for (const auto& endpoint : list.list.endpoints) ToProto(endpoint, *to.add_endpoints());
    out->Add(record);
  }
  for (const LimitTable::Named& named : limits.all()) {
    v1::Record record;
    ToProto(named, *record.mutable_limit());
    out->Add(record);
  }
  return out->Finish();
}

base::Result<HandedLists> ReadLists(const handover::Descriptor& file) {
  HandedLists out;
  auto status = ReadRecordsOf(file, [&](const v1::Record& record) {
    if (record.has_list()) TakeList(record.list(), out.lists);
    if (record.has_limit()) out.limits.push_back(FromProto(record.limit()));
  });
  if (!status) return status.error();
  return out;
}

base::Result<handover::Descriptor> WriteParts(const std::vector<v1::Part>& parts) {
  auto out = RecordsWriter::Open();
  if (!out) return out.error();
  for (const v1::Part& part : parts) {
    v1::Record record;
    *record.mutable_part() = part;
    out->Add(record);
  }
  return out->Finish();
}

base::Result<std::vector<v1::Part>> ReadParts(const handover::Descriptor& file) {
  std::vector<v1::Part> out;
  auto status = ReadRecordsOf(file, [&](const v1::Record& record) {
    if (record.has_part() && out.size() <= Processes::kMax) out.push_back(record.part());
  });
  if (!status) return status.error();
  return out;
}

}  // namespace sluice::server
