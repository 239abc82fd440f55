// Parsers: one function for each owner's option struct; each reads a section and reports what is wrong with
// it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/section.h"

namespace sluice::config {

inline constexpr size_t kListenersMax = 256;
inline constexpr size_t kClustersMax = 1000;
// Each is compared with all before it, see CheckReachable.
inline constexpr size_t kRoutesMax = 4000;
inline constexpr size_t kMetadataMatchesMax = 16;
inline constexpr size_t kNameBytesMax = 256;

void ParseSession(Reader& reader, const Node& node, std::string path, http2::SessionOptions* out);
void ParseKeepalive(Reader& reader, const Node& node, std::string path, http2::KeepaliveOptions* out);

void ParseListeners(Section& root, std::vector<proxy::ListenerOptions>* out);
void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out);
// After the clusters, whose names the routes must use.
void ParseRoutes(Section& root, const std::vector<upstream::ClusterOptions>& clusters,
                 std::vector<proxy::RouteOptions>* out);
// Everything else at the top level. After the listeners, whose addresses the admin ports must not take.
void ParseProcess(Section& root, Config* config);

// A name: 1..kNameBytesMax visible ASCII characters. True if the key is there and its value is one.
bool ParseName(Section& section, std::string_view key, std::string* out);
// An address to listen on: an IP with a port, or a Unix socket. Reports at the key.
bool ParseListenAddress(Section& section, std::string_view key, const std::string& text, net::Address* out);

// Parse, and every key the parser asked for as a pattern: "clusters[].name".
ParseResult ParseAndListKeys(std::string_view yaml, std::string_view file, std::set<std::string>* keys);

}  // namespace sluice::config
