// x-request-id: the name that a call has in the logs of all that take part in it, kept from its client or made here.
//
// One UUID (RFC 9562 5.4, version 4) a call, of the worker's random numbers: no system call. Pure functions.
#pragma once

#include <array>
#include <string_view>

#include "base/random.h"
#include "http2/fields/header.h"
#include "proxy/options.h"

namespace sluice::proxy {

inline constexpr size_t kMadeRequestIdBytes = 36;

// Whether a client's id may be kept: 1 to kRequestIdBytesMax printable ASCII characters, as gRPC has metadata ("gRPC
// over HTTP/2", ASCII-Value).
bool IsRequestId(std::string_view value);
std::array<char, kMadeRequestIdBytes> MakeRequestId(base::Random& random);

// Gives the request the one id that its endpoint is told. `rule`: not kOff. Pointers to the request's transient fields
// do not stay good.
void SetRequestId(RequestIds rule, base::Random& random, http2::HeaderList& request);

// What records say. `set`: SetRequestId was called; else the call went to no endpoint, and its id is the client's, as
// far as `rule` would keep it. kOff: the first x-request-id as it came. Empty: none.
std::string_view RequestIdOf(RequestIds rule, bool set, const http2::HeaderList& request);

}  // namespace sluice::proxy
