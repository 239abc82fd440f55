// XdsResource: one resource of an xDS server, decoded and checked. A value; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "discovery/list.h"

namespace sluice::discovery {

// The kinds of resources that are understood.
enum class XdsType : uint8_t { kCluster, kEndpoints };
inline constexpr size_t kXdsTypes = 2;
inline constexpr std::array<std::string_view, kXdsTypes> kXdsTypeUrls = {
    "type.googleapis.com/envoy.config.cluster.v3.Cluster",
    "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"};

// Of a resource's name.
inline constexpr size_t kXdsNameBytesMax = 4096;

struct XdsResource {
  std::string name;
  // Why it is refused, with the place in it: "endpoints[0].priority: 9; allowed: [0, 7]". Empty: it is not.
  std::string error;
  // What is accepted and still worth to be told.
  std::string note;
  std::shared_ptr<const std::string> bytes;  // as it was sent, without its type
  std::string eds_name;                      // of a cluster: the resource with its endpoints
  std::shared_ptr<const List> list;          // of endpoints; in the order in which it was sent
};

// A piece of a server's text for a message: bounded, in quotes, without control characters.
std::string ShownText(std::string_view text);

}  // namespace sluice::discovery
