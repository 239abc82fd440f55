// Messages of xDS as a control plane writes them, and their bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "discovery/xds/resource.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"

namespace sluice::test {

using XdsCluster = envoy::config::cluster::v3::Cluster;
using XdsAssignment = envoy::config::endpoint::v3::ClusterLoadAssignment;
using XdsLocality = envoy::config::endpoint::v3::LocalityLbEndpoints;
using XdsEndpoint = envoy::config::endpoint::v3::LbEndpoint;
using google::protobuf::Any;

inline const std::string kClusterUrl(discovery::kXdsTypeUrls[0]);
inline const std::string kEndpointsUrl(discovery::kXdsTypeUrls[1]);

// `service`: of its endpoints; empty: its own name.
inline XdsCluster EdsCluster(const std::string& name, const std::string& service = "") {
  XdsCluster cluster;
  cluster.set_name(name);
  cluster.set_type(XdsCluster::EDS);
  cluster.mutable_eds_cluster_config()->mutable_eds_config()->mutable_ads();
  cluster.mutable_eds_cluster_config()->set_service_name(service);
  return cluster;
}

inline XdsEndpoint* AddEndpoint(XdsLocality* locality, const std::string& address, uint32_t weight = 0) {
  const size_t colon = address.rfind(':');
  XdsEndpoint* endpoint = locality->add_lb_endpoints();
  auto* socket = endpoint->mutable_endpoint()->mutable_address()->mutable_socket_address();
  socket->set_address(address.substr(0, colon));
  socket->set_port_value(static_cast<uint32_t>(std::stoul(address.substr(colon + 1))));
  if (weight > 0) endpoint->mutable_load_balancing_weight()->set_value(weight);
  return endpoint;
}

inline XdsLocality* AddLocality(XdsAssignment* assignment, uint32_t priority = 0, uint32_t weight = 1,
                                const std::string& region = "r") {
  XdsLocality* locality = assignment->add_endpoints();
  locality->mutable_locality()->set_region(region);
  locality->set_priority(priority);
  if (weight > 0) locality->mutable_load_balancing_weight()->set_value(weight);
  return locality;
}

// All in one locality.
inline XdsAssignment Assignment(const std::string& name, const std::vector<std::string>& addresses) {
  XdsAssignment assignment;
  assignment.set_cluster_name(name);
  XdsLocality* locality = AddLocality(&assignment);
  for (const std::string& address : addresses) AddEndpoint(locality, address);
  return assignment;
}

template <typename Message>
Any Packed(const Message& message) {
  Any any;
  any.PackFrom(message);
  return any;
}

inline Any Garbage(const std::string& url) {
  Any any;
  any.set_type_url(url);
  any.set_value("\xff\xff\xff");
  return any;
}

inline std::string ResponseBytes(const std::string& url, const std::string& version, const std::string& nonce,
                                 const std::vector<Any>& resources) {
  envoy::service::discovery::v3::DiscoveryResponse response;
  response.set_type_url(url);
  response.set_version_info(version);
  response.set_nonce(nonce);
  for (const Any& resource : resources) *response.add_resources() = resource;
  return response.SerializeAsString();
}

}  // namespace sluice::test
