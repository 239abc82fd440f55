// The key of a call by what its headers and its connection say: it decides which endpoint of a ring, and which of the
// clusters that share a route's calls, takes the call.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/hash.h"
#include "proxy/canonical/request.h"
#include "proxy/client.h"
#include "proxy/metadata_key.h"
#include "proxy/options.h"
#include "upstream/options.h"

namespace sluice::proxy {

// By the fleet's secret, or as Envoy and gRPC hash a header.
inline uint64_t HashOfKey(std::string_view key, upstream::Ring ring, uint64_t seed) {
  return ring == upstream::Ring::kXds ? base::XxHash64(key) : base::Hash64(key, seed);
}

// nullopt: the call has no such key, or it lies in the request's message.
[[gnu::always_inline]] inline std::optional<uint64_t> KeyOfHeaders(const HashBy& by, upstream::Ring ring,
                                                                   const CanonicalRequest& request,
                                                                   const Client& client, uint64_t seed) {
  switch (by.kind) {
    case HashBy::Kind::kPeer:
      return ring == upstream::Ring::kXds ? base::XxHash64(client.address()) : base::Hash64(client.peer_hash, seed);
    case HashBy::Kind::kMethod:
      if (const http2::Field* path = request.Find(http2::Token::kPath)) return HashOfKey(path->value(), ring, seed);
      break;
    case HashBy::Kind::kMetadata: {
      std::string joined;
      if (const auto value = MetadataKey(request, by.metadata, by.repeated, joined))
        return HashOfKey(*value, ring, seed);
      break;
    }
    case HashBy::Kind::kRandom:
    case HashBy::Kind::kField:
      break;
  }
  return std::nullopt;
}

// Where the call stands among the clusters that share its route's calls (ClusterSplit::Of). The key is hashed once
// more, so that the choice of the cluster and the place on its ring have nothing in common. `key`: of Ring::kSluice,
// the fleet's secret, also where the ring is kXds, whose hash a client can aim.
inline uint32_t SplitPosition(uint64_t key) {
  constexpr uint64_t kSplitSalt = 0x51c2a7e4b90d3f68;
  return static_cast<uint32_t>(base::Hash64(key, kSplitSalt) >> 32);
}

}  // namespace sluice::proxy
