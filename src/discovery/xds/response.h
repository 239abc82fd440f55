// XdsResponse: what a message of an ADS stream says: its resources, each of them decoded and checked by itself, so that
// one that is wrong keeps none of the others from being used (gRFC A46). Values; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "discovery/xds/resource.h"

namespace sluice::discovery {

// Of one message; further ones are refused together, with words.
inline constexpr size_t kXdsResourcesMax = 20000;

struct XdsResponse {
  std::optional<XdsType> type;  // unset: none that is understood
  std::string type_url, version, nonce;
  std::vector<XdsResource> resources;
  // Errors of resources whose names are not known.
  std::vector<std::string> errors;
};

// nullopt: the bytes are no DiscoveryResponse. Takes milliseconds for thousands of endpoints.
std::optional<XdsResponse> ParseXdsResponse(std::string_view bytes);

}  // namespace sluice::discovery
