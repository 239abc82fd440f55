// What a start would find wrong with a configuration, without listening and without a file that is made or changed.
#include "base/error.h"
#include "server/certificate_view.h"
#include "server/path_check.h"
#include "server/server.h"
#include "server/state_file.h"

namespace sluice::server {

base::Status Server::Check(const config::Config& config, std::vector<std::string>* notes,
                           std::vector<TlsReloader::Ending>* ending) {
  metrics::Registry registry(1);
  TlsReloader reloader(registry);
  if (config.admin.tls.enabled()) {
    if (auto admin = reloader.AddAdmin(config.admin.tls); !admin) return admin.error();
  }
  if (auto status = CheckStateFile(config.state_file); !status) return status;
  if (!config.log.path.empty()) {
    if (auto status = CanAppend("log", config.log.path); !status) return status;
  }
  if (!config.access_log.path.empty()) {
    if (auto status = CanAppend("access_log", config.access_log.path); !status) return status;
  }
  Clusters clusters(registry, 1);
  config::Config copy = config;
  copy.access_log = {};  // opening would create it, perhaps as root: the daemon could not write it
  if (!config.state_file.empty()) {
    if (auto state = LoadState(config.state_file); !state) {
      if (state.error().kind != base::ErrorKind::kInvalidArgument) return state.error();
      if (notes != nullptr) notes->push_back(state.error().detail + "; a start sets it aside");
      copy.state_file.clear();
    }
  }
  GateSet gate_set(registry, 1, WallSeconds);
  auto gates = gate_set.Prepare(copy);
  if (!gates) return gates.error();
  if (auto status = clusters.Init(copy, {.gates = &gates->table}); !status) return status.error();
  auto tls = reloader.Prepare(copy);
  if (!tls) return tls.error();
  reloader.Commit(std::move(*tls));
  if (ending != nullptr) *ending = reloader.EndingSoon();
  const std::vector<std::string> expired = reloader.Expired();
  if (!expired.empty()) return base::MakeError(base::ErrorKind::kInvalidArgument, expired.front());
  return base::Ok();
}

}  // namespace sluice::server
