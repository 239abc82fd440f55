// State file: endpoint lists that are not the configuration's, kept over a restart: those changed by the admin RPC, and
// the last ones that sources gave. Written whole, atomically and fsynced.
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
  upstream::ListSource source = upstream::ListSource::kRpc;
  int64_t at = 0;  // of kDiscovery: when it was put in force, in seconds since 1970
};
using SavedLists = std::map<std::string, SavedList>;

// kIo with the step that failed; the former file is then untouched. Ok: it is on the disk, unless the folder cannot be
// synced, which is logged. Blocks.
base::Status SaveState(const std::string& path, const SavedLists& lists);
// A missing file is an empty map. kIo: it cannot be read. kInvalidArgument: it cannot be understood; names the place.
base::Result<SavedLists> LoadState(const std::string& path);
// The same at the start. A file that cannot be understood, perhaps cut short by a full disk, must not keep calls from
// being served: it is renamed to PATH.bad, so that no change overwrites it, and logged as an error; no lists then.
base::Result<SavedLists> LoadStateOrSetAside(const std::string& path);

// For SavedList::at.
int64_t UnixSeconds();

// The version that this process's lists begin with: the time now, in microseconds since 1970. A list changes less often
// than once a microsecond, so no process before this one has used a version that this one uses, unless the clock was
// set back; and then only by a rare chance. Below 2^53 until the year 2255, so that a double holds it.
uint64_t FirstListVersion();

// Of a configured list, in any order, and of what keeps it (DiscoveryOptions::Name; empty: nothing).
uint64_t Fingerprint(const std::vector<upstream::EndpointOptions>& endpoints, const std::string& discovery = {});

}  // namespace sluice::server
