// What a person reads: the admin API's answers as aligned text.
#pragma once

#include <string>
#include <vector>

#include "sluice/admin/v1/admin.pb.h"

namespace sluice::ctl {

// Columns are as wide as their widest cell, two spaces apart; `right`: which columns are numbers. No trailing
// spaces; control characters in cells (names come from elsewhere) are shown as ?.
std::string Table(const std::vector<std::vector<std::string>>& rows, const std::vector<bool>& right);

// "3d 4h", "4h 5m", "5m 6s", "6s".
std::string AgeText(uint64_t seconds);
// An endpoint's state in a word, as the status page has it: of its health ("ejected", "not_serving"), "unreachable"
// where that is up and no connection can be made, "draining" or "removed" by the list.
std::string StateWord(const admin::v1::Endpoint& endpoint);
// It takes its share of calls: up or warming, and there is a connection or one can be made.
bool IsWell(const admin::v1::Endpoint& endpoint);
std::string Print(const admin::v1::GetServerResponse& server);
std::string Print(const admin::v1::ListClustersResponse& clusters);
std::string PrintEndpoints(const admin::v1::Cluster& cluster);
// Their health, and below it the last changes.
std::string PrintHealth(const admin::v1::Cluster& cluster);
std::string Print(const admin::v1::ChangeEndpointsResponse& change, const std::string& cluster, bool preview);
std::string Print(const admin::v1::ListLimitsResponse& limits);
// What a limit is now, in a line.
std::string Print(const admin::v1::Limit& limit);
std::string Print(const admin::v1::ListFaultsResponse& faults);
// A fault in a line.
std::string Print(const admin::v1::Fault& fault);
std::string Print(const admin::v1::GetCacheResponse& cache);
std::string Print(const admin::v1::ListCertificatesResponse& certificates);
std::string Print(const admin::v1::GetXdsResponse& xds);

// Any message as JSON: stable field names (as in the .proto), defaults included.
std::string Json(const google::protobuf::Message& message);

}  // namespace sluice::ctl
