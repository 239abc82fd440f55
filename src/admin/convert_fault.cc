// Faults between the API's messages and the Backend's views.
#include <cmath>

#include "admin/convert.h"

namespace sluice::admin {
namespace {

using proxy::FaultOptions;
using proxy::GrpcCode;

base::Error Refused(std::string why) { return base::MakeError(base::ErrorKind::kInvalidArgument, std::move(why)); }

// kOk: none has that name.
GrpcCode CodeOf(const std::string& name) {
  for (size_t code = 1; code < proxy::kGrpcCodes; ++code) {
    if (ToString(static_cast<GrpcCode>(code)) == name) return static_cast<GrpcCode>(code);
  }
  return GrpcCode::kOk;
}

}  // namespace

void ToMessage(const FaultView& view, v1::Fault& message) {
  message.set_id(view.id);
  message.set_route(view.options.route);
  message.set_method(view.options.method);
  message.set_delay_ms(static_cast<uint64_t>(view.options.delay.count()));
  if (view.options.abort != GrpcCode::kOk) message.set_status(std::string(ToString(view.options.abort)));
  if (view.options.reset_after) message.set_reset_after(*view.options.reset_after);
  message.set_percent(view.options.percent);
  message.set_left_ms(Milliseconds(view.left));
  message.set_calls(view.calls);
}

base::Result<FaultOrder> ToOrder(const v1::AddFaultRequest& request) {
  constexpr uint64_t kMsMax = FaultOptions::kTimeMax.count();
  if (request.target().empty())
    return Refused("target: is needed: the name of a route, or a method like pkg.Service/Get");
  FaultOrder order;
  order.target = request.target();
  order.delay = std::chrono::milliseconds(request.delay_ms());
  if (request.has_reset_after()) order.reset_after = request.reset_after();
  if (!request.status().empty()) {
    order.abort = CodeOf(request.status());
    if (order.abort == GrpcCode::kOk) return Refused("abort: must be a gRPC code but OK, like UNAVAILABLE");
    if (order.reset_after) return Refused("reset_after: a call that is ended by abort has no response; one of both");
  }
  if (request.delay_ms() == 0 && order.abort == GrpcCode::kOk && !order.reset_after)
    return Refused("nothing to do: one of delay, abort or reset_after is needed");
  if (request.delay_ms() > kMsMax) return Refused("delay: must be at most an hour");
  if (request.has_percent()) order.percent = request.percent();
  if (!std::isfinite(order.percent) || order.percent <= 0 || order.percent > 100)
    return Refused("percent: must be above 0 and at most 100");
  if (request.for_ms() == 0 || request.for_ms() > kMsMax)
    return Refused("for: is needed: the time until it ends by itself, at most an hour");
  order.time = std::chrono::milliseconds(request.for_ms());
  return order;
}

}  // namespace sluice::admin
