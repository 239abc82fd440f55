// Parsers: one function for each owner's option struct; each reads a section and reports what is wrong with
// it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "config/descriptor_set.h"
#include "config/section.h"

namespace sluice::config {

inline constexpr size_t kListenersMax = 256;
inline constexpr size_t kClustersMax = 1000;
// Each is compared with all before it, see CheckReachable.
inline constexpr size_t kRoutesMax = 4000;
inline constexpr size_t kMetadataMatchesMax = 16;
inline constexpr size_t kNameBytesMax = 256;
inline constexpr size_t kCachedMethodsMax = 1000;  // of a route
inline constexpr size_t kVaryMax = 16;

// The descriptor set of the configuration being parsed.
struct Descriptors {
  enum class State : uint8_t { kNone, kFailed, kLoaded };
  State state = State::kNone;  // kFailed: reported; what depends on it is not reported again
  DescriptorSet set;
};

void ParseSession(Reader& reader, const Node& node, std::string path, http2::SessionOptions* out);
void ParseLife(Section& section, http2::LifeOptions* out);
void ParseKeepalive(Reader& reader, const Node& node, std::string path, http2::KeepaliveOptions* out);

// The files are named, not read: see server/tls_store.h.
void ParseListenerTls(Reader& reader, const Node& node, std::string path, net::ListenerTlsOptions* out);
// After the endpoints of `cluster`, which need a name to look for in certificates.
void ParseClusterTls(Reader& reader, const Node& node, std::string path, upstream::ClusterOptions* cluster);

void ParseRate(Reader& reader, const Node& node, std::string path, limits::RateOptions* out);
void ParseConcurrency(Reader& reader, const Node& node, std::string path, limits::ConcurrencyOptions* out);
void ParseClientRate(Reader& reader, const Node& node, std::string path, proxy::ClientRateOptions* out);
void ParseCache(Reader& reader, const Node& node, proxy::CacheOptions* out);

void ParseListeners(Section& root, std::vector<proxy::ListenerOptions>* out);
void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out);
// Reads the file that the key names.
void ParseDescriptorSet(Section& root, Descriptors* descriptors, std::string* out);
// After the clusters, whose names the routes must use, and the descriptor set.
void ParseRoutes(Section& root, const std::vector<upstream::ClusterOptions>& clusters, const Descriptors& descriptors,
                 std::vector<proxy::RouteOptions>* out);
// Of one route, whose conditions `route` has already. `before`: the routes before it.
void ParseHashBy(Reader& reader, const Node& node, const std::string& path, const Descriptors& descriptors,
                 const std::vector<proxy::RouteOptions>& before, const proxy::RouteOptions& route, proxy::HashBy* out);
void ParseCacheRule(Reader& reader, const Node& node, std::string path, const Descriptors& descriptors,
                    const proxy::RouteOptions& route, proxy::CacheRule* out);
// Everything else at the top level. After the listeners, whose addresses the admin ports must not take.
// `file` is the configuration's.
void ParseProcess(Section& root, std::string_view file, Config* config);
void ParseAdmin(Reader& reader, const Node& node, std::string_view file, Config* config);

// A condition of a route, or a part of one.
bool IsPathSegment(std::string_view text);  // visible ASCII without /; also the empty one
bool IsMetadataName(std::string_view name);
inline constexpr std::string_view kMetadataNameIs = "lower case letters, digits, - _ . and such";
// Requires the key; reports there. True if the name is there and legal.
bool ParseMetadataName(Section& section, std::string_view key, std::string* out);

// A name: 1..kNameBytesMax visible ASCII characters. True if the key is there and its value is one.
bool ParseName(Section& section, std::string_view key, std::string* out);
// An address to listen on: an IP with a port, or a Unix socket. Reports at the key.
bool ParseListenAddress(Section& section, std::string_view key, const std::string& text, net::Address* out);

// Parse, and every key the parser asked for as a pattern: "clusters[].name".
ParseResult ParseAndListKeys(std::string_view yaml, std::string_view file, std::set<std::string>* keys);

}  // namespace sluice::config
