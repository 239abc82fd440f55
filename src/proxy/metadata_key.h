// MetadataKey: the value of a metadata field as one key, also where the field is there more than once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "proxy/canonical/request.h"
#include "proxy/metadata_name.h"
#include "proxy/options.h"

namespace sluice::proxy {

// Of the field `name`; nullopt: it is not there. The value is the key, whichever way it was spelled: members of a list
// with commas count as fields of their own, without the blanks around them, and a value of a "-bin" name is its bytes.
// Joined values have a comma between them, in the order of the request. The key lies in `scratch`, which is empty
// before, or is a view of the request. Does not allocate where the field is there once, is no list and no "-bin".
std::optional<std::string_view> MetadataKey(const CanonicalRequest& request, const MetadataName& name,
                                            Repeated repeated, std::string& scratch);

}  // namespace sluice::proxy
