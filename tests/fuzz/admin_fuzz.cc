// Admin requests: any message of any method of the admin RPC is answered with a status and a response that can be sent,
// and what gets past it to the Backend keeps what admin/convert.h promises. So do the address and the HTTP routes.
//
// The input: which method (or 14: a listen address, 15: an HTTP request's method and target), then the message's bytes.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>

#include "admin/access.h"
#include "admin/admin_service.h"
#include "admin/convert.h"
#include "admin/http_routes.h"
#include "admin/visible_text.h"
#include "base/check.h"
#include "base/log.h"
#include "fuzz/support/program.h"
#include "net/address.h"
#include "sluice/admin/v1/admin.grpc.pb.h"
#include "unit/admin/fake_backend.h"

namespace sluice::admin {
namespace {

using Service = v1::Admin::Service;

template <typename Request, typename Response>
void Ask(Service& service, grpc::Status (Service::*method)(grpc::ServerContext*, const Request*, Response*),
         const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;  // gRPC refuses it before we see it
  grpc::ServerContext context;
  Response response;
  const grpc::Status status = (service.*method)(&context, &request, &response);
  if (status.ok()) {
    SLUICE_CHECK(response.ByteSizeLong() < 1 << 20 && response.IsInitialized());
    (void)response.SerializeAsString();
  } else {
    SLUICE_CHECK(status.error_code() >= 1 && status.error_code() <= 16 && !status.error_message().empty());
  }
}

void CheckAsked(FakeBackend& backend) {
  for (const upstream::EndpointChange& change : backend.changes_) {
    const bool resets = change.kind == upstream::EndpointChange::Kind::kReset;  // names no endpoints
    SLUICE_CHECK(!change.cluster.empty() && change.endpoints.empty() == resets);
    SLUICE_CHECK(change.endpoints.size() <= kEndpointsPerChangeMax);
    const bool whole =
        change.kind == upstream::EndpointChange::Kind::kAdd || change.kind == upstream::EndpointChange::Kind::kReplace;
    for (const upstream::EndpointSpec& endpoint : change.endpoints) {
      SLUICE_CHECK(std::isfinite(endpoint.weight) && endpoint.weight > 0);
      SLUICE_CHECK(whole ? !endpoint.address.empty() : !endpoint.name.empty());
    }
  }
  for (const LimitChange& change : backend.limit_changes_) {
    const bool sets = change.rate || change.burst || change.max || change.queue_max;
    SLUICE_CHECK(!change.name.empty() && change.reset != sets);
  }
  for (const proxy::CachePurge& purge : backend.purges_) {
    SLUICE_CHECK(purge.method.empty() || !purge.service.empty());
    SLUICE_CHECK(!purge.key || !purge.method.empty());
  }
  if (auto timeout = backend.drain_timeout()) SLUICE_CHECK(timeout->count() >= 0 && *timeout <= std::chrono::hours(24));
}

void AskHttp(FakeBackend& backend, std::string_view method, std::string_view target) {
  const HttpReply reply = HandleHttp(backend, TrafficHistory(), method, target);
  SLUICE_CHECK(reply.status == 200 || reply.status == 400 || reply.status == 404 || reply.status == 405 ||
               reply.status == 500 || reply.status == 503);
  // Nothing that was asked for comes back as a tag.
  if (target.find('<') != target.npos) SLUICE_CHECK(reply.body.find(target) == reply.body.npos || target.size() < 4);
  const std::string escaped = EscapeHtml(target);
  SLUICE_CHECK(escaped.find_first_of("<>\"'") == escaped.npos && escaped.size() >= target.size());
}

void ReadAddress(std::string_view text) {
  const auto address = net::Address::Parse(text);
  if (!address.ok()) {
    SLUICE_CHECK(address.error().kind == base::ErrorKind::kInvalidArgument && !address.error().detail.empty());
    return;
  }
  SLUICE_CHECK(!address->host().empty());
  const auto again = net::Address::Parse(address->ToString());
  SLUICE_CHECK(again.ok() && *again == *address);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool quiet = (spdlog::set_level(spdlog::level::off), true);  // each change is a line of the audit log
  (void)quiet;
  fuzz::Program program(data, size);
  const uint8_t which = program.Below(16);
  FakeBackend backend;
  const Access access(/*certificates=*/false, {});
  const std::unique_ptr<grpc::Service> made = MakeAdminService(backend, access);
  auto& service = static_cast<Service&>(*made);
  if (which == 14) {
    ReadAddress(program.Rest());
    return 0;
  }
  if (which == 15) {
    const std::string_view method = program.ShortBytes();
    AskHttp(backend, method, program.Rest());
    return 0;
  }
  const std::string bytes(program.Rest());
  switch (which) {
    case 0:
      Ask(service, &Service::GetServer, bytes);
      break;
    case 1:
      Ask(service, &Service::ListClusters, bytes);
      break;
    case 2:
      Ask(service, &Service::ChangeEndpoints, bytes);
      break;
    case 3:
      Ask(service, &Service::ListLimits, bytes);
      break;
    case 4:
      Ask(service, &Service::ChangeLimit, bytes);
      break;
    case 5:
      Ask(service, &Service::GetCache, bytes);
      break;
    case 6:
      Ask(service, &Service::PurgeCache, bytes);
      break;
    case 7:
      Ask(service, &Service::Reload, bytes);
      break;
    case 8:
      Ask(service, &Service::GetMetrics, bytes);
      break;
    case 9:
      Ask(service, &Service::SetLogLevel, bytes);
      break;
    case 10:
      Ask(service, &Service::GetLogLevel, bytes);
      break;
    case 11:
      Ask(service, &Service::Drain, bytes);
      break;
    case 12:
      Ask(service, &Service::Stop, bytes);
      break;
    case 13:
      Ask(service, &Service::ListCertificates, bytes);
      break;
  }
  CheckAsked(backend);
  return 0;
}

}  // namespace sluice::admin
