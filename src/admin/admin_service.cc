#include "admin/admin_service.h"

#include <chrono>

#include "admin/audit.h"
#include "admin/caller.h"
#include "admin/convert.h"
#include "admin/status_code.h"
#include "sluice/admin/v1/admin.grpc.pb.h"

namespace sluice::admin {
namespace {

using Context = grpc::ServerContext;

constexpr const char* kReasonMetadata = "sluice-reason";

// `sluice-reason` tells a client that the daemon itself answered, whatever the status is.
// "5f3a9c1e-2-1a7" (proxy/call_id.h).
bool LooksLikeCallId(std::string_view text) {
  size_t dashes = 0;
  for (const char c : text) {
    if (c == '-') ++dashes;
    if (c != '-' && (c < '0' || c > '9') && (c < 'a' || c > 'f')) return false;
  }
  return dashes == 2 && text.size() >= 12 && text[8] == '-' && text.back() != '-' && text[9] != '-';
}

grpc::Status ToStatus(Context& context, const base::Error& error) {
  const std::string_view reason = base::Reason(error.kind);
  context.AddTrailingMetadata(kReasonMetadata, std::string(reason));
  return grpc::Status(static_cast<grpc::StatusCode>(StatusCode(error.kind)), error.detail);
}

int64_t UnixSeconds() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now).count();
}

// How an RPC ended, for the audit: `note` where the status does not tell.
struct Outcome {
  Outcome(grpc::Status status, std::string note = {}) : status(std::move(status)), note(std::move(note)) {}
  std::string Text() const {
    if (!status.ok()) return status.error_message().empty() ? "failed" : status.error_message();
    return note.empty() ? "ok" : note;
  }
  grpc::Status status;
  std::string note;
};

// Every RPC goes through Read or Write, which look whether the caller may.
class AdminService final : public v1::Admin::Service {
 public:
  AdminService(Backend& backend, const Access& access) : backend_(backend), access_(access) {}

  grpc::Status GetServer(Context* context, const v1::GetServerRequest*, v1::GetServerResponse* response) override {
    return Read(*context, "GetServer", [&] {
      ToMessage(backend_.DescribeServer(), *response);
      return grpc::Status::OK;
    });
  }

  grpc::Status ListClusters(Context* context, const v1::ListClustersRequest* request,
                            v1::ListClustersResponse* response) override {
    return Read(*context, "ListClusters", [&] {
      base::Result<std::vector<ClusterView>> clusters = backend_.ListClusters(request->name());
      if (!clusters.ok()) return ToStatus(*context, clusters.error());
      for (const ClusterView& cluster : *clusters) ToMessage(cluster, *response->add_clusters());
      return grpc::Status::OK;
    });
  }

  grpc::Status ChangeEndpoints(Context* context, const v1::ChangeEndpointsRequest* request,
                               v1::ChangeEndpointsResponse* response) override {
    return Write(*context, "ChangeEndpoints", Summary(*request), [&]() -> Outcome {
      base::Result<upstream::EndpointChange> change = ToChange(*request);
      if (!change.ok()) return ToStatus(*context, change.error());
      base::Result<ChangeResult> result = backend_.ChangeEndpoints(*change);
      if (!result.ok()) return ToStatus(*context, result.error());
      ToMessage(*result, *response);
      return {grpc::Status::OK, "version " + std::to_string(result->version)};
    });
  }

  grpc::Status SetEndpointHealth(Context* context, const v1::SetEndpointHealthRequest* request,
                                 v1::SetEndpointHealthResponse*) override {
    return Write(*context, "SetEndpointHealth", Summary(*request), [&]() -> Outcome {
      const base::Result<HealthOrder> order = ToOrder(*request);
      if (!order.ok()) return ToStatus(*context, order.error());
      const base::Status status = backend_.SetEndpointHealth(*order);
      return status.ok() ? grpc::Status::OK : ToStatus(*context, status.error());
    });
  }

  grpc::Status ListLimits(Context* context, const v1::ListLimitsRequest*, v1::ListLimitsResponse* response) override {
    return Read(*context, "ListLimits", [&] {
      for (const LimitView& limit : backend_.ListLimits()) ToMessage(limit, *response->add_limits());
      return grpc::Status::OK;
    });
  }

  grpc::Status ChangeLimit(Context* context, const v1::ChangeLimitRequest* request,
                           v1::ChangeLimitResponse* response) override {
    return Write(*context, "ChangeLimit", Summary(*request), [&]() -> Outcome {
      base::Result<LimitChange> change = ToChange(*request);
      if (!change.ok()) return ToStatus(*context, change.error());
      base::Result<LimitView> limit = backend_.ChangeLimit(*change);
      if (!limit.ok()) return ToStatus(*context, limit.error());
      ToMessage(*limit, *response->mutable_limit());
      return grpc::Status::OK;
    });
  }

  grpc::Status ListFaults(Context* context, const v1::ListFaultsRequest*, v1::ListFaultsResponse* response) override {
    return Read(*context, "ListFaults", [&] {
      for (const FaultView& fault : backend_.ListFaults()) ToMessage(fault, *response->add_faults());
      return grpc::Status::OK;
    });
  }

  grpc::Status AddFault(Context* context, const v1::AddFaultRequest* request, v1::AddFaultResponse* response) override {
    return Write(*context, "AddFault", Summary(*request), [&]() -> Outcome {
      const base::Result<FaultOrder> order = ToOrder(*request);
      if (!order.ok()) return ToStatus(*context, order.error());
      const base::Result<FaultView> fault = backend_.AddFault(*order);
      if (!fault.ok()) return ToStatus(*context, fault.error());
      ToMessage(*fault, *response->mutable_fault());
      return {grpc::Status::OK, "fault " + std::to_string(fault->id)};
    });
  }

  grpc::Status RemoveFault(Context* context, const v1::RemoveFaultRequest* request, v1::RemoveFaultResponse*) override {
    return Write(*context, "RemoveFault", Summary(*request), [&]() -> Outcome {
      const base::Status status = backend_.RemoveFault(request->id());
      return status.ok() ? grpc::Status::OK : ToStatus(*context, status.error());
    });
  }

  grpc::Status ListFailedCalls(Context* context, const v1::ListFailedCallsRequest* request,
                               v1::ListFailedCallsResponse* response) override {
    return Read(*context, "ListFailedCalls", [&] {
      const FailedCallsView view = backend_.ListFailedCalls();
      const std::string& id = request->id();
      // A request id is what a client has sent, and must not stand for the call that another client was told of.
      const bool by_call = LooksLikeCallId(id);
      for (const FailedCallsView::Call& call : view.calls) {
        if (!id.empty() && (by_call ? call.id.ToString() : call.request_id) != id) continue;
        if (request->max() != 0 && static_cast<uint32_t>(response->calls_size()) >= request->max()) break;
        ToMessage(call, *response->add_calls());
      }
      response->set_kept(view.kept);
      response->set_failed(view.failed);
      response->set_left_out(view.left_out);
      response->set_process(view.process);
      return grpc::Status::OK;
    });
  }

  grpc::Status ListHotKeys(Context* context, const v1::ListHotKeysRequest*,
                           v1::ListHotKeysResponse* response) override {
    return Read(*context, "ListHotKeys", [&] {
      for (const HotKeysView& view : backend_.ListHotKeys()) ToMessage(view, *response->add_clusters());
      return grpc::Status::OK;
    });
  }

  grpc::Status ListRoutes(Context* context, const v1::ListRoutesRequest*, v1::ListRoutesResponse* response) override {
    return Read(*context, "ListRoutes", [&] {
      for (const RouteView& view : backend_.ListRoutes()) ToMessage(view, *response->add_routes());
      return grpc::Status::OK;
    });
  }

  grpc::Status GetExplanation(Context* context, const v1::GetExplanationRequest* request,
                              v1::GetExplanationResponse* response) override {
    return Read(*context, "GetExplanation", [&] {
      const base::Result<CallQuestion> question = ToQuestion(*request);
      if (!question.ok()) return ToStatus(*context, question.error());
      const base::Result<CallExplanation> answer = backend_.ExplainCall(*question);
      if (!answer.ok()) return ToStatus(*context, answer.error());
      ToMessage(*answer, *response);
      return grpc::Status::OK;
    });
  }

  grpc::Status GetCache(Context* context, const v1::GetCacheRequest*, v1::GetCacheResponse* response) override {
    return Read(*context, "GetCache", [&] {
      ToMessage(backend_.DescribeCache(), *response);
      return grpc::Status::OK;
    });
  }

  grpc::Status PurgeCache(Context* context, const v1::PurgeCacheRequest* request,
                          v1::PurgeCacheResponse* response) override {
    return Write(*context, "PurgeCache", Summary(*request), [&]() -> Outcome {
      base::Result<proxy::CachePurge> purge = ToPurge(*request);
      if (!purge.ok()) return ToStatus(*context, purge.error());
      const uint64_t dropped = backend_.PurgeCache(*purge);
      response->set_dropped(dropped);
      return {grpc::Status::OK, std::to_string(dropped) + " dropped"};
    });
  }

  grpc::Status ListCertificates(Context* context, const v1::ListCertificatesRequest*,
                                v1::ListCertificatesResponse* response) override {
    return Read(*context, "ListCertificates", [&] {
      for (const CertificateView& view : backend_.ListCertificates()) ToMessage(view, *response->add_certificates());
      return grpc::Status::OK;
    });
  }

  grpc::Status GetXds(Context* context, const v1::GetXdsRequest*, v1::GetXdsResponse* response) override {
    return Read(*context, "GetXds", [&] {
      if (const std::optional<discovery::XdsView> view = backend_.DescribeXds()) ToMessage(*view, *response);
      return grpc::Status::OK;
    });
  }

  grpc::Status Reload(Context* context, const v1::ReloadRequest*, v1::ReloadResponse* response) override {
    return Write(*context, "Reload", "", [&]() -> Outcome {
      const ReloadResult result = backend_.Reload();
      ToMessage(result, *response);
      if (result.errors.empty()) return grpc::Status::OK;
      return {grpc::Status::OK, std::to_string(result.errors.size()) + " errors, nothing changed"};
    });
  }

  grpc::Status GetConfig(Context* context, const v1::GetConfigRequest* request,
                         v1::GetConfigResponse* response) override {
    return Read(*context, "GetConfig", [&] {
      const ConfigView view = backend_.DescribeConfig(request->from_file());
      if (view.yaml.size() > kConfigBytesMax) {
        return ToStatus(*context, base::MakeError(base::ErrorKind::kTooLarge,
                                                  "the configuration is larger than 60 MiB as it would be written"));
      }
      ToMessage(view, *response);
      return grpc::Status::OK;
    });
  }

  grpc::Status GetMetrics(Context* context, const v1::GetMetricsRequest*, v1::GetMetricsResponse* response) override {
    return Read(*context, "GetMetrics", [&] {
      response->set_text(backend_.RenderMetrics());
      return grpc::Status::OK;
    });
  }

  grpc::Status SetLogLevel(Context* context, const v1::SetLogLevelRequest* request, v1::SetLogLevelResponse*) override {
    return Write(*context, "SetLogLevel", request->level(), [&]() -> Outcome {
      // The new level may be one that hides the line at the end.
      LogAudit(Identify(*context, access_.locals()), "SetLogLevel", request->level(), "asked", false);
      base::Status status = backend_.SetLogLevel(request->level());
      return status.ok() ? grpc::Status::OK : ToStatus(*context, status.error());
    });
  }

  grpc::Status GetLogLevel(Context* context, const v1::GetLogLevelRequest*,
                           v1::GetLogLevelResponse* response) override {
    return Read(*context, "GetLogLevel", [&] {
      response->set_level(backend_.LogLevel());
      return grpc::Status::OK;
    });
  }

  grpc::Status Drain(Context* context, const v1::DrainRequest* request, v1::DrainResponse*) override {
    return Write(*context, "Drain", Summary(*request), [&]() -> Outcome {
      // A day is longer than any drain; more would only overflow somewhere.
      constexpr uint64_t kDrainMsMax = 24ull * 3600 * 1000;
      for (const auto& [name, ms] :
           {std::pair("timeout_ms", request->timeout_ms()), {"delay_ms", request->delay_ms()}}) {
        if (ms <= kDrainMsMax) continue;
        return ToStatus(*context, base::MakeError(base::ErrorKind::kInvalidArgument,
                                                  std::string(name) + ": must be at most a day (86400000)"));
      }
      std::optional<std::chrono::milliseconds> timeout, delay;
      if (request->has_timeout_ms()) timeout = std::chrono::milliseconds(request->timeout_ms());
      if (request->has_delay_ms()) delay = std::chrono::milliseconds(request->delay_ms());
      if (auto begun = backend_.Drain(timeout, delay); !begun.ok()) return ToStatus(*context, begun.error());
      return grpc::Status::OK;
    });
  }

  grpc::Status ListProcesses(Context* context, const v1::ListProcessesRequest*,
                             v1::ListProcessesResponse* response) override {
    return Read(*context, "ListProcesses", [&] {
      for (const ProcessView& view : backend_.ListProcesses()) ToMessage(view, *response->add_processes());
      return grpc::Status::OK;
    });
  }

  grpc::Status Upgrade(Context* context, const v1::UpgradeRequest* request, v1::UpgradeResponse* response) override {
    return Write(*context, "Upgrade", request->only_if_changed() ? "only if changed" : "", [&]() -> Outcome {
      base::Result<UpgradeResult> result = backend_.Upgrade(request->only_if_changed());
      if (!result.ok()) return ToStatus(*context, result.error());
      response->set_replaced(result->replaced);
      response->set_pid(result->pid);
      response->set_generation(result->generation);
      response->set_version(result->version);
      return {grpc::Status::OK, result->replaced ? "by process " + std::to_string(result->pid) : "the same file"};
    });
  }

  grpc::Status Stop(Context* context, const v1::StopRequest*, v1::StopResponse*) override {
    return Write(*context, "Stop", "", [&]() -> Outcome {
      backend_.Stop();
      return grpc::Status::OK;
    });
  }

 private:
  // The status of a refusal, after its line in the audit; nullopt: go on.
  std::optional<grpc::Status> Refuse(Context& context, const Caller& caller, std::string_view method,
                                     std::string_view what) {
    const std::optional<std::string> refusal = access_.Refusal(caller, method, UnixSeconds());
    if (!refusal) return std::nullopt;
    LogAudit(caller, method, what, "refused: " + *refusal, true);
    context.AddTrailingMetadata(kReasonMetadata, "permission_denied");
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, AuditText(*refusal));
  }

  template <typename Fn>
  grpc::Status Read(Context& context, std::string_view method, Fn&& fn) {
    if (auto refused = Refuse(context, Identify(context, access_.locals()), method, "")) return *refused;
    return fn();
  }

  // `what`: the request in a few words.
  template <typename Fn>
  grpc::Status Write(Context& context, std::string_view method, const std::string& what, Fn&& fn) {
    const Caller caller = Identify(context, access_.locals());
    if (auto refused = Refuse(context, caller, method, what)) return *refused;
    // What ends or replaces the process is no change that a process which takes over could lose.
    base::Result<std::shared_ptr<const void>> change = std::shared_ptr<const void>();
    if (method != "Drain" && method != "Stop" && method != "Upgrade") change = backend_.BeginChange();
    const Outcome outcome = change.ok() ? Outcome(fn()) : Outcome(ToStatus(context, change.error()));
    LogAudit(caller, method, what, outcome.Text(), false);
    return outcome.status;
  }

  Backend& backend_;
  const Access& access_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdminService(Backend& backend, const Access& access) {
  return std::make_unique<AdminService>(backend, access);
}

}  // namespace sluice::admin
