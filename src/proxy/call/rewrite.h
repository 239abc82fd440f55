// Rewrite: what endpoints see of a request, and clients of a response, otherwise than the other side has sent it
// (RewriteOptions).
//
// It is the last thing before the wire: routes, gates, keys, the cache and the access log know the request as it came,
// so that another attempt is decided on by the same fields as the first. Where it is off a call pays a test of a bool
// on each way; where it is on its request is copied for each attempt.
//
// Thread safety: the request's worker. Nothing here suspends.
#pragma once

#include "http2/fields/header.h"
#include "proxy/options.h"

namespace sluice::proxy {

// A copy of the request as endpoints are to see it, fit for any worker.
http2::HeaderList Rewritten(const http2::HeaderList& request, const RewriteOptions& options);
// The first block of a response, which may be its only one.
void RewriteHeaders(const RewriteOptions& options, http2::HeaderList& headers);
// The trailers: what clients are not to see is taken away from them, too; nothing is set or added.
void RewriteTrailers(const RewriteOptions& options, http2::HeaderList& trailers);

}  // namespace sluice::proxy
