// The response cache's keys: everything that decides what a response is, in one string without ambiguity.
//
//   u32 path size | u32 message size | path | fixed fields | shared | vary | message (with its gRPC prefix)
//
// Each field is a count of its values and then each value behind its size, so absent, empty and repeated values differ.
// Not for another machine or another process: sizes are in this machine's byte order.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cache/clock_cache.h"
#include "proxy/canonical/request.h"
#include "proxy/options.h"

namespace sluice::proxy {

struct CacheKey {
  cache::Key128 hash;
  std::string bytes;
};

struct CachePurge {
  std::string service;  // "pkg.Service"; empty: all
  std::string method;   // with service; empty: all of it
  // The request message's bytes, exactly (without the gRPC prefix); with service and method. A compressed
  // request cannot be compared, so all entries of compressed requests of the method go too.
  std::optional<std::string> key;
};

}  // namespace sluice::proxy

namespace sluice::proxy::cache_key {

inline constexpr size_t kPrefixBytes = 5;  // gRPC over HTTP/2: Compressed-Flag, Message-Length

// Whether `bytes` are exactly one length-prefixed message.
bool IsOneMessage(std::string_view bytes);

// Writes the key's bytes before the message, and reserves room for it. `message_size`: with the prefix, below 4 GiB.
void Start(std::string& key, const CacheRule& rule, std::string_view cluster, const CanonicalRequest& request,
           size_t message_size);

// Of a key that was begun for a message of another size.
void SetMessageSize(std::string& key, size_t message_size);

// Of the layout above: it grows with each change of it.
inline constexpr uint32_t kLayout = 1;
// Whether `key`, of another process, has a path and one message where PathOf and MessageOf look.
bool IsKey(std::string_view key);
std::string_view PathOf(std::string_view key);     // "/pkg.Service/Get"
std::string_view MessageOf(std::string_view key);  // with the prefix
// Whether a purge of `what` covers the key. Errs on the side of yes.
bool Covers(const CachePurge& what, std::string_view key);

}  // namespace sluice::proxy::cache_key
