#include "discovery/xds/ads_request.h"

#include "envoy/service/discovery/v3/discovery.pb.h"

namespace sluice::discovery {

std::string Serialize(const AdsRequest& request, const XdsNodeOptions& node) {
  envoy::service::discovery::v3::DiscoveryRequest message;
  message.set_version_info(request.version);
  message.set_type_url(std::string(kXdsTypeUrls[static_cast<size_t>(request.type)]));
  message.set_response_nonce(request.nonce);
  for (const std::string& name : request.names) message.add_resource_names(name);
  if (!request.error.empty()) {
    constexpr int kInvalidArgument = 3;  // of gRPC
    message.mutable_error_detail()->set_code(kInvalidArgument);
    message.mutable_error_detail()->set_message(request.error);
  }
  if (request.with_node) {
    auto& out = *message.mutable_node();
    out.set_id(node.id);
    out.set_cluster(node.cluster);
    if (!node.region.empty() || !node.zone.empty() || !node.sub_zone.empty()) {
      out.mutable_locality()->set_region(node.region);
      out.mutable_locality()->set_zone(node.zone);
      out.mutable_locality()->set_sub_zone(node.sub_zone);
    }
    if (!node.metadata.empty()) (void)out.mutable_metadata()->ParseFromString(node.metadata);
    out.set_user_agent_name("sluice");
    out.add_client_features("envoy.lb.does_not_support_overprovisioning");
    out.add_client_features("xds.config.resource-in-sotw");
  }
  return message.SerializeAsString();
}

}  // namespace sluice::discovery
