// Hops: how many proxies a call has passed, so that an endpoint that leads back to a listener does not send it round
// for ever.
//
// A call of a client that is no proxy carries nothing. A Sluice tells the servers it connects to that it is one
// (http2::SettingId::kProxied), and the field `sluice-hops` is added to calls of such connections: the number of
// proxies passed. Each Sluice that passes the field on adds one. A loop of one Sluice and proxies of other kinds has no
// such connection and is bounded by the deadline alone. A client that sends the field itself can only have its own call
// refused earlier.
#pragma once

#include <cstdint>
#include <optional>

#include "base/error.h"
#include "http2/fields/header.h"

namespace sluice::proxy {

// A call that has passed so many proxies is refused (base::ErrorKind::kLoop).
inline constexpr uint32_t kHopsMax = 16;

// A call that has passed more of them shares no fetch: the others would have them too.
inline constexpr uint32_t kHopsShared = kHopsMax / 2;

// Token of the field, as HeaderList::HasAny has it.
inline constexpr uint64_t kSaidByProxies = uint64_t{1} << static_cast<uint32_t>(http2::Token::kSluice);

// The number in the request's field, at most kHopsMax; 0: there is none, or it is no number.
uint32_t HopsOf(const http2::HeaderList& request);
// Writes the field. Pointers to the request's transient fields do not stay good.
void SetHops(http2::HeaderList& request, uint32_t hops);

// kLoop, if the request has passed kHopsMax proxies.
std::optional<base::Error> FindLoop(const http2::HeaderList& request);

}  // namespace sluice::proxy
