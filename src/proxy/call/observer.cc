#include "proxy/call/observer.h"

namespace sluice::proxy {

CallRecord RecordOf(const Client& client, const CanonicalRequest& request, const Route* route,
                    std::string_view request_id) {
  CallRecord record;
  record.request = &request;
  record.peer = client.peer_name;
  record.client = client.identity;
  record.authority = request.authority();
  record.path = request.path();
  record.request_id = request_id;
  if (route != nullptr) {
    record.route = route->options.name;
    record.cluster = route->options.cluster;
  }
  return record;
}

void NotifyObservers(const CallContext& context, const RouteConfig& config, const CallRecord& record) {
  for (const auto& observer : config.observers) observer->OnCallEnd(record, context.index());
}

}  // namespace sluice::proxy
