#include "support/operator.h"

#include <gtest/gtest.h>

#include "support/echo_call.h"

namespace sluice::integration {

namespace v1 = admin::v1;

v1::Limit Operator::Limit(const std::string& name) {
  grpc::ClientContext context;
  v1::ListLimitsResponse response;
  const grpc::Status status = proxy_.admin().ListLimits(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  for (const v1::Limit& limit : response.limits()) {
    if (limit.name() == name) return limit;
  }
  ADD_FAILURE() << "no limit " << name << " in " << response.ShortDebugString();
  return {};
}

bool Operator::AllGivenBack() {
  grpc::ClientContext context;
  v1::ListLimitsResponse response;
  const grpc::Status status = proxy_.admin().ListLimits(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  for (const v1::Limit& limit : response.limits()) {
    if (limit.waiting() != 0 || limit.in_use() != 0) return false;
  }
  return true;
}

std::string Operator::Limits() {
  grpc::ClientContext context;
  v1::ListLimitsResponse response;
  const grpc::Status status = proxy_.admin().ListLimits(&context, {}, &response);
  return status.ok() ? response.DebugString() : Describe(status);
}

v1::Limit Operator::Change(const v1::ChangeLimitRequest& request) {
  grpc::ClientContext context;
  v1::ChangeLimitResponse response;
  const grpc::Status status = proxy_.admin().ChangeLimit(&context, request, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  return response.limit();
}

void Operator::SetRate(const std::string& name, double rate, uint32_t burst) {
  v1::ChangeLimitRequest request;
  request.set_name(name);
  request.set_rate(rate);
  request.set_burst(burst);
  Change(request);
}

void Operator::SetMax(const std::string& name, uint32_t max) {
  v1::ChangeLimitRequest request;
  request.set_name(name);
  request.set_max(max);
  Change(request);
}

void Operator::Reset(const std::string& name) {
  v1::ChangeLimitRequest request;
  request.set_name(name);
  request.set_reset(true);
  Change(request);
}

v1::GetCacheResponse Operator::Cache() {
  grpc::ClientContext context;
  v1::GetCacheResponse response;
  const grpc::Status status = proxy_.admin().GetCache(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  return response;
}

uint64_t Operator::NotCached(const std::string& reason) {
  const v1::GetCacheResponse cache = Cache();
  for (const v1::NotCached& entry : cache.not_cached()) {
    if (entry.reason() == reason) return entry.count();
  }
  return 0;
}

uint64_t Operator::Purge(const std::string& service, const std::string& method) {
  grpc::ClientContext context;
  v1::PurgeCacheRequest request;
  request.set_service(service);
  request.set_method(method);
  v1::PurgeCacheResponse response;
  const grpc::Status status = proxy_.admin().PurgeCache(&context, request, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  return response.dropped();
}

uint64_t Operator::CallsInFlight() {
  grpc::ClientContext context;
  v1::GetServerResponse response;
  const grpc::Status status = proxy_.admin().GetServer(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  return response.calls_in_flight();
}

std::vector<std::string> Operator::Reload() {
  grpc::ClientContext context;
  v1::ReloadResponse response;
  const grpc::Status status = proxy_.admin().Reload(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << Describe(status);
  return {response.errors().begin(), response.errors().end()};
}

void Operator::ReloadWith(const ProxyConfig& config) {
  proxy_.Rewrite(config);
  const std::vector<std::string> errors = Reload();
  EXPECT_TRUE(errors.empty()) << errors.front();
}

Finished Operator::Ctl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--address", proxy_.server().AdminAddress()});
  return RunProgram("sluicectl", arguments, proxy_.dir().File("ctl.out"));
}

}  // namespace sluice::integration
