// The bootstrap file of xDS, in gRPC's JSON format (gRFC A27, A53, A65): the servers, and what the process tells of
// itself. A file that gRPC's clients use is taken as it is.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "discovery/options.h"

namespace sluice::config {

inline constexpr size_t kBootstrapBytesMax = 1024 * 1024;

// Keys that are not known are passed over, as gRPC's clients do. kInvalidArgument: all that is wrong, each with its
// place: "xds_servers[0].server_uri: is missing".
base::Result<discovery::XdsBootstrap> ParseXdsBootstrap(std::string_view json);

}  // namespace sluice::config
