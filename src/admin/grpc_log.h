// The lines that gRPC writes itself (the admin RPC, the control planes): in the process's log and bounded, instead of
// unbounded on stderr.
#pragma once

namespace sluice::admin {

// From here on gRPC's lines go to spdlog's default logger: its errors as warnings, as most of them are what a stranger
// has sent; the rest, which it writes only if GRPC_VERBOSITY asks for it, at level debug. At most 5 lines in 10 s,
// with the number of those that were left out.
void RouteGrpcLog();
// As before RouteGrpcLog: the logger may go.
void UnrouteGrpcLog();

}  // namespace sluice::admin
