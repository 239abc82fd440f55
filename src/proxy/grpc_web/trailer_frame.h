// Trailers as the last frame of a gRPC-Web response's body (gRPC-Web, "Message framing").
#pragma once

#include <string>

#include "http2/fields/header.h"

namespace sluice::proxy::grpc_web {

// Flags 0x80, four bytes of length, then "name: value\r\n" for each field; names are in lower case already. Values are
// as they came, so those of names in -bin are base64 in text mode too, as other proxies send them and clients read
// them, though the protocol's page speaks of raw bytes there. A field that would break the lines is left out.
std::string MakeTrailerFrame(const http2::HeaderList& trailers);

}  // namespace sluice::proxy::grpc_web
