// Conditions on metadata: what routes and access rules ask of a request's fields.
//
// A field may come several times, and a field may be a list with commas (RFC 9110 5.3, gRPC over HTTP/2
// "Custom-Metadata"); one server reads the first value, one the last, one all. So each value is judged by itself, and
// what is asked decides what one that does not fit comes to. An alias of the name (canonical/field_name.h) is read by
// some servers as the name. Values of "-bin" names are compared as the bytes that they stand for.
//
// Thread safety: pure functions. Nothing allocates but for "-bin" names.
#pragma once

#include <string_view>

#include "proxy/canonical/request.h"
#include "proxy/options.h"

namespace sluice::proxy {

// For routes and for rules that deny: some server may read a value that fits. The whole value of a field counts beside
// its members.
bool AnyValueFits(const MetadataMatch& wanted, const CanonicalRequest& request);

// For rules that allow: the field is there, and whichever value a server reads fits, also that of an alias. A value
// that is wanted with a comma in it is the field's whole value; user-agent is no list (RFC 9110 10.1.5).
bool EveryValueFits(const MetadataMatch& wanted, const CanonicalRequest& request);

}  // namespace sluice::proxy
