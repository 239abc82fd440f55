// The step of a call that has it made a second time elsewhere (mirror_call.h).
#include "proxy/call/call.h"
#include "proxy/call/mirror_call.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

// Before the first attempt begins, by which the body may be sent and let go. A call that chance does not choose then is
// not asked again.
void Call::BeginMirror() {
  const MirrorOptions& options = route_->options.mirror;
  if (attempts_ > 1 || context.worker().random().Unit() * 100 >= options.percent) return;
  Extra& more = extra();
  if (sink.fetch() == nullptr) more.id = context.TakeCallId();
  const upstream::ClusterState& cluster = *snapshot_->clusters[route_->mirror->cluster];
  more.mirror =
      MirrorCall::Start({context, config_, snapshot_, *route_, NameOfCluster(), request, body, request_trailers.get(),
                         request_ended, ends_in_headers, deadline, HashKey(cluster.options->ring), more.id});
  if (more.mirror != nullptr && options.compare && !sink.closed()) sink.Wrap(*more.mirror);
}

}  // namespace sluice::proxy
