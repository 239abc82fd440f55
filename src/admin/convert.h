// Between the admin API's messages and the Backend's views, field by field. Knows no gRPC.
#pragma once

#include "admin/backend.h"
#include "sluice/admin/v1/admin.pb.h"

namespace sluice::admin {

// Endpoints in one ChangeEndpoints request; more: kInvalidArgument.
inline constexpr int kEndpointsPerChangeMax = 4096;

void ToMessage(const ServerView& view, v1::GetServerResponse& message);
void ToMessage(const ClusterView& view, v1::Cluster& message);
void ToMessage(const ChangeResult& result, v1::ChangeEndpointsResponse& message);
void ToMessage(const ReloadResult& result, v1::ReloadResponse& message);

// kInvalidArgument for what is wrong whatever the cluster holds: no cluster, no kind, no endpoints, a missing
// field, a weight that is not a positive number.
base::Result<EndpointChange> ToChange(const v1::ChangeEndpointsRequest& request);

}  // namespace sluice::admin
