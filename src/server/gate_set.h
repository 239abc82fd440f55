// GateSet: the gates of all routes. A gate whose options are the same after a reload is the same object, because a call
// that waits is asked by gates that it has not met (GateWalk::Knows).
//
// Thread safety: Prepare and Commit on one thread at a time; Poll on any thread beside it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "config/config.h"
#include "metrics/registry.h"
#include "proxy/identity/jwt_gate.h"
#include "proxy/route_table.h"
#include "server/jwt_files.h"

namespace sluice::server {

// The gates of one configuration, by the route's name; routes without any are not in it.
struct GateTable {
  std::map<std::string, std::shared_ptr<const proxy::GateList>> lists;
  // Routes with Route::key_has_credential.
  std::set<std::string> key_has_credential;

  // As Route::gates.
  std::shared_ptr<const proxy::GateList> Of(const std::string& route) const {
    const auto it = lists.find(route);
    return it == lists.end() ? nullptr : it->second;
  }
};

class GateSet {
 public:
  // `wall`: of the dates of tokens.
  GateSet(metrics::Registry& registry, uint32_t workers, proxy::WallClock wall)
      : jwt_files_(registry, workers, std::move(wall)) {}

  struct Plan {
    GateTable table;
    JwtFiles::Plan jwt;
  };
  // The gates of a configuration, the former objects where nothing of them has changed. Reads the files that they need,
  // which blocks, and changes nothing that is in force. The error names what cannot be used.
  base::Result<Plan> Prepare(const config::Config& config);
  // A snapshot with the plan's gates has been published.
  void Commit(Plan plan);
  // Looks whether files of gates have changed. Blocks on the file system.
  void Poll() { jwt_files_.Poll(); }

 private:
  // In the order in which a call meets them. A list with the same gates as before is the former one.
  base::Result<std::shared_ptr<const proxy::GateList>> GatesOf(const proxy::RouteOptions& route, Plan& plan);
  // The gate of `former` that is as these options want it, or a new one.
  static base::Result<std::shared_ptr<const proxy::Gate>> JwtGateOf(const proxy::RouteOptions& route, const Plan& plan,
                                                                    const proxy::GateList* former);

  JwtFiles jwt_files_;
  GateTable table_;  // in force
};

}  // namespace sluice::server
