// Routes: their conditions, and the rules between them and the clusters.
#include <algorithm>

#include "config/parsers.h"
#include "config/route_cover.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::MetadataMatch;
using proxy::RouteOptions;

bool AllOf(std::string_view text, bool (*allowed)(char)) { return std::all_of(text.begin(), text.end(), allowed); }
bool IsVisible(char c) { return c > ' ' && c <= '~'; }
bool IsPathSegmentChar(char c) { return IsVisible(c) && c != '/'; }
// gRPC's ASCII-Value (gRPC over HTTP/2, "Custom-Metadata").
bool IsValueChar(char c) { return c >= ' ' && c <= '~'; }
// RFC 9110 5.6.2 tchar, without upper case: RFC 9113 8.2.1.
bool IsNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

// A text condition of the path or authority; empty means any.
void ParseCondition(Section& section, std::string_view key, bool (*allowed)(char), std::string_view what,
                    std::string* out) {
  std::string text;
  if (!section.Text(key, &text)) return;
  if (AllOf(text, allowed)) {
    *out = std::move(text);
  } else {
    section.Fail(key, Cat(Shown(text), " is not ", what));
  }
}

void ParsePath(Section& section, RouteOptions* out) {
  ParseCondition(section, "service", IsPathSegmentChar, "a service name like pkg.Service, without /", &out->service);
  ParseCondition(section, "method", IsPathSegmentChar, "a method name like Get, without /", &out->method);
  ParseCondition(section, "prefix", IsVisible, "the start of a path like /pkg.Service/Get", &out->prefix);
  if (!out->prefix.empty() && out->prefix[0] != '/') {
    section.Fail("prefix", Cat(Shown(out->prefix), " does not begin with /, but every path does"));
  }
  if (!out->method.empty() && out->service.empty()) section.Fail("method", "is only allowed together with service");
  if (!out->prefix.empty() && !out->service.empty()) section.Fail("prefix", "is not allowed together with service");
}

void ParseAuthority(Section& section, RouteOptions* out) {
  ParseCondition(section, "authority", IsPathSegmentChar, "an authority like users.example.com", &out->authority);
  if (out->authority.ends_with('.')) out->authority.pop_back();  // the same name: RFC 1034 3.1
  if (out->authority.empty() && section.Find("authority") != nullptr && section.Find("authority")->text == ".") {
    return section.Fail("authority", "\".\" is not an authority like users.example.com");
  }
  const size_t star = out->authority.rfind('*');
  if (star == out->authority.npos) return;
  if (star != 0 || out->authority.size() < 3 || out->authority[1] != '.') {
    section.Fail("authority", Cat(Shown(out->authority), ": * is only allowed as in *.example.com"));
  }
}

void ParseMatch(Reader& reader, const Node& node, std::string path, MetadataMatch* out) {
  Section section(reader, node, std::move(path));
  ParseMetadataName(section, "name", &out->name);
  bool present = true;
  const bool has_present = section.Find("present") != nullptr;
  section.Bool("present", &present);
  if (!present) section.Fail("present", "false is not supported; only true is allowed");
  const bool exact = section.Text("exact", &out->value);
  const bool prefix = section.Text("prefix", &out->value);
  if (int{has_present} + int{exact} + int{prefix} > 1) {
    reader.Fail(node, section.path(), "has more than one of exact, prefix, present; one is allowed");
  }
  if (exact) out->kind = MetadataMatch::Kind::kExact;
  if (prefix) out->kind = MetadataMatch::Kind::kPrefix;
  if (!AllOf(out->value, IsValueChar)) {
    section.Fail(exact ? "exact" : "prefix", Cat(Shown(out->value), " is not printable ASCII"));
  }
}

// Where it chooses no endpoint it looks like a mistake in the cluster.
void CheckHashBy(Section& section, const std::vector<upstream::ClusterOptions>& clusters, const RouteOptions& route) {
  const auto hashes = [&](const std::string& name) {
    return std::any_of(clusters.begin(), clusters.end(), [&](const upstream::ClusterOptions& cluster) {
      return cluster.name == name && cluster.policy == upstream::Policy::kRingHash;
    });
  };
  if (!route.clusters.empty()) return;  // it chooses the cluster
  const bool known = std::any_of(clusters.begin(), clusters.end(), [&](const upstream::ClusterOptions& cluster) {
    return cluster.name == route.cluster;
  });
  if (!known || route.hash_by.kind == proxy::HashBy::Kind::kRandom || hashes(route.cluster) || hashes(route.failover))
    return;
  section.Warn("hash_by",
               Cat("chooses no endpoint: the policy of cluster ", Shown(route.cluster), " is not ring_hash"));
}

// What tells callers apart elsewhere in the route may decide what their answers are, and one caller must not get
// another's.
void CheckIdentity(Section& cache, const RouteOptions& route) {
  if (route.cache.shared) return;
  std::string_view said;
  const std::vector<std::string>& vary = route.cache.vary;
  const auto check = [&](std::string_view where, const std::string& name) {
    if (name.empty() || name == said || std::find(vary.begin(), vary.end(), name) != vary.end()) return;
    said = name;
    cache.Fail("vary", Cat("lacks ", Shown(name), ", by which ", where,
                           " tells callers apart, so that one could get another's answer; allowed: with it, or shared: "
                           "true where answers are the same for all"));
  };
  check("hash_by", route.hash_by.metadata.text());
  check("client_rate_limit", route.client_rate_limit.metadata.text());
  for (const MetadataMatch& match : route.metadata)
    check("metadata", match.name);  // another route may answer otherwise
}

void ParseRoute(Reader& reader, const Node& node, const std::string& path,
                const std::vector<proxy::ListenerOptions>& listeners,
                const std::vector<upstream::ClusterOptions>& clusters,
                const std::vector<proxy::JwtProviderOptions>& providers, const Descriptors& descriptors,
                const std::vector<RouteOptions>& before, RouteOptions* out) {
  Section section(reader, node, path);
  out->name = path;
  ParseName(section, "name", &out->name);
  ParsePath(section, out);
  ParseAuthority(section, out);
  ParseMetadata(section, "metadata", &out->metadata);
  ParseRouteListeners(section, listeners, out);
  ParseRouteClusters(section, clusters, out);
  if (const Node* hash_by = section.Find("hash_by")) {
    ParseHashBy(reader, *hash_by, section.PathOf("hash_by"), descriptors, before, *out, &out->hash_by);
    CheckHashBy(section, clusters, *out);
  }
  section.Options(proxy::kRouteOptions, out);
  section.Map("retry", [&](Section& retry) { ParseRetry(retry, descriptors, *out, &out->retry); });
  AddDeclaredMethods(descriptors, *out, &out->retry);
  section.Map("hedge", [&](Section& hedge) { ParseHedge(hedge, &out->hedge); });
  section.Map("rate_limit", [&](Section& rate) { ParseRate(rate, &out->rate_limit); });
  section.Map("client_rate_limit", [&](Section& rate) { ParseClientRate(rate, &out->client_rate_limit); });
  CheckRouteByClaims(section, providers, *out);
  section.Map("jwt", [&](Section& jwt) { ParseJwtRule(jwt, providers, *out, &out->jwt); });
  ParseAccess(section, listeners, out);
  section.Map("mirror", [&](Section& mirror) { ParseMirror(mirror, clusters, *out, &out->mirror); });
  section.Map("rewrite", [&](Section& rewrite) { ParseRewrite(rewrite, providers, &out->rewrite); });
  section.Map("cache", [&](Section& cache) {
    ParseCacheRule(cache, descriptors, *out, &out->cache);
    CheckIdentity(cache, *out);
  });
}

// A dead route is always a mistake in the order, and calls would silently go elsewhere.
void CheckReachable(Reader& reader, const Node& node, const std::string& path, const std::vector<RouteOptions>& before,
                    const std::vector<std::pair<std::string, const Node*>>& paths, const RouteOptions& route) {
  for (size_t i = 0; i < before.size(); ++i) {
    if (!Covers(before[i], route)) continue;
    reader.Fail(
        node, path,
        Cat("never takes a call: ", paths[i].first, ElsewhereOf(*paths[i].second, node), " before it takes them all"));
    return;
  }
}

}  // namespace

bool IsPathSegment(std::string_view text) { return AllOf(text, IsPathSegmentChar); }

bool IsMetadataName(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytesMax && AllOf(name, IsNameChar);
}

bool ParseClusterName(Section& section, std::string_view key, const std::vector<upstream::ClusterOptions>& clusters,
                      std::string* out) {
  if (!section.Text(key, out)) return false;
  std::vector<std::string_view> names;
  for (const auto& cluster : clusters) {
    if (cluster.name == *out && !out->empty()) return true;
    if (!cluster.name.empty()) names.push_back(cluster.name);
  }
  const std::string_view near = section.reader().full() ? "" : Suggest(*out, names);
  if (names.size() > 10) names.resize(10);
  section.Fail(key, Cat("no cluster is named ", Shown(*out),
                        near.empty() ? Cat("; there are: ", Join(names)) : Cat("; did you mean \"", near, "\"?")));
  return false;
}

bool ParseMetadataName(Section& section, std::string_view key, std::string* out) {
  std::string name;
  if (section.Require(key) == nullptr || !section.Text(key, &name)) return false;
  if (!IsMetadataName(name)) {
    section.Fail(key, Cat(Shown(name), " is not a metadata name: ", kMetadataNameIs));
    return false;
  }
  *out = std::move(name);
  return true;
}

void ParseMetadataNames(Section& section, std::string_view key, size_t max,
                        absl::FunctionRef<std::string_view(std::string_view name)> wrong,
                        std::vector<std::string>* out) {
  section.Each(key, max, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "a metadata name");
    if (name == nullptr) return;
    if (!IsMetadataName(*name)) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is not a metadata name: ", kMetadataNameIs));
    } else if (const std::string_view why = wrong(*name); !why.empty()) {
      section.reader().Fail(node, path, Cat(Shown(*name), why));
    } else if (std::find(out->begin(), out->end(), *name) != out->end()) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is there twice"));
    } else {
      out->push_back(*name);
    }
  });
}

void ParseMetadata(Section& section, std::string_view key, std::vector<MetadataMatch>* out) {
  section.Each(key, kMetadataMatchesMax, [&](const Node& item, std::string path) {
    ParseMatch(section.reader(), item, std::move(path), &out->emplace_back());
  });
}

void ParseRoutes(Section& root, const std::vector<proxy::ListenerOptions>& listeners,
                 const std::vector<upstream::ClusterOptions>& clusters,
                 const std::vector<proxy::JwtProviderOptions>& providers, const Descriptors& descriptors,
                 std::vector<RouteOptions>* out) {
  const Node* routes = root.Find("routes");
  if (routes == nullptr && clusters.size() == 1) {
    RouteOptions& all = out->emplace_back();
    all.name = "default";
    all.cluster = clusters[0].name;
    AddDeclaredMethods(descriptors, all, &all.retry);
    return;
  }
  if (routes == nullptr && clusters.size() > 1) {
    root.Require("routes");  // which cluster would a call go to?
    return;
  }
  UniqueNames names;
  std::vector<std::pair<std::string, const Node*>> paths;  // of the routes in *out
  const bool listed = root.Each("routes", kRoutesMax, [&](const Node& node, std::string path) {
    RouteOptions route;
    // A route with a mistake has not the conditions that were meant; only whole routes are compared.
    const size_t errors_before = root.reader().error_count();
    ParseRoute(root.reader(), node, path, listeners, clusters, providers, descriptors, *out, &route);
    names.Add(root.reader(), node, path, Cat("name ", Shown(route.name)), route.name);
    if (root.reader().error_count() != errors_before) return;
    CheckReachable(root.reader(), node, path, *out, paths, route);
    WarnOfGuardsPassed(root.reader(), node, path, listeners, *out, route);
    paths.emplace_back(path, &node);
    out->push_back(std::move(route));
  });
  if (listed && routes->items.empty()) root.Fail("routes", "is empty; leave the key out or write at least one route");
}

}  // namespace sluice::config
