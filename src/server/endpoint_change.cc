#include "server/endpoint_change.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using upstream::ClusterState;
using upstream::ListChange;
using upstream::WantedEndpoint;

namespace {

base::Result<WantedEndpoint> ToWanted(const admin::EndpointSpec& spec) {
  auto address = net::Address::Parse(spec.address);
  if (!address) return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.name + ": " + address.error().detail);
  if (address->port() == 0 && address->kind() != net::Address::Kind::kUnix) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "endpoint " + spec.address + ": port 0 cannot be connected to; allowed: 1 to 65535");
  }
  return WantedEndpoint{spec.name.empty() ? address->ToString() : spec.name, *address, spec.weight, false};
}

// Keys that draining endpoints keep on the ring go elsewhere all the same, so their share counts as moved.
double DrainShare(const ClusterState& before, const ClusterState& after) {
  absl::flat_hash_set<const upstream::Endpoint*> draining;  // before
  for (const upstream::ListedEndpoint& entry : before.endpoints) {
    if (entry.draining) draining.insert(entry.endpoint.get());
  }
  double moved = 0;
  std::vector<double> shares;
  for (size_t i = 0; i < after.endpoints.size(); ++i) {
    const upstream::ListedEndpoint& entry = after.endpoints[i];
    if (entry.draining == draining.contains(entry.endpoint.get())) continue;
    const bool there = std::any_of(before.endpoints.begin(), before.endpoints.end(),
                                   [&](const auto& old) { return old.endpoint == entry.endpoint; });
    if (!there) continue;
    if (shares.empty()) shares = after.balancer->Shares();
    moved += shares[i];
  }
  return moved;
}

base::Error NotFound(const std::string& name, const admin::EndpointChange& change) {
  return MakeError(ErrorKind::kNotFound, "no endpoint " + name + " in cluster " + change.cluster);
}

base::Error ThereAlready(const std::string& name) {
  return MakeError(ErrorKind::kInvalidArgument, "endpoint " + name + " is in the list already");
}

base::Result<ListChange> Replace(const ClusterState& before, const admin::EndpointChange& change) {
  std::vector<WantedEndpoint> list;
  absl::flat_hash_set<std::string> names;
  for (const admin::EndpointSpec& spec : change.endpoints) {
    auto wanted = ToWanted(spec);
    if (!wanted) return wanted.error();
    if (!names.insert(wanted->name).second) return ThereAlready(wanted->name);
    list.push_back(std::move(*wanted));
  }
  return upstream::ChangeTo(list, &before);
}

base::Result<ListChange> Add(const ClusterState& before, const admin::EndpointChange& change) {
  ListChange out = upstream::NoChange(before);
  absl::flat_hash_set<std::string> names;
  for (const admin::EndpointSpec& spec : change.endpoints) {
    auto wanted = ToWanted(spec);
    if (!wanted) return wanted.error();
    if (before.Find(wanted->name) != ClusterState::kNowhere || !names.insert(wanted->name).second) {
      return ThereAlready(wanted->name);
    }
    out.entries.push_back({static_cast<uint32_t>(out.added.size()), true, false, wanted->weight});
    out.added.push_back(std::move(*wanted));
  }
  return out;
}

}  // namespace

std::vector<WantedEndpoint> WantedOf(const std::vector<upstream::EndpointOptions>& endpoints) {
  std::vector<WantedEndpoint> out;
  out.reserve(endpoints.size());
  for (const upstream::EndpointOptions& e : endpoints) out.push_back({e.name, e.address, e.weight, false});
  return out;
}

std::vector<WantedEndpoint> WantedOf(const ClusterState& state) { return WantedOf(state, upstream::NoChange(state)); }

std::vector<WantedEndpoint> WantedOf(const ClusterState& before, const ListChange& change) {
  std::vector<WantedEndpoint> out;
  out.reserve(change.entries.size());
  for (const ListChange::Entry& entry : change.entries) {
    if (entry.is_new) {
      const WantedEndpoint& added = change.added[entry.place];
      out.push_back({added.name, added.address, entry.weight, entry.draining});
    } else {
      const upstream::Endpoint& endpoint = *before.endpoints[entry.place].endpoint;
      out.push_back({endpoint.name(), endpoint.address(), entry.weight, entry.draining});
    }
  }
  return out;
}

base::Result<ListChange> ApplyChange(const ClusterState& before, const admin::EndpointChange& change) {
  using Kind = admin::EndpointChange::Kind;
  if (change.kind == Kind::kReplace) return Replace(before, change);
  if (change.endpoints.empty()) return MakeError(ErrorKind::kInvalidArgument, "the change names no endpoint");
  if (change.kind == Kind::kAdd) return Add(before, change);
  ListChange out = upstream::NoChange(before);
  absl::flat_hash_set<uint32_t> gone;
  for (const admin::EndpointSpec& spec : change.endpoints) {
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
        out.entries[place].draining = true;
        break;
      case Kind::kUndrain:
        out.entries[place].draining = false;
        break;
      case Kind::kReplace:
      case Kind::kAdd:
        break;
    }
  }
  if (!gone.empty())
    std::erase_if(out.entries, [&](const ListChange::Entry& entry) { return gone.contains(entry.place); });
  return out;
}

double MovedShare(const ClusterState& before, const ClusterState& after) {
  return std::min(1.0, upstream::MovedByBalancer(before, after) + DrainShare(before, after));
}

}  // namespace sluice::server
