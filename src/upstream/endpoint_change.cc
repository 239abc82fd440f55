#include "upstream/endpoint_change.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "upstream/cluster.h"

namespace sluice::upstream {

using base::ErrorKind;
using base::MakeError;

namespace {

base::Result<WantedEndpoint> ToWanted(const EndpointSpec& spec) {
  auto address = net::Address::Parse(spec.address);
  if (!address) return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.name + ": " + address.error().detail);
  if (address->port() == 0 && address->kind() != net::Address::Kind::kUnix) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "endpoint " + spec.address + ": port 0 cannot be connected to; allowed: 1 to 65535");
  }
  return WantedEndpoint{spec.name.empty() ? address->ToString() : spec.name,
                        *address,
                        spec.weight,
                        false,
                        {},
                        {spec.priority, spec.locality}};
}

// Keys that draining endpoints keep on the ring go elsewhere all the same, so their share counts as moved.
double DrainShare(const ClusterState& before, const ClusterState& after) {
  absl::flat_hash_set<const Endpoint*> draining;  // before
  for (const ListedEndpoint& entry : before.endpoints) {
    if (entry.draining) draining.insert(entry.endpoint.get());
  }
  double moved = 0;
  std::vector<double> shares;
  for (size_t i = 0; i < after.endpoints.size(); ++i) {
    const ListedEndpoint& entry = after.endpoints[i];
    if (entry.draining == draining.contains(entry.endpoint.get())) continue;
    const bool there = std::any_of(before.endpoints.begin(), before.endpoints.end(),
                                   [&](const auto& old) { return old.endpoint == entry.endpoint; });
    if (!there) continue;
    if (shares.empty()) shares = after.balancer->Shares();
    moved += shares[i];
  }
  return moved;
}

// The keys of endpoints that drain in `before` and are gone in `after`: they have gone elsewhere already, by the drain.
// Where no endpoint is left, the keys lose more than those.
double MovedBefore(const ClusterState& before, const ClusterState& after) {
  if (after.endpoints.empty()) return 0;
  absl::flat_hash_set<const Endpoint*> there;
  for (const ListedEndpoint& entry : after.endpoints) there.insert(entry.endpoint.get());
  double moved = 0;
  std::vector<double> shares;
  for (size_t i = 0; i < before.endpoints.size(); ++i) {
    const ListedEndpoint& entry = before.endpoints[i];
    if (!entry.draining || there.contains(entry.endpoint.get())) continue;
    if (shares.empty()) shares = before.balancer->Shares();
    moved += shares[i];
  }
  return moved;
}

base::Error NotFound(const std::string& name, const EndpointChange& change) {
  return MakeError(ErrorKind::kNotFound, "no endpoint " + name + " in cluster " + change.cluster);
}

base::Error ThereAlready(const std::string& name) {
  return MakeError(ErrorKind::kInvalidArgument, "endpoint " + name + " is in the list already");
}

base::Result<ListChange> Replace(const ClusterState& before, const EndpointChange& change) {
  std::vector<WantedEndpoint> list;
  absl::flat_hash_set<std::string> names;
  for (const EndpointSpec& spec : change.endpoints) {
    auto wanted = ToWanted(spec);
    if (!wanted) return wanted.error();
    if (!names.insert(wanted->name).second) return ThereAlready(wanted->name);
    list.push_back(std::move(*wanted));
  }
  return ChangeTo(list, &before);
}

base::Result<ListChange> Add(const ClusterState& before, const EndpointChange& change) {
  ListChange out = NoChange(before);
  absl::flat_hash_set<std::string> names;
  for (const EndpointSpec& spec : change.endpoints) {
    auto wanted = ToWanted(spec);
    if (!wanted) return wanted.error();
    if (before.Find(wanted->name) != ClusterState::kNowhere || !names.insert(wanted->name).second) {
      return ThereAlready(wanted->name);
    }
    out.entries.push_back({static_cast<uint32_t>(out.added.size()), true, false, wanted->weight, {}, wanted->standing});
    out.added.push_back(std::move(*wanted));
  }
  return out;
}

// An endpoint that drains already goes on from where it is: what it has given away does not come back.
DrainRamp RampOf(const ListedEndpoint& listed, const EndpointChange& change, base::TimePoint now) {
  if (change.over.count() == 0) return {};
  const double share = listed.draining ? listed.ramp.ShareAt(now) : 1;
  return {now, std::chrono::duration_cast<DrainRamp::Milliseconds>(std::min(change.over, DrainRamp::kOverMax)),
          static_cast<float>(share)};
}

}  // namespace

std::vector<WantedEndpoint> WantedOf(const std::vector<EndpointOptions>& endpoints) {
  std::vector<WantedEndpoint> out;
  out.reserve(endpoints.size());
  for (const EndpointOptions& e : endpoints)
    out.push_back({e.name, e.address, e.weight, false, {}, {e.priority, e.locality}});
  return out;
}

std::vector<WantedEndpoint> WantedOf(const ClusterState& state) { return WantedOf(state, NoChange(state)); }

std::vector<WantedEndpoint> WantedOf(const ClusterState& before, const ListChange& change) {
  std::vector<WantedEndpoint> out;
  out.reserve(change.entries.size());
  for (const ListChange::Entry& entry : change.entries) {
    if (entry.is_new) {
      const WantedEndpoint& added = change.added[entry.place];
      out.push_back({added.name, added.address, entry.weight, entry.draining, entry.ramp, entry.standing});
    } else {
      const Endpoint& endpoint = *before.endpoints[entry.place].endpoint;
      out.push_back({endpoint.name(), endpoint.address(), entry.weight, entry.draining, entry.ramp, entry.standing});
    }
  }
  return out;
}

base::Result<ListChange> ApplyChange(const ClusterState& before, const EndpointChange& change, base::TimePoint now) {
  using Kind = EndpointChange::Kind;
  if (change.kind == Kind::kReplace) return Replace(before, change);
  if (change.endpoints.empty()) return MakeError(ErrorKind::kInvalidArgument, "the change names no endpoint");
  if (change.kind == Kind::kAdd) return Add(before, change);
  ListChange out = NoChange(before);
  absl::flat_hash_set<uint32_t> gone;
  for (const EndpointSpec& spec : change.endpoints) {
    const std::string& name = spec.name.empty() ? spec.address : spec.name;
    const uint32_t place = before.Find(name);
    if (place == ClusterState::kNowhere || gone.contains(place)) return NotFound(name, change);
    switch (change.kind) {
      case Kind::kRemove:
        gone.insert(place);
        break;
      case Kind::kReweight:
        out.entries[place].weight = spec.weight;
        break;
      case Kind::kDrain:
        out.entries[place].ramp = RampOf(before.endpoints[place], change, now);
        out.entries[place].draining = true;
        break;
      case Kind::kUndrain:
        out.entries[place].ramp = {};
        out.entries[place].draining = false;
        break;
      case Kind::kReplace:
      case Kind::kAdd:
      case Kind::kReset:
        break;
    }
  }
  if (!gone.empty())
    std::erase_if(out.entries, [&](const ListChange::Entry& entry) { return gone.contains(entry.place); });
  return out;
}

double MovedShare(const ClusterState& before, const ClusterState& after) {
  return std::clamp(MovedByBalancer(before, after) + DrainShare(before, after) - MovedBefore(before, after), 0.0, 1.0);
}

}  // namespace sluice::upstream
