// Whose answer a fetch has come to, where the answer is not stored: every participant's, or only its leader's. A fetch
// is made with the headers, the limits and the place in the queues of the call that started it, its leader. Of these
// only what is in the key is the other participants' as well.
//
//   the fetch ended with                                                    is the answer of
//   the state of the service: no endpoint, no connection, a full queue
//     of the endpoint's, draining, refused, stalled, the deadline            all
//   UNAVAILABLE or DEADLINE_EXCEEDED, as the backend said                    all
//   a limit's refusal, a gate's, a list that is too large, too many hops     its leader
//   a lost connection, a reset, a broken response, a poison call             its leader: the headers may be the reason
//   any other status that is not cached, as INVALID_ARGUMENT                 its leader: the same
//   OK with private, no-store, no-cache, a cookie, a vary that the key has
//     not (cache_policy::IsForOneCaller)                                     its leader
//
// The others go by themselves and meet their own limits. Calls whose service is down do not: single flight is worth
// most when a service has no room for each of them.
//
// Thread safety: pure functions.
#pragma once

#include "base/error.h"
#include "proxy/response_cache/fetch.h"

namespace sluice::proxy::fetch_sharing {

// Whether an answer that is not stored is all participants'. `result.response` must not be null. That of a call that
// succeeded is, as far as its status goes.
bool IsForAll(const FetchResult& result);

// Whether the failure may be the request's own doing: it ends connections. A participant that goes by itself then
// shares its connection with no other call.
bool IsSuspect(const FetchResult& result);

}  // namespace sluice::proxy::fetch_sharing
