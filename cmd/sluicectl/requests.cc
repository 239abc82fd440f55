#include "sluicectl/requests.h"

#include <utility>

namespace sluice::ctl {

namespace v1 = admin::v1;
using Kind = v1::ChangeEndpointsRequest;

v1::ChangeLimitRequest MakeLimitChange(const Args& args) {
  v1::ChangeLimitRequest request;
  request.set_name(args.word);
  request.set_reset(args.command == Command::kLimitReset);
  if (args.limit.rate) request.set_rate(*args.limit.rate);
  if (args.limit.burst) request.set_burst(*args.limit.burst);
  if (args.limit.max) request.set_max(*args.limit.max);
  if (args.limit.queue) request.set_queue_max(*args.limit.queue);
  if (args.limit.queue_time) request.set_queue_time_ms(static_cast<uint64_t>(args.limit.queue_time->count()));
  return request;
}

v1::ChangeEndpointsRequest MakeChange(const Args& args) {
  constexpr std::pair<Command, Kind::Kind> kKinds[] = {{Command::kAdd, Kind::KIND_ADD},
                                                       {Command::kRemove, Kind::KIND_REMOVE},
                                                       {Command::kReweight, Kind::KIND_REWEIGHT},
                                                       {Command::kReplace, Kind::KIND_REPLACE},
                                                       {Command::kDrainEndpoint, Kind::KIND_DRAIN},
                                                       {Command::kUndrainEndpoint, Kind::KIND_UNDRAIN},
                                                       {Command::kReset, Kind::KIND_RESET}};
  v1::ChangeEndpointsRequest request;
  for (const auto& [command, kind] : kKinds) {
    if (command == args.command) request.set_kind(kind);
  }
  request.set_cluster(args.cluster);
  request.set_preview(args.preview);
  request.set_over_ms(static_cast<uint64_t>(args.over.count()));
  if (args.if_version) request.set_expected_version(*args.if_version);
  for (const EndpointArg& endpoint : args.endpoints) {
    v1::EndpointSpec& spec = *request.add_endpoints();
    spec.set_name(endpoint.name);
    spec.set_address(endpoint.address);
    if (endpoint.weight) spec.set_weight(*endpoint.weight);
    spec.set_priority(args.priority);
    spec.set_locality(args.locality);
  }
  return request;
}

v1::SetEndpointHealthRequest MakeHealthOrder(const Args& args) {
  v1::SetEndpointHealthRequest request;
  request.set_cluster(args.cluster);
  request.set_endpoint(args.endpoints[0].name);
  request.set_action(args.command == Command::kEject     ? v1::SetEndpointHealthRequest::ACTION_EJECT
                     : args.command == Command::kRestore ? v1::SetEndpointHealthRequest::ACTION_RESTORE
                                                         : v1::SetEndpointHealthRequest::ACTION_RESET_BACKOFF);
  return request;
}

v1::AddFaultRequest MakeFault(const Args& args) {
  const FaultArgs& fault = args.fault;
  v1::AddFaultRequest request;
  request.set_target(args.word);
  request.set_delay_ms(static_cast<uint64_t>(fault.delay.count()));
  request.set_status(fault.abort);
  if (fault.reset_after) request.set_reset_after(*fault.reset_after);
  if (fault.percent) request.set_percent(*fault.percent);
  request.set_for_ms(static_cast<uint64_t>(fault.time.count()));
  return request;
}

v1::GetExplanationRequest MakeQuestion(const Args& args) {
  const ExplainArgs& explain = args.explain;
  v1::GetExplanationRequest request;
  request.set_path(args.word);
  for (const auto& [name, value] : explain.metadata) {
    v1::CallMetadata& one = *request.add_metadata();
    one.set_name(name);
    one.set_value(value);
  }
  request.set_listener(explain.listener);
  request.set_authority(explain.authority);
  if (explain.plain) request.set_content_type("");
  if (explain.type) request.set_content_type(*explain.type);
  return request;
}

}  // namespace sluice::ctl
