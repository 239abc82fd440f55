#include "discovery/xds/response.h"

#include <unordered_set>
#include <utility>

#include "discovery/xds/assignment.h"
#include "envoy/config/cluster/v3/cluster.pb.h"
#include "envoy/config/endpoint/v3/endpoint.pb.h"
#include "envoy/service/discovery/v3/discovery.pb.h"

namespace sluice::discovery {
namespace {

using envoy::config::cluster::v3::Cluster;
using envoy::config::endpoint::v3::ClusterLoadAssignment;
using google::protobuf::Any;

constexpr std::string_view kWrapperUrl = "type.googleapis.com/envoy.service.discovery.v3.Resource";

// As of gRFC A27: only clusters whose endpoints come over the same stream. What else stands in one (policy, TLS,
// detection of outliers) is the configuration's.
void ReadCluster(const Cluster& cluster, XdsResource* out) {
  if (cluster.cluster_discovery_type_case() == Cluster::kClusterType) {
    out->error = "cluster_type: " + ShownText(cluster.cluster_type().name()) + "; allowed: type EDS";
  } else if (cluster.type() != Cluster::EDS) {
    const std::string& name = Cluster::DiscoveryType_Name(cluster.type());
    out->error = "type: " + (name.empty() ? std::to_string(cluster.type()) : name) + "; allowed: EDS";
  } else if (!cluster.eds_cluster_config().has_eds_config()) {
    out->error = "eds_cluster_config.eds_config: is missing; allowed: ads, self";
  } else if (!cluster.eds_cluster_config().eds_config().has_ads() &&
             !cluster.eds_cluster_config().eds_config().has_self()) {
    out->error = "eds_cluster_config.eds_config: names another place than this stream; allowed: ads, self";
  } else if (cluster.eds_cluster_config().service_name().size() > kXdsNameBytesMax) {
    out->error =
        "eds_cluster_config.service_name: " + std::to_string(cluster.eds_cluster_config().service_name().size()) +
        " bytes; at most " + std::to_string(kXdsNameBytesMax) + " are allowed";
  } else if (cluster.eds_cluster_config().service_name().empty() && cluster.name().rfind("xdstp:", 0) == 0) {
    out->error = "eds_cluster_config.service_name: is missing; a cluster with an xdstp name needs it (gRFC A47)";
  } else {
    const std::string& service = cluster.eds_cluster_config().service_name();
    out->eds_name = service.empty() ? cluster.name() : service;
  }
}

// The name as far as it is known, or why not.
struct Opened {
  std::string name;
  std::string error;
};

Opened OpenResource(const Any& any, XdsType type, XdsResource* out) {
  const std::string_view wanted = kXdsTypeUrls[static_cast<size_t>(type)];
  if (any.type_url() != wanted)
    return {{}, "has the type " + ShownText(any.type_url()) + "; allowed: " + std::string(wanted)};
  out->bytes = std::make_shared<const std::string>(any.value());
  constexpr const char* kUnreadable = "cannot be decoded as what its type says";
  if (type == XdsType::kCluster) {
    Cluster cluster;
    if (!cluster.ParseFromString(any.value())) return {{}, kUnreadable};
    ReadCluster(cluster, out);
    return {cluster.name(), {}};
  }
  ClusterLoadAssignment assignment;
  if (!assignment.ParseFromString(any.value())) return {{}, kUnreadable};
  ReadAssignment(assignment, out);
  return {assignment.cluster_name(), {}};
}

// A resource with its name around it keeps that name whatever is in it.
void ReadResource(const Any& any, size_t index, XdsResponse* response, std::unordered_set<std::string>* names) {
  XdsResource resource;
  Opened opened;
  if (any.type_url() == kWrapperUrl) {
    envoy::service::discovery::v3::Resource wrapper;
    if (wrapper.ParseFromString(any.value())) {
      opened = OpenResource(wrapper.resource(), *response->type, &resource);
      if (!wrapper.name().empty()) opened.name = wrapper.name();
    } else {
      opened.error = "cannot be decoded as what its type says";
    }
  } else {
    opened = OpenResource(any, *response->type, &resource);
  }
  if (!opened.error.empty()) resource.error = std::move(opened.error);
  if (opened.name.empty() && resource.error.empty()) resource.error = "has no name";
  if (opened.name.size() > kXdsNameBytesMax) {
    resource.error = "has a name of " + std::to_string(opened.name.size()) + " bytes; at most " +
                     std::to_string(kXdsNameBytesMax) + " are allowed";
    opened.name.clear();
  }
  const std::string place = "resources[" + std::to_string(index) + "]";
  if (opened.name.empty()) {
    response->errors.push_back(place + ": " + resource.error);
  } else if (!names->insert(opened.name).second) {
    response->errors.push_back(place + ": the name " + ShownText(opened.name) + " is there twice");
  } else {
    resource.name = std::move(opened.name);
    response->resources.push_back(std::move(resource));
  }
}

}  // namespace

std::optional<XdsResponse> ParseXdsResponse(std::string_view bytes) {
  envoy::service::discovery::v3::DiscoveryResponse message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return std::nullopt;
  XdsResponse response;
  response.type_url = message.type_url();
  response.version = message.version_info();
  response.nonce = message.nonce();
  for (size_t i = 0; i < kXdsTypes; ++i) {
    if (message.type_url() == kXdsTypeUrls[i]) response.type = static_cast<XdsType>(i);
  }
  if (!response.type) return response;
  const auto count = static_cast<size_t>(message.resources_size());
  if (count > kXdsResourcesMax) {
    response.errors.push_back("resources: " + std::to_string(count) + "; at most " + std::to_string(kXdsResourcesMax) +
                              " are allowed");
    return response;
  }
  std::unordered_set<std::string> names;
  for (size_t i = 0; i < count; ++i) ReadResource(message.resources(static_cast<int>(i)), i, &response, &names);
  return response;
}

}  // namespace sluice::discovery
