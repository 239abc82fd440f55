// Operator: what a person at the admin RPC of a proxy would look at and do, in one line each. Failures fail the test.
//
// Thread safety: as gRPC's stub, any thread.
#pragma once

#include <string>

#include "support/process.h"
#include "support/proxy.h"

namespace sluice::integration {

class Operator {
 public:
  explicit Operator(Proxy& proxy) : proxy_(proxy) {}

  // "cluster/echo/rate"; the route of ProxyConfig is "route/main/..." if the test names it so.
  admin::v1::Limit Limit(const std::string& name);
  uint64_t Waiting(const std::string& limit) { return Limit(limit).waiting(); }
  uint64_t InUse(const std::string& limit) { return Limit(limit).in_use(); }
  // No call waits at any limit, and nothing is in use: not a permit and not a token is lost.
  bool AllGivenBack();
  // ListLimits, for a failed assertion.
  std::string Limits();
  void SetRate(const std::string& name, double rate, uint32_t burst);
  void SetMax(const std::string& name, uint32_t max);
  void Reset(const std::string& name);

  admin::v1::GetCacheResponse Cache();
  // How often responses were not cached for that reason.
  uint64_t NotCached(const std::string& reason);
  uint64_t Purge(const std::string& service = "", const std::string& method = "");

  uint64_t CallsInFlight();
  // The file as it is now. The errors, none if all is well.
  std::vector<std::string> Reload();
  // Rewrites the file and reloads; fails the test on an error.
  void ReloadWith(const ProxyConfig& config);
  // sluicectl against this proxy.
  Finished Ctl(std::vector<std::string> arguments);

 private:
  admin::v1::Limit Change(const admin::v1::ChangeLimitRequest& request);
  Proxy& proxy_;
};

}  // namespace sluice::integration
