#include "server/endpoint_change.h"

#include <algorithm>

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using upstream::ClusterState;
using upstream::WantedEndpoint;

namespace {

base::Result<WantedEndpoint> ToWanted(const admin::EndpointSpec& spec) {
  auto address = net::Address::Parse(spec.address);
  if (!address) return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.name + ": " + address.error().detail);
  if (address->port() == 0 && address->kind() != net::Address::Kind::kUnix) {
    return MakeError(ErrorKind::kInvalidArgument, "endpoint " + spec.address + ": port 0 cannot be connected to; allowed: 1 to 65535");
  }
  return WantedEndpoint{spec.name.empty() ? address->ToString() : spec.name, *address, spec.weight, false};
}

// Keys that draining endpoints keep on the ring go elsewhere all the same, so their share counts as moved.
double DrainShare(const ClusterState& before, const ClusterState& after) {
  double moved = 0;
  std::vector<double> shares = after.balancer->Shares();
  for (size_t i = 0; i < after.endpoints.size(); ++i) {
    for (const upstream::ListedEndpoint& old : before.endpoints) {
      if (old.endpoint == after.endpoints[i].endpoint && old.draining != after.endpoints[i].draining) moved += shares[i];
    }
  }
  return moved;
}

}  // namespace

std::vector<WantedEndpoint> WantedOf(const std::vector<upstream::EndpointOptions>& endpoints) {
  std::vector<WantedEndpoint> out;
  for (const upstream::EndpointOptions& e : endpoints) out.push_back({e.name, e.address, e.weight, false});
  return out;
}

std::vector<WantedEndpoint> WantedOf(const ClusterState& state) {
  std::vector<WantedEndpoint> out;
  for (const upstream::ListedEndpoint& e : state.endpoints) {
    out.push_back({e.endpoint->name(), e.endpoint->address(), e.weight, e.draining});
  }
  return out;
}

base::Result<std::vector<WantedEndpoint>> ApplyChange(std::vector<WantedEndpoint> list, const admin::EndpointChange& change) {
  using Kind = admin::EndpointChange::Kind;
  if (change.kind == Kind::kReplace) list.clear();
  if (change.kind != Kind::kReplace && change.endpoints.empty()) {
    return MakeError(ErrorKind::kInvalidArgument, "the change names no endpoint");
  }
  for (const admin::EndpointSpec& spec : change.endpoints) {
    std::string name = spec.name.empty() ? spec.address : spec.name;
    if (change.kind == Kind::kReplace || change.kind == Kind::kAdd) {
      auto wanted = ToWanted(spec);
      if (!wanted) return wanted.error();
      name = wanted->name;
      if (std::any_of(list.begin(), list.end(), [&](const auto& e) { return e.name == name; })) {
        return MakeError(ErrorKind::kInvalidArgument, "endpoint " + name + " is in the list already");
      }
      list.push_back(std::move(*wanted));
      continue;
    }
    auto it = std::find_if(list.begin(), list.end(), [&](const auto& e) { return e.name == name; });
    if (it == list.end()) {
      return MakeError(ErrorKind::kNotFound, "no endpoint " + name + " in cluster " + change.cluster);
    }
    switch (change.kind) {
      case Kind::kRemove: list.erase(it); break;
      case Kind::kReweight: it->weight = spec.weight; break;
      case Kind::kDrain: it->draining = true; break;
      case Kind::kUndrain: it->draining = false; break;
      case Kind::kReplace:
      case Kind::kAdd: break;
    }
  }
  return list;
}

double MovedShare(const ClusterState& before, const ClusterState& after) {
  return std::min(1.0, upstream::MovedShare(*before.balancer, before.BalancerEndpoints(), *after.balancer,
                                            after.BalancerEndpoints()) +
                           DrainShare(before, after));
}

}  // namespace sluice::server
