// Request fields that are the proxy's to say: a client's word in them is taken away or replaced before routes, gates,
// the cache and endpoints read it. A name stands for its aliases too (canonical/field_name.h).
//
// All functions may be called again for the same request, by the same or another configuration: what is in force is
// what the last one says. Thread safety: the request's worker. Nothing here suspends.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "http2/fields/header.h"
#include "proxy/client.h"
#include "proxy/snapshot.h"

namespace sluice::proxy {

// Tokens of fields that a client must not send on: what the proxy says of itself, and certificates that it has not
// seen. RouteConfig::guard, if there is one, says more.
inline constexpr uint64_t kNotAClients = uint64_t{1} << static_cast<uint32_t>(http2::Token::kSluice) |
                                         uint64_t{1} << static_cast<uint32_t>(http2::Token::kXForwardedClientCert);

// What GuardFields has to do for these routes. `claims`: names of the metadata that gates set. Null: nothing.
std::shared_ptr<const FieldGuard> MakeFieldGuard(const ForwardingOptions& forwarding,
                                                 const std::vector<RouteOptions>& routes,
                                                 std::vector<std::string> claims = {});
// Once, of a client's request and not of a fetch that the cache makes: takes away what only gates may set.
void GuardClaims(const FieldGuard& guard, http2::HeaderList& request);
// Before anything is decided by the request: takes away the fields that `guard` names, and says the client's
// certificate.
void GuardFields(const FieldGuard& guard, const ForwardingOptions& forwarding, const Client& client,
                 base::TimePoint now, http2::HeaderList& request);
// Of a request's trailers, which some servers read as headers: takes away each field by which this proxy or one behind
// it decides. These are all that the proxy knows (tokens; RFC 9110 6.5.1: framing, routing, authentication),
// those that `guard` names, null: none, those that `routes` look at, and their aliases. gRPC's clients send no
// trailers.
void GuardTrailers(const FieldGuard* guard, const RouteTable& routes, http2::HeaderList& trailers);
// Whether GuardFields may change what decides about a stored response.
bool GuardDecides(const FieldGuard& guard, const http2::HeaderList& request);

// Before the request goes to an endpoint: x-forwarded-for, -proto and -host. What proxies before this one have written
// is passed on as far as they are trusted (ListenerOptions::trusted_proxies); the rest is any client's invention.
void SetXForwarded(const Client& client, base::TimePoint now, http2::HeaderList& request);

// The last `count` elements of "a, b, c", all if there are fewer; without blanks at its ends. `quoted`: a comma in
// quotes is none (x-forwarded-client-cert). There a quote that is not closed, or a backslash outside of quotes, leaves
// open where the elements are: with one a client could join its own to that of the proxy behind it. Then it is empty.
std::string_view LastElements(std::string_view chain, size_t count, bool quoted);

}  // namespace sluice::proxy
