// Where an xDS server is, with the texts of its TLS files.
#pragma once

#include "base/error.h"
#include "discovery/rpc/rpc_channel.h"
#include "discovery/xds_options.h"

namespace sluice::discovery {

// Blocks. kIo: a file cannot be read, or is larger than a certificate may be.
base::Result<RpcTarget> LoadTarget(const XdsServerOptions& server);

}  // namespace sluice::discovery
