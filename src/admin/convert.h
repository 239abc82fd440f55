// Between the admin API's messages and the Backend's views, field by field. Knows no gRPC.
#pragma once

#include "admin/backend.h"
#include "sluice/admin/v1/admin.pb.h"

namespace sluice::admin {

// Endpoints in one ChangeEndpoints request; more: kInvalidArgument.
inline constexpr int kEndpointsPerChangeMax = 4096;

// As the messages have spans: whole milliseconds, 0 for one below zero.
uint64_t Milliseconds(base::Nanos span);

void ToMessage(const ProcessView& view, v1::Process& message);
void ToMessage(const ServerView& view, v1::GetServerResponse& message);
void ToMessage(const ClusterView& view, v1::Cluster& message);
void ToMessage(const ChangeResult& result, v1::ChangeEndpointsResponse& message);
void ToMessage(const LimitView& view, v1::Limit& message);
void ToMessage(const FaultView& view, v1::Fault& message);
void ToMessage(const CacheView& view, v1::GetCacheResponse& message);
void ToMessage(const CertificateView& view, v1::Certificate& message);
void ToMessage(const discovery::XdsView& view, v1::GetXdsResponse& message);
void ToMessage(const FailedCallsView::Call& view, v1::FailedCall& message);
void ToMessage(const RouteView& view, v1::Route& message);
void ToMessage(const CallExplanation& view, v1::GetExplanationResponse& message);
void ToMessage(const HotKeysView& view, v1::ClusterHotKeys& message);
void ToMessage(const ConfigView& view, v1::GetConfigResponse& message);
void ToMessage(const ReloadResult& result, v1::ReloadResponse& message);

// kInvalidArgument for what is wrong whatever the cluster has: no cluster, no kind, no endpoints, a missing
// field, a weight that is not a positive number.
base::Result<upstream::EndpointChange> ToChange(const v1::ChangeEndpointsRequest& request);
// kInvalidArgument: no cluster, no endpoint, no action that this daemon knows.
base::Result<HealthOrder> ToOrder(const v1::SetEndpointHealthRequest& request);
// kInvalidArgument: no name, nothing to change, reset with something else. Ranges are the Backend's to check.
base::Result<LimitChange> ToChange(const v1::ChangeLimitRequest& request);
// kInvalidArgument: no target, nothing to do, no time, a value outside of its range.
base::Result<FaultOrder> ToOrder(const v1::AddFaultRequest& request);
// Metadata of one GetExplanation request; more: kInvalidArgument.
inline constexpr int kExplainedMetadataMax = 100;
// kInvalidArgument: too much metadata. The rest is the Backend's to check.
base::Result<CallQuestion> ToQuestion(const v1::GetExplanationRequest& request);
// kInvalidArgument: a method without a service, a key without both, a service or method that is a path.
base::Result<proxy::CachePurge> ToPurge(const v1::PurgeCacheRequest& request);

}  // namespace sluice::admin
