// Options of lists by xDS: which resource a cluster follows, and how the process reaches the control plane. Parsed by
// config (parse_xds.cc, xds_bootstrap.cc); documented in docs/discovery-xds.md.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::discovery {

// What one cluster follows.
struct XdsOptions {
  std::string resource;  // the name of the CDS resource
  // Not configured as such: the sum of weights that the cluster's ring has points for.
  double weights_max = 25000;
  // Nor this: as DiscoveryOptions::ordered.
  bool ordered = false;
  bool operator==(const XdsOptions&) const = default;
};

// Of the bootstrap file: one of `xds_servers`.
struct XdsServerOptions {
  std::string uri;  // host:port, or what else gRPC can resolve
  // Without: plaintext. Names of PEM files; without `ca` the system's authorities are trusted.
  bool tls = false;
  std::string ca, certificate, key;
  // A cluster that the server does not send any more is kept as it was (gRFC A53).
  bool ignore_resource_deletion = false;
  bool operator==(const XdsServerOptions&) const = default;
};

// What the process tells of itself to the control plane.
struct XdsNodeOptions {
  std::string id, cluster, region, zone, sub_zone;
  std::string metadata;  // a google.protobuf.Struct, serialized; equal where the Struct is
  bool operator==(const XdsNodeOptions&) const = default;
};

inline constexpr size_t kXdsServersMax = 8;

// Process-wide. Without servers: there is none.
struct XdsBootstrap {
  std::vector<XdsServerOptions> servers;  // in the order of preference; at most kXdsServersMax
  XdsNodeOptions node;
  bool operator==(const XdsBootstrap&) const = default;
};

}  // namespace sluice::discovery
