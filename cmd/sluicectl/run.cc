#include "sluicectl/run.h"

#include <grpcpp/grpcpp.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>

#include "sluice/admin/v1/admin.grpc.pb.h"
#include "sluicectl/channel.h"
#include "sluicectl/config_diff.h"
#include "sluicectl/print.h"
#include "sluicectl/requests.h"
#include "sluicectl/routes.h"
#include "sluicectl/top.h"
#include "sluicectl/upgrade.h"
#include "sluicectl/wait_ready.h"
#include "sluicectl/why.h"

namespace sluice::ctl {
namespace {

namespace v1 = admin::v1;

constexpr double kAllKeys = 0.9999;  // a share of the keys; sums of shares are not exact
constexpr uint32_t kFailedCallsShown = 20;
constexpr size_t kKeyBytesMax = 1 << 20;  // above it the daemon takes no request (and caches none)

int Write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return kDone;
  std::fprintf(stderr, "sluicectl: cannot write to standard output\n");
  return kRefused;
}

class Session {
 public:
  Session(const Args& args, std::shared_ptr<grpc::Channel> channel)
      : args_(args), channel_(std::move(channel)), stub_(v1::Admin::NewStub(channel_)) {}

  int Run() {
    switch (args_.command) {
      case Command::kStatus:
        return Call(&v1::Admin::Stub::GetServer, v1::GetServerRequest(), [](const auto& r) { return Print(r); });
      case Command::kWaitReady:
        return WaitReady(args_, channel_);
      case Command::kClusters: {
        v1::ListClustersRequest request;
        request.set_name(args_.cluster);
        return Call(&v1::Admin::Stub::ListClusters, request, [](const auto& r) { return Print(r); });
      }
      case Command::kEndpoints: {
        v1::ListClustersRequest request;
        request.set_name(args_.cluster);
        return Call(&v1::Admin::Stub::ListClusters, request, [this](const v1::ListClustersResponse& response) {
          if (response.clusters().empty()) return std::string();
          return args_.why ? PrintHealth(response.clusters(0)) : PrintEndpoints(response.clusters(0));
        });
      }
      case Command::kEject:
      case Command::kRestore:
      case Command::kResetBackoff:
        return Call(&v1::Admin::Stub::SetEndpointHealth, MakeHealthOrder(args_), [this](const auto&) {
          return args_.endpoints[0].name + (args_.command == Command::kEject ? " is ejected\n"
                                            : args_.command == Command::kRestore
                                                ? " is restored\n"
                                                : " is probed at once where it is ejected\n");
        });
      case Command::kLimits:
        return Call(&v1::Admin::Stub::ListLimits, v1::ListLimitsRequest(), [](const auto& r) { return Print(r); });
      case Command::kLimitSet:
      case Command::kLimitReset:
        return Call(&v1::Admin::Stub::ChangeLimit, MakeLimitChange(args_),
                    [](const auto& r) { return Print(r.limit()); });
      case Command::kFaultAdd:
        return Call(&v1::Admin::Stub::AddFault, MakeFault(args_), [](const auto& r) { return Print(r.fault()); });
      case Command::kFaultList:
        return Call(&v1::Admin::Stub::ListFaults, v1::ListFaultsRequest(), [](const auto& r) { return Print(r); });
      case Command::kFaultRemove: {
        v1::RemoveFaultRequest request;
        request.set_id(args_.fault.id);
        return Call(&v1::Admin::Stub::RemoveFault, request, [](const auto&) { return "removed\n"; });
      }
      case Command::kCacheStats:
        return Call(&v1::Admin::Stub::GetCache, v1::GetCacheRequest(), [](const auto& r) { return Print(r); });
      case Command::kCachePurge:
        return Purge();
      case Command::kCerts:
        return Call(&v1::Admin::Stub::ListCertificates, v1::ListCertificatesRequest(),
                    [](const auto& r) { return Print(r); });
      case Command::kXds:
        return Call(&v1::Admin::Stub::GetXds, v1::GetXdsRequest(), [](const auto& r) { return Print(r); });
      case Command::kWhy:
        return Why();
      case Command::kRoutes:
        return Call(&v1::Admin::Stub::ListRoutes, v1::ListRoutesRequest(), PrintRoutes);
      case Command::kExplain:
        return Call(&v1::Admin::Stub::GetExplanation, MakeQuestion(args_), PrintExplanation);
      case Command::kTop:
        return RunTop(args_, *stub_, explain_);
      case Command::kProcesses:
        return Call(&v1::Admin::Stub::ListProcesses, v1::ListProcessesRequest(), PrintProcesses);
      case Command::kUpgrade: {
        bool same = false;
        const int code = RunUpgrade(args_, *stub_, explain_, &same);
        return code == kDone && same ? Reload() : code;
      }
      case Command::kMetrics:
        return Call(&v1::Admin::Stub::GetMetrics, v1::GetMetricsRequest(), [](const auto& r) { return r.text(); });
      case Command::kConfigDump:
        return AskConfig(args_.from_file, &answer_, true);
      case Command::kConfigDiff:
        return ConfigDiff();
      case Command::kReload:
        return Reload();
      case Command::kLogLevel:
        return LogLevel();
      case Command::kDrain: {
        v1::DrainRequest request;
        if (args_.drain_timeout) request.set_timeout_ms(static_cast<uint64_t>(args_.drain_timeout->count()));
        if (args_.drain_delay) request.set_delay_ms(static_cast<uint64_t>(args_.drain_delay->count()));
        return Call(&v1::Admin::Stub::Drain, request, [](const auto&) { return "draining\n"; });
      }
      case Command::kCompleteCluster:
        return Call(&v1::Admin::Stub::ListClusters, v1::ListClustersRequest(),
                    [this](const auto& r) { return Candidates(r.clusters()); });
      case Command::kCompleteEndpoint: {
        v1::ListClustersRequest request;
        request.set_name(args_.cluster);
        return Call(&v1::Admin::Stub::ListClusters, request, [this](const v1::ListClustersResponse& r) {
          return r.clusters().empty() ? std::string() : Candidates(r.clusters(0).endpoints());
        });
      }
      case Command::kCompleteLimit:
        return Call(&v1::Admin::Stub::ListLimits, v1::ListLimitsRequest(),
                    [this](const auto& r) { return Candidates(r.limits()); });
      case Command::kCompleteRoute:
        return Call(&v1::Admin::Stub::ListRoutes, v1::ListRoutesRequest(),
                    [this](const auto& r) { return Candidates(r.routes()); });
      case Command::kCompleteFault:
        return Call(&v1::Admin::Stub::ListFaults, v1::ListFaultsRequest(), [this](const v1::ListFaultsResponse& r) {
          std::string lines;
          for (const v1::Fault& fault : r.faults()) {
            if (const std::string id = std::to_string(fault.id()); id.starts_with(args_.word)) lines += id + "\n";
          }
          return lines;
        });
      case Command::kStop:
        return Call(&v1::Admin::Stub::Stop, v1::StopRequest(), [](const auto&) { return "stopping\n"; });
      default:
        if (TakesAllAway()) return kRefused;
        return Call(&v1::Admin::Stub::ChangeEndpoints, MakeChange(args_),
                    [this](const auto& r) { return Print(r, args_.cluster, args_.preview); });
    }
  }

 private:
  // Whether every key would lose its endpoint, as where the last one goes: most likely a slip, so it is told and not
  // done without --force. What the preview fails for, the change will say.
  bool TakesAllAway() {
    const bool takes = args_.command == Command::kRemove || args_.command == Command::kDrainEndpoint;
    if (!takes || args_.force || args_.preview) return false;
    v1::ChangeEndpointsRequest request = MakeChange(args_);
    request.set_preview(true);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + args_.timeout);
    v1::ChangeEndpointsResponse response;
    if (!stub_->ChangeEndpoints(&context, request, &response).ok() || response.moved_share() < kAllKeys) return false;
    std::fprintf(stderr,
                 "sluicectl: this takes away the endpoints of all keys of %s; nothing was changed\n"
                 "  --preview shows it, --force does it\n",
                 args_.cluster.c_str());
    return true;
  }

  // One RPC, its answer printed as JSON or by `print`. A status that is not OK is explained on stderr.
  template <typename Request, typename Response, typename PrintFn>
  int Call(grpc::Status (v1::Admin::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
           const Request& request, PrintFn print, Response* answer = nullptr, bool shown = true) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + args_.timeout);
    Response response;
    const grpc::Status status = (stub_.get()->*method)(&context, request, &response);
    if (!status.ok()) {
      const auto& trailers = context.GetServerTrailingMetadata();
      const auto reason = trailers.find("sluice-reason");
      return Explain(status, reason == trailers.end() ? "" : std::string(reason->second.data(), reason->second.size()));
    }
    const std::string text = args_.json ? Json(response) : std::string(print(response));
    if (answer != nullptr) *answer = std::move(response);
    return shown ? Write(text) : kDone;
  }

  // A line for each name that begins with what stands at the cursor.
  template <typename Items>
  std::string Candidates(const Items& items) const {
    std::string lines;
    for (const auto& item : items) {
      if (item.name().starts_with(args_.word)) lines += item.name() + "\n";
    }
    return lines;
  }

  int Why() {
    v1::ListFailedCallsRequest request;
    request.set_id(args_.word);
    if (args_.word.empty() && !args_.json) request.set_max(kFailedCallsShown);
    v1::ListFailedCallsResponse response;
    const int result = Call(
        &v1::Admin::Stub::ListFailedCalls, request,
        [this](const v1::ListFailedCallsResponse& r) {
          if (args_.word.empty()) return PrintFailedCalls(r);
          std::string text;  // one x-request-id may have several calls
          for (const v1::FailedCall& call : r.calls()) text += (text.empty() ? "" : "\n") + PrintWhy(call);
          return text;
        },
        &response);
    if (result != kDone || args_.word.empty() || !response.calls().empty()) return result;
    std::fprintf(stderr, "sluicectl: %s\n", NoSuchCall(response, args_.word).c_str());
    return kRefused;
  }

  int Reload() {
    v1::ReloadResponse response;
    const int result = Call(
        &v1::Admin::Stub::Reload, v1::ReloadRequest(),
        [](const v1::ReloadResponse& r) { return r.errors().empty() ? "reloaded\n" : ""; }, &response);
    if (result != kDone) return result;
    for (const std::string& warning : response.warnings()) std::fprintf(stderr, "warning: %s\n", warning.c_str());
    for (const std::string& error : response.errors()) std::fprintf(stderr, "error: %s\n", error.c_str());
    if (response.errors().empty()) return kDone;
    std::fprintf(stderr,
                 "sluicectl: the configuration has errors, nothing was changed; correct the file and reload again\n");
    return kRefused;
  }

  // kDone: *answer has a configuration, which was printed if `print`. Errors of the file are printed.
  int AskConfig(bool from_file, v1::GetConfigResponse* answer, bool print) {
    v1::GetConfigRequest request;
    request.set_from_file(from_file);
    const int result = Call(
        &v1::Admin::Stub::GetConfig, request, [](const v1::GetConfigResponse& r) { return r.yaml(); }, answer, print);
    if (result != kDone) return result;
    for (const std::string& error : answer->errors()) std::fprintf(stderr, "error: %s\n", error.c_str());
    return answer->errors().empty() ? kDone : kRefused;
  }

  int ConfigDiff() {
    v1::GetConfigResponse running, file;
    int result = AskConfig(false, &running, false);
    if (result == kDone && args_.file.empty()) result = AskConfig(true, &file, false);
    if (result != kDone) return result == kRefused ? static_cast<int>(kDiffTrouble) : result;  // as diff(1)
    return PrintConfigDiff(running.yaml(), args_.file, file.yaml(), {file.warnings().begin(), file.warnings().end()});
  }

  int Purge() {
    v1::PurgeCacheRequest request;
    request.set_service(args_.purge.service);
    request.set_method(args_.purge.method);
    if (args_.purge.key) request.set_key(*args_.purge.key);
    if (!args_.purge.key_file.empty()) {
      base::Result<std::string> key = ReadFile("--key-file", args_.purge.key_file, kKeyBytesMax);
      if (!key.ok()) {
        std::fprintf(stderr, "sluicectl: %s\n", key.error().detail.c_str());
        return kUsage;
      }
      request.set_key(std::move(*key));
    }
    return Call(&v1::Admin::Stub::PurgeCache, request, [](const v1::PurgeCacheResponse& r) {
      return std::to_string(r.dropped()) + (r.dropped() == 1 ? " response dropped\n" : " responses dropped\n");
    });
  }

  int LogLevel() {
    if (args_.word.empty()) {
      return Call(&v1::Admin::Stub::GetLogLevel, v1::GetLogLevelRequest(),
                  [](const auto& r) { return r.level() + "\n"; });
    }
    v1::SetLogLevelRequest request;
    request.set_level(args_.word);
    return Call(&v1::Admin::Stub::SetLogLevel, request, [this](const auto&) { return args_.word + "\n"; });
  }

  // `reason`: the daemon's word for it; empty if the status is not the daemon's own.
  int Explain(const grpc::Status& status, const std::string& reason) {
    const bool connected = channel_->GetState(false) == GRPC_CHANNEL_READY;
    const bool late = status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    // A server of gRPC's that ends cancels the calls that are left.
    const bool ended = reason.empty() && status.error_code() == grpc::StatusCode::CANCELLED;
    if (status.error_code() == grpc::StatusCode::UNAVAILABLE || ended || (reason.empty() && late && !connected)) {
      if (MayNotConnect()) {
        std::fprintf(
            stderr,
            "sluicectl: %s: permission denied\n"
            "  the socket is for the daemon's user and root: run as one of them (sudo -u USER sluicectl ...)\n",
            args_.address.c_str());
        return kUnreachable;
      }
      std::fprintf(stderr,
                   "sluicectl: no daemon answers at %s: %s\n"
                   "  is it running, and is this its admin address (--address or SLUICE_ADMIN)?%s\n",
                   args_.address.c_str(), status.error_message().c_str(), TlsHint());
      return kUnreachable;
    }
    std::fprintf(stderr, "sluicectl: %s\n",
                 status.error_message().empty() ? "refused without a reason" : status.error_message().c_str());
    if (const std::string hint = Hint(status.error_code(), reason); !hint.empty())
      std::fprintf(stderr, "  %s\n", hint.c_str());
    return kRefused;
  }

  // gRPC's words for it differ between versions; the system knows. A socket is written to by connecting.
  bool MayNotConnect() const {
    constexpr std::string_view kUnix = "unix:";
    if (!args_.address.starts_with(kUnix)) return false;
    const char* path = args_.address.c_str() + kUnix.size();
    return ::access(path, W_OK) != 0 && errno == EACCES;
  }

  // To gRPC a failed handshake looks like an address where no process listens.
  const char* TlsHint() const {
    if (args_.tls.any()) {
      return "\n  with TLS: does its client_ca know --tls-cert, and --tls-ca its certificate, and is that for this "
             "name "
             "(--tls-server-name)?";
    }
    return args_.address.starts_with("unix:")
               ? ""
               : "\n  if it has admin.tls: --tls-ca, --tls-cert and --tls-key are needed";
  }

  std::string Hint(grpc::StatusCode code, const std::string& reason) const {
    switch (code) {
      case grpc::StatusCode::ABORTED:
        return "nothing was changed; try again in a moment";
      case grpc::StatusCode::NOT_FOUND:
        if (reason == "removed") return "a reload of the configuration took it away";
        if (args_.command == Command::kLimitSet || args_.command == Command::kLimitReset) {
          return "`sluicectl limits` shows what there is";
        }
        if (args_.command == Command::kFaultRemove) return "`sluicectl fault list` shows what there is";
        if (args_.command == Command::kFaultAdd) return "`sluicectl routes` shows where they lead";
        if (args_.command == Command::kExplain) return "";
        return "`sluicectl clusters` and `sluicectl endpoints CLUSTER` show what there is";
      case grpc::StatusCode::FAILED_PRECONDITION:
        return args_.if_version ? "the list has changed: look at it again (`sluicectl clusters " + args_.cluster +
                                      "`), then repeat with its version"
                                : "";
      case grpc::StatusCode::DEADLINE_EXCEEDED:
        return "no answer in --timeout; it may still be done: look before you repeat";
      case grpc::StatusCode::UNIMPLEMENTED:
        return "the daemon is older than this sluicectl, or this is not its admin address";
      default:
        return "";
    }
  }

  const Args& args_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Admin::Stub> stub_;
  v1::GetConfigResponse answer_;  // of config dump
  const ExplainStatus explain_ = [this](const auto& status, const auto& reason) { return Explain(status, reason); };
};

}  // namespace

int Run(const Args& args) {
  if (args.command == Command::kPrint) return Write(args.text);
  base::Result<std::shared_ptr<grpc::Channel>> channel = MakeChannel(args);
  if (!channel.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n", channel.error().detail.c_str());
    return kUsage;
  }
  return Session(args, std::move(*channel)).Run();
}

}  // namespace sluice::ctl
