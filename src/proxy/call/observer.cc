#include "proxy/call/observer.h"

namespace sluice::proxy {

CallRecord RecordOf(const Client& client, const http2::HeaderList& request, const Route* route,
                    std::string_view request_id) {
  auto value = [&](http2::Token token) {
    const http2::Field* field = request.Find(token);
    return field != nullptr ? field->value() : std::string_view();
  };
  CallRecord record;
  record.request = &request;
  record.peer = client.peer_name;
  record.client = client.identity;
  record.authority = value(http2::Token::kAuthority);
  record.path = value(http2::Token::kPath);
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
