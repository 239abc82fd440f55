// Lists that go from one process of the daemon to the next (docs/handover.md).
#include <algorithm>
#include <utility>

#include "server/clusters.h"

namespace sluice::server {

using upstream::ListSource;

InheritedLists Clusters::ListsInForce() {
  InheritedLists out;
  for (const auto& [name, entry] : entries()) {
    InheritedList& list = out[name];
    list.version = entry.state->version;
    list.released = entry.released;
    list.list = {entry.configured, {}, entry.state->source, entry.put_at};
    if (entry.state->source != ListSource::kConfig) list.list.endpoints = WantedOf(*entry.state);
  }
  return out;
}

void Clusters::Inherit(const InheritedLists& inherited, Plan& plan) {
  for (const auto& [name, was] : inherited) {
    first_version_ = std::max(first_version_, was.version + 1);
    const auto it = plan.lists.find(name);
    if (it == plan.lists.end()) continue;
    PlannedList& list = it->second;
    // A list by RPC or of a source is the other process's where one of that kind is planned: there is no file beside
    // it.
    const bool same = list.source == was.list.source && list.configured == was.list.configured;
    list.version = same ? was.version : was.version + 1;
    if (same) list.released = was.released;
  }
}

}  // namespace sluice::server
