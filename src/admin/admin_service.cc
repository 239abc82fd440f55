#include "admin/admin_service.h"

#include <limits>

#include "admin/convert.h"
#include "admin/status_code.h"
#include "sluice/admin/v1/admin.grpc.pb.h"

namespace sluice::admin {
namespace {

using Context = grpc::ServerContext;

constexpr const char* kReasonMetadata = "sluice-reason";

// `sluice-reason` tells a client that the daemon itself answered, whatever the status is.
grpc::Status ToStatus(Context& context, const base::Error& error) {
  const std::string_view reason = base::Reason(error.kind);
  context.AddTrailingMetadata(kReasonMetadata, std::string(reason));
  return grpc::Status(static_cast<grpc::StatusCode>(StatusCode(error.kind)), error.detail);
}

class AdminService final : public v1::Admin::Service {
 public:
  explicit AdminService(Backend& backend) : backend_(backend) {}

  grpc::Status GetServer(Context*, const v1::GetServerRequest*, v1::GetServerResponse* response) override {
    ToMessage(backend_.DescribeServer(), *response);
    return grpc::Status::OK;
  }

  grpc::Status ListClusters(Context* context, const v1::ListClustersRequest* request,
                            v1::ListClustersResponse* response) override {
    base::Result<std::vector<ClusterView>> clusters = backend_.ListClusters(request->name());
    if (!clusters.ok()) return ToStatus(*context, clusters.error());
    for (const ClusterView& cluster : *clusters) ToMessage(cluster, *response->add_clusters());
    return grpc::Status::OK;
  }

  grpc::Status ChangeEndpoints(Context* context, const v1::ChangeEndpointsRequest* request,
                               v1::ChangeEndpointsResponse* response) override {
    base::Result<EndpointChange> change = ToChange(*request);
    if (!change.ok()) return ToStatus(*context, change.error());
    base::Result<ChangeResult> result = backend_.ChangeEndpoints(*change);
    if (!result.ok()) return ToStatus(*context, result.error());
    ToMessage(*result, *response);
    return grpc::Status::OK;
  }

  grpc::Status ListLimits(Context*, const v1::ListLimitsRequest*, v1::ListLimitsResponse* response) override {
    for (const LimitView& limit : backend_.ListLimits()) ToMessage(limit, *response->add_limits());
    return grpc::Status::OK;
  }

  grpc::Status ChangeLimit(Context* context, const v1::ChangeLimitRequest* request,
                           v1::ChangeLimitResponse* response) override {
    base::Result<LimitChange> change = ToChange(*request);
    if (!change.ok()) return ToStatus(*context, change.error());
    base::Result<LimitView> limit = backend_.ChangeLimit(*change);
    if (!limit.ok()) return ToStatus(*context, limit.error());
    ToMessage(*limit, *response->mutable_limit());
    return grpc::Status::OK;
  }

  grpc::Status GetCache(Context*, const v1::GetCacheRequest*, v1::GetCacheResponse* response) override {
    ToMessage(backend_.DescribeCache(), *response);
    return grpc::Status::OK;
  }

  grpc::Status PurgeCache(Context* context, const v1::PurgeCacheRequest* request,
                          v1::PurgeCacheResponse* response) override {
    base::Result<CachePurgeRequest> purge = ToPurge(*request);
    if (!purge.ok()) return ToStatus(*context, purge.error());
    base::Result<uint64_t> dropped = backend_.PurgeCache(*purge);
    if (!dropped.ok()) return ToStatus(*context, dropped.error());
    response->set_dropped(*dropped);
    return grpc::Status::OK;
  }

  grpc::Status ListCertificates(Context*, const v1::ListCertificatesRequest*,
                                v1::ListCertificatesResponse* response) override {
    for (const CertificateView& view : backend_.ListCertificates()) ToMessage(view, *response->add_certificates());
    return grpc::Status::OK;
  }

  grpc::Status Reload(Context*, const v1::ReloadRequest*, v1::ReloadResponse* response) override {
    ToMessage(backend_.Reload(), *response);
    return grpc::Status::OK;
  }

  grpc::Status GetMetrics(Context*, const v1::GetMetricsRequest*, v1::GetMetricsResponse* response) override {
    response->set_text(backend_.RenderMetrics());
    return grpc::Status::OK;
  }

  grpc::Status SetLogLevel(Context* context, const v1::SetLogLevelRequest* request,
                           v1::SetLogLevelResponse*) override {
    base::Status status = backend_.SetLogLevel(request->level());
    return status.ok() ? grpc::Status::OK : ToStatus(*context, status.error());
  }

  grpc::Status GetLogLevel(Context*, const v1::GetLogLevelRequest*,
                           v1::GetLogLevelResponse* response) override {
    response->set_level(backend_.LogLevel());
    return grpc::Status::OK;
  }

  grpc::Status Drain(Context* context, const v1::DrainRequest* request, v1::DrainResponse*) override {
    std::optional<std::chrono::milliseconds> timeout;
    if (request->has_timeout_ms()) {
      // A day is longer than any drain; more would only overflow somewhere.
      constexpr uint64_t kTimeoutMsMax = 24ull * 3600 * 1000;
      if (request->timeout_ms() > kTimeoutMsMax) {
        return ToStatus(*context, base::MakeError(base::ErrorKind::kInvalidArgument,
                                                  "timeout_ms: must be at most a day (86400000)"));
      }
      timeout = std::chrono::milliseconds(request->timeout_ms());
    }
    backend_.Drain(timeout);
    return grpc::Status::OK;
  }

  grpc::Status Stop(Context*, const v1::StopRequest*, v1::StopResponse*) override {
    backend_.Stop();
    return grpc::Status::OK;
  }

 private:
  Backend& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(Backend& backend) {
  return std::make_unique<AdminService>(backend);
}

}  // namespace sluice::admin
