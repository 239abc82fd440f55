// SocketStream: a Stream over a connected TCP or Unix socket, with readiness from the worker's reactor.
#pragma once

#include <memory>
#include <string>

#include "net/stream.h"
#include "runtime/worker.h"

namespace sluice::net {

// Takes over the connected, non-blocking socket `fd`. Call on `worker`. TCP gets TCP_NODELAY: batching is ours to do.
// Null, and `fd` closed, if the reactor cannot watch one more descriptor.
std::unique_ptr<Stream> MakeSocketStream(runtime::Worker& worker, int fd, std::string peer_name);

}  // namespace sluice::net
