// The response cache's keys: everything that decides what a response is, in one string without ambiguity.
//
//   u32 path size | u32 message size | path | fixed fields | shared | vary | message (with its gRPC prefix)
//
// Each field is a count of its values and then each value behind its size, so absent, empty and repeated values differ.
// Not for another machine or another process: sizes are in this machine's byte order.
//
// Thread safety: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "http2/header.h"
#include "proxy/options.h"
#include "proxy/response_cache.h"

namespace sluice::proxy::cache_key {

inline constexpr size_t kPrefixBytes = 5;  // gRPC over HTTP/2: Compressed-Flag, Message-Length

// Whether `bytes` are exactly one length-prefixed message.
bool IsOneMessage(std::string_view bytes);

// Writes the key's bytes before the message, and reserves room for it. `message_size`: with the prefix, below 4 GiB.
void Start(std::string& key, const CacheRule& rule, std::string_view cluster, const http2::HeaderList& request,
           size_t message_size);

// Of a key that was begun for a message of another size.
void SetMessageSize(std::string& key, size_t message_size);

std::string_view PathOf(std::string_view key);     // "/pkg.Service/Get"
std::string_view MessageOf(std::string_view key);  // with the prefix
// Whether a purge of `what` covers the key. Errs on the side of yes.
bool Covers(const CachePurge& what, std::string_view key);

}  // namespace sluice::proxy::cache_key
