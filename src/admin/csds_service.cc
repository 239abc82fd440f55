#include "admin/csds_service.h"

#include <chrono>

#include "admin/audit.h"
#include "admin/caller.h"
#include "envoy/service/status/v3/csds.grpc.pb.h"

namespace sluice::admin {
namespace {

namespace csds = envoy::service::status::v3;
using envoy::admin::v3::ClientResourceStatus;

// The RPC of the admin service that tells the same, whose role is needed.
constexpr std::string_view kAlike = "GetXds";

base::Nanos SinceEpoch() { return std::chrono::system_clock::now().time_since_epoch(); }

ClientResourceStatus StatusOf(discovery::XdsResourceState state) {
  switch (state) {
    case discovery::XdsResourceState::kRequested:
      return ClientResourceStatus::REQUESTED;
    case discovery::XdsResourceState::kDoesNotExist:
      return ClientResourceStatus::DOES_NOT_EXIST;
    case discovery::XdsResourceState::kAcked:
      return ClientResourceStatus::ACKED;
    case discovery::XdsResourceState::kNacked:
      return ClientResourceStatus::NACKED;
  }
  return ClientResourceStatus::UNKNOWN;
}

void SetTime(base::Nanos since_epoch, google::protobuf::Timestamp* out) {
  out->set_seconds(since_epoch.count() / 1'000'000'000);
  out->set_nanos(static_cast<int32_t>(since_epoch.count() % 1'000'000'000));
}

void ToMessage(const discovery::XdsView& view, bool with_contents, csds::ClientConfig* out) {
  const base::Nanos now = SinceEpoch();
  out->mutable_node()->set_id(view.node.id);
  out->mutable_node()->set_cluster(view.node.cluster);
  out->mutable_node()->mutable_locality()->set_region(view.node.region);
  out->mutable_node()->mutable_locality()->set_zone(view.node.zone);
  out->mutable_node()->mutable_locality()->set_sub_zone(view.node.sub_zone);
  if (!view.node.metadata.empty()) (void)out->mutable_node()->mutable_metadata()->ParseFromString(view.node.metadata);
  out->mutable_node()->set_user_agent_name("sluice");
  for (const discovery::XdsResourceView& resource : view.resources) {
    auto& config = *out->add_generic_xds_configs();
    config.set_type_url(resource.type_url);
    config.set_name(resource.name);
    config.set_version_info(resource.version);
    config.set_client_status(StatusOf(resource.state));
    if (resource.updated_ago) SetTime(now - *resource.updated_ago, config.mutable_last_updated());
    if (with_contents && resource.bytes != nullptr) {
      config.mutable_xds_config()->set_type_url(resource.type_url);
      config.mutable_xds_config()->set_value(*resource.bytes);
    }
    if (!resource.refused_ago) continue;
    config.mutable_error_state()->set_details(resource.error);
    config.mutable_error_state()->set_version_info(resource.refused);
    SetTime(now - *resource.refused_ago, config.mutable_error_state()->mutable_last_update_attempt());
  }
}

class CsdsService final : public csds::ClientStatusDiscoveryService::Service {
 public:
  CsdsService(Backend& backend, const Access& access) : backend_(backend), access_(access) {}

  grpc::Status FetchClientStatus(grpc::ServerContext* context, const csds::ClientStatusRequest* request,
                                 csds::ClientStatusResponse* response) override {
    return Answer(*context, *request, response);
  }

  grpc::Status StreamClientStatus(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<csds::ClientStatusResponse, csds::ClientStatusRequest>* stream) override {
    csds::ClientStatusRequest request;
    while (stream->Read(&request)) {
      csds::ClientStatusResponse response;
      if (grpc::Status status = Answer(*context, request, &response); !status.ok()) return status;
      if (!stream->Write(response)) break;
    }
    return grpc::Status::OK;
  }

 private:
  grpc::Status Answer(grpc::ServerContext& context, const csds::ClientStatusRequest& request,
                      csds::ClientStatusResponse* response) {
    const Caller caller = Identify(context, access_.locals());
    const int64_t now = std::chrono::duration_cast<std::chrono::seconds>(SinceEpoch()).count();
    if (const auto refusal = access_.Refusal(caller, kAlike, now)) {
      LogAudit(caller, "ClientStatus", "", "refused: " + *refusal, true);
      return {grpc::StatusCode::PERMISSION_DENIED, AuditText(*refusal)};
    }
    if (const auto view = backend_.DescribeXds())
      ToMessage(*view, !request.exclude_resource_contents(), response->add_config());
    return grpc::Status::OK;
  }

  Backend& backend_;
  const Access& access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCsdsService(Backend& backend, const Access& access) {
  return std::make_unique<CsdsService>(backend, access);
}

}  // namespace sluice::admin
