// Response headers of gRPC as those of gRPC-Web, with what CORS has to say; and whole answers to requests that never
// became calls.
#pragma once

#include <string_view>

#include "base/error.h"
#include "http2/fields/header.h"
#include "proxy/grpc_web/cors.h"
#include "proxy/grpc_web/media_type.h"

namespace sluice::proxy::grpc_web {

// `response` to a page of `origin`. One that is not gRPC keeps its type and its length. `text`: in base64.
http2::HeaderList WebHeaders(const http2::HeaderList& response, bool text, std::string_view origin, const Cors& cors);

// Whether the response is to be text: what `accept` says, else what the request itself is.
bool WantsText(const http2::HeaderList& request, const MediaType& type);
// Empty where the request says none, or CORS is off.
std::string_view OriginOf(const http2::HeaderList& request, const Cors& cors);

// `error` as an answer to `request`, which says `type`: headers alone.
http2::HeaderList WebAnswer(const base::Error& error, const http2::HeaderList& request, const MediaType& type,
                            const Cors& cors);

}  // namespace sluice::proxy::grpc_web
