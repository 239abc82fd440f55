// The bytes of a request on an ADS stream.
#pragma once

#include <string>

#include "discovery/xds/ads_state.h"
#include "discovery/xds_options.h"

namespace sluice::discovery {

// A DiscoveryRequest.
std::string Serialize(const AdsRequest& request, const XdsNodeOptions& node);

}  // namespace sluice::discovery
