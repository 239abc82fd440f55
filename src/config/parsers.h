// Parsers: a function for each option struct that is more than a table; each reads a section and reports its mistakes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "config/config.h"
#include "config/descriptor_set.h"
#include "config/section.h"
#include "http2/option_table.h"

namespace sluice::config {

inline constexpr size_t kListenersMax = 256;
inline constexpr size_t kClustersMax = 1000;
// Each is compared with all before it, see CheckReachable.
inline constexpr size_t kRoutesMax = 4000;
inline constexpr size_t kMetadataMatchesMax = 16;
inline constexpr size_t kNameBytesMax = 256;
inline constexpr size_t kCachedMethodsMax = 1000;   // of a route
inline constexpr size_t kRetriedMethodsMax = 1000;  // of a route, where they are listed
inline constexpr size_t kVaryMax = 16;
inline constexpr size_t kRouteClustersMax = 32;                          // that share a route's calls
inline constexpr size_t kRewritesMax = 32;                               // of each list of a rewrite
inline constexpr size_t kAccessRulesMax = 256;                           // of a route
inline constexpr size_t kAccessMessageBytesMax = 256;                    // what a rule says to the client
inline constexpr size_t kRemovedFieldsMax = 64;                          // forwarding.remove
inline constexpr std::string_view kAccessActions[] = {"allow", "deny"};  // by AccessRule::Action
inline constexpr size_t kJwtProvidersMax = 16;
inline constexpr size_t kJwtAudiencesMax = 64;  // of a provider
inline constexpr size_t kJwtClaimsMax = 16;     // of a provider
// By the bits of JwtProviderOptions::Algorithm.
inline constexpr std::string_view kJwtAlgorithms[] = {"RS256", "ES256", "EdDSA"};
inline constexpr std::string_view kTracePropagates[] = {"sampled", "all"};        // by TracingOptions::Propagate
inline constexpr std::string_view kAccessLogFormats[] = {"off", "text", "json"};  // by AccessLogOptions::Format
inline constexpr std::string_view kRequestIds[] = {"off", "keep", "replace"};     // by RequestIds
inline constexpr std::string_view kHotKeys[] = {"off", "hidden", "shown"};        // by InsightOptions::HotKeys
// By RetryOptions::Methods; kListed has none.
inline constexpr std::string_view kRetriedMethods[] = {"declared", "all", "none"};
inline constexpr std::string_view kNoSideEffects = "no_side_effects";  // in the place of a list of cached methods

// The descriptor set of the configuration being parsed.
struct Descriptors {
  enum class State : uint8_t { kNone, kFailed, kLoaded };
  State state = State::kNone;  // kFailed: reported; what depends on it is not reported again
  DescriptorSet set;
};

// The keys of a listener or cluster for its connections: those that stand in it itself, `keepalive` and `http2`.
template <typename Owner>
void ParseConnections(Section& section, Owner* out) {
  section.Options(http2::kLifeOptions, &out->life);
  section.Map("keepalive", http2::kKeepaliveOptions, &out->keepalive);
  section.Map("http2", http2::kSessionOptions, &out->http2);
}

// The files are named, not read: see server/tls_reloader.h.
void ParseListenerTls(Section& section, net::ListenerTlsOptions* out);
// After the endpoints and the source of `cluster`, which need a name to look for in certificates.
void ParseClusterTls(Section& section, const discovery::DiscoveryOptions& discovery, upstream::ClusterOptions* cluster);

void ParseRate(Section& section, limits::RateOptions* out);
void ParseClientRate(Section& section, proxy::ClientRateOptions* out);
void ParseCache(Section& section, proxy::CacheOptions* out);
void ParseTracing(Section& section, proxy::TracingOptions* out);
void ParseAccessLog(Section& section, proxy::AccessLogOptions* out);

void ParseGrpcWeb(Section& section, proxy::GrpcWebOptions* out);
void ParseListeners(Section& root, std::vector<proxy::ListenerOptions>* out);
using Discoveries = std::map<std::string, discovery::DiscoveryOptions>;
// The sources of clusters that have one are put in `discoveries`.
void ParseClusters(Section& root, std::vector<upstream::ClusterOptions>* out, Discoveries* discoveries);
void ParseDiscovery(Section& section, discovery::DiscoveryOptions* out);
// What an endpoint begins with whose addresses are the list.
inline constexpr std::string_view kDnsScheme = "dns:";
// `text`: "dns:...", the only one of a cluster's `endpoints`.
void ParseDnsTarget(Section& section, const std::string& text, discovery::DiscoveryOptions* out);
// Of a cluster's discovery; FinishXdsSource when the cluster has been read.
void ParseXdsSource(Section& section, discovery::DiscoveryOptions* out);
void FinishXdsSource(const upstream::ClusterOptions& cluster, discovery::DiscoveryOptions* out);
void ParseXdsProcess(Section& root, Config* config);
// Of a whole configuration: what the environment names, if a cluster needs it and the key `xds` does not say it.
void FindXdsBootstrap(ParseResult* result);
// Of `discovery`, or of an announcement.
void ParseEtcd(Section& section, discovery::EtcdOptions* out);
void ParseAnnounce(Section& root, std::vector<discovery::AnnounceOptions>* out);
// Either "host:port" or a map. An endpoint with an empty name was wrong, which is reported.
void ParseEndpoint(Reader& reader, const Node& node, const std::string& path, upstream::EndpointOptions* out);
// The list at the key `endpoints`. Returns the sum of the weights.
double ParseEndpoints(Section& section, std::vector<upstream::EndpointOptions>* out);
// The keys of an endpoint that is a map, which may have others besides.
void ParseEndpointKeys(Section& section, upstream::EndpointOptions* out);
// 1..kLocalityBytesMax characters.
void ParseLocality(Section& section, std::string* out);
// Reads the file that the key names.
void ParseDescriptorSet(Section& root, Descriptors* descriptors, std::string* out);
// Before the routes, which name them.
void ParseJwt(Section& root, std::vector<proxy::JwtProviderOptions>* out);
// After the listeners, clusters and providers, whose names the routes must use, and the descriptor set.
void ParseRoutes(Section& root, const std::vector<proxy::ListenerOptions>& listeners,
                 const std::vector<upstream::ClusterOptions>& clusters,
                 const std::vector<proxy::JwtProviderOptions>& providers, const Descriptors& descriptors,
                 std::vector<proxy::RouteOptions>* out);
// Of a route: the names of those of `listeners` that it takes calls from, then the rules.
void ParseRouteListeners(Section& section, const std::vector<proxy::ListenerOptions>& listeners,
                         proxy::RouteOptions* out);
void ParseAccess(Section& section, const std::vector<proxy::ListenerOptions>& listeners, proxy::RouteOptions* out);
// Warns where `route`, at `node`, which asks nothing of its callers, takes what is left of the paths that a route of
// `before` guards, and a listener of both takes paths that are not gRPC's.
void WarnOfGuardsPassed(Reader& reader, const Node& node, const std::string& path,
                        const std::vector<proxy::ListenerOptions>& listeners,
                        const std::vector<proxy::RouteOptions>& before, const proxy::RouteOptions& route);
// After the routes, whose caches what it tells endpoints concerns.
void ParseForwarding(Section& section, const std::vector<proxy::RouteOptions>& routes, proxy::ForwardingOptions* out);
// A list of conditions on metadata.
void ParseMetadata(Section& section, std::string_view key, std::vector<proxy::MetadataMatch>* out);
// What `remove` names goes whenever a route is chosen, also after a gate has set it.
void CheckClaimsStay(Section& forwarding, const std::vector<proxy::JwtProviderOptions>& providers,
                     const proxy::ForwardingOptions& options);
// Of one route, whose conditions `route` has already. `before`: the routes before it.
void ParseHashBy(Reader& reader, const Node& node, const std::string& path, const Descriptors& descriptors,
                 const std::vector<proxy::RouteOptions>& before, const proxy::RouteOptions& route, proxy::HashBy* out);
void ParseCacheRule(Section& section, const Descriptors& descriptors, const proxy::RouteOptions& route,
                    proxy::CacheRule* out);
void CheckRouteByClaims(Section& section, const std::vector<proxy::JwtProviderOptions>& providers,
                        const proxy::RouteOptions& route);
void ParseJwtRule(Section& section, const std::vector<proxy::JwtProviderOptions>& providers,
                  const proxy::RouteOptions& route, proxy::JwtRule* out);
// The clusters that a route's calls go to: `cluster` or `clusters`, and `failover`.
void ParseRouteClusters(Section& section, const std::vector<upstream::ClusterOptions>& clusters,
                        proxy::RouteOptions* out);
// After the route's clusters, none of which it may be.
void ParseMirror(Section& section, const std::vector<upstream::ClusterOptions>& clusters,
                 const proxy::RouteOptions& route, proxy::MirrorOptions* out);
// No name is metadata of a claim of `providers`.
void ParseRewrite(Section& section, const std::vector<proxy::JwtProviderOptions>& providers,
                  proxy::RewriteOptions* out);
void ParseRetry(Section& section, const Descriptors& descriptors, const proxy::RouteOptions& route,
                proxy::RetryOptions* out);
void ParseHedge(Section& section, proxy::HedgeOptions* out);
// With methods: declared, the paths of those that the descriptor set declares and the route takes. After ParseRetry,
// also of a route without the section.
void AddDeclaredMethods(const Descriptors& descriptors, const proxy::RouteOptions& route, proxy::RetryOptions* out);
// Everything else at the top level. After the listeners, whose addresses the admin ports must not take.
void ParseProcess(Section& root, Config* config);
void ParseAdmin(Section& section, Config* config);

// Warns of what is legal and has no effect, or one that was not meant (configuration.md, "Warnings"). After everything
// else, of a configuration without errors: `root` is what `config` was read from.
void Advise(Section& root, const Config& config);

// A condition of a route, or a part of one.
bool IsPathSegment(std::string_view text);  // visible ASCII without /; also the empty one
bool IsMetadataName(std::string_view name);
// The name of one of `clusters`. False: the key is absent, or wrong, which is reported.
bool ParseClusterName(Section& section, std::string_view key, const std::vector<upstream::ClusterOptions>& clusters,
                      std::string* out);
inline constexpr std::string_view kMetadataNameIs = "lower case letters, digits, - _ . and such";
// Requires the key; reports there. True if the name is there and legal.
bool ParseMetadataName(Section& section, std::string_view key, std::string* out);

// A list of metadata names, each once, in its order. `wrong`: why one is not allowed here; empty: it is.
void ParseMetadataNames(Section& section, std::string_view key, size_t max,
                        absl::FunctionRef<std::string_view(std::string_view name)> wrong,
                        std::vector<std::string>* out);

// A name: 1..kNameBytesMax visible ASCII characters. True if the key is there and its value is one.
bool ParseName(Section& section, std::string_view key, std::string* out);
// A list of names that may stand in allowed_names; `what` says so in a message. One that is there already is an error
// if `unique`.
void ParseAllowedNames(Section& section, std::string_view key, std::string_view what, bool unique,
                       std::vector<std::string>* out);
// Names, or addresses, that may stand once only.
class UniqueNames {
 public:
  // False after reporting, at `node`, that another place has the name: "name "a" is also that of clusters[0]", with
  // that place's line where it stands in another file.
  bool Add(Reader& reader, const Node& node, const std::string& path, std::string_view what, const std::string& name);

 private:
  std::map<std::string, std::pair<std::string, const Node*>> places_;
};
// " (a.yaml:3:5)" where that is another file than the one of `node`, else nothing.
std::string ElsewhereOf(const Node& place, const Node& node);
// An address to listen on: an IP with a port, or a Unix socket. Reports at the key.
bool ParseListenAddress(Section& section, std::string_view key, const std::string& text, net::Address* out);
// 0.0.0.0 or ::, every address of this host of that family.
bool IsAny(const net::Address& address);
// The system refuses to listen on both: the same address, or one port of a family where one of them IsAny.
bool Overlap(const net::Address& a, const net::Address& b);

// Parse, and every key the parser asked for as a pattern: "clusters[].name".
ParseResult ParseAndListKeys(std::string_view yaml, std::string_view file, std::set<std::string>* keys,
                             const Inputs& inputs = {});

}  // namespace sluice::config
