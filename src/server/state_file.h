// State file: endpoint lists changed by the admin RPC, kept over a restart. Written whole, atomically and fsynced.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "upstream/cluster.h"

namespace sluice::server {

// By cluster name: the list in force, and a fingerprint of the configuration's list that it replaced. If the
// configuration's list has changed since, the configuration wins.
struct SavedList {
  uint64_t configured = 0;
  std::vector<upstream::WantedEndpoint> endpoints;
};
using SavedLists = std::map<std::string, SavedList>;

// kIo with the step that failed; the former file is then untouched. Ok: it is on the disk, unless the folder cannot be
// synced, which is logged. Blocks.
base::Status SaveState(const std::string& path, const SavedLists& lists);
// A missing file is an empty map; one that cannot be read or understood is an error that names the place.
base::Result<SavedLists> LoadState(const std::string& path);

// Of a configured list, in any order.
uint64_t Fingerprint(const std::vector<upstream::EndpointOptions>& endpoints);

}  // namespace sluice::server
