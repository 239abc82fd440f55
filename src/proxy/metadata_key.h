// MetadataKey: the value of a metadata field as one key, also where the field is there more than once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http2/fields/header.h"
#include "proxy/options.h"

namespace sluice::proxy {

// Of the field `name`; nullopt: it is not there. Joined values have a comma between them, in the order of the request,
// and lie in `scratch`, which is empty before; else the view is of the request. Does not allocate where the field is
// there once.
std::optional<std::string_view> MetadataKey(const http2::HeaderList& request, std::string_view name, Repeated repeated,
                                            std::string& scratch);

}  // namespace sluice::proxy
