// Dump: a configuration as YAML, with every default said, variables replaced and included files joined.
#pragma once

#include <string>

#include "config/config.h"

namespace sluice::config {

struct DumpOptions {
  // Where the process runs: relative names of files are written as below it. Empty: as they are.
  std::string folder;
  // In the place of hash_seed, which is for the fleet alone, and of credentials that `rewrite` sets stand a few bits of
  // its hash: enough to see that it has changed. The result says then what it is and is no configuration to start with.
  bool hide_secrets = false;
};

// Parse gives `config` again. Written from the option tables, in the order of config/reference.yaml; lists of endpoints
// and limits as they are configured, not as an RPC has changed them.
std::string Dump(const Config& config, const DumpOptions& options = {});

}  // namespace sluice::config
