// Routes, as YAML.
#include <algorithm>

#include "config/dumpers.h"
#include "config/parsers.h"
#include "config/route_values.h"
#include "config/text.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::HashBy;
using proxy::MetadataMatch;
using proxy::RetryOptions;
using proxy::RouteOptions;

// "/pkg.Service/Get" -> "pkg.Service/Get"
std::string_view NameOf(std::string_view path) { return path.substr(1); }

void DumpMatch(DumpWriter& out, const MetadataMatch& match) {
  out.Text("name", match.name);
  if (match.kind == MetadataMatch::Kind::kPresent)
    out.Line("present", "true");
  else
    out.Text(match.kind == MetadataMatch::Kind::kExact ? "exact" : "prefix", match.value);
}

void DumpAccess(DumpWriter& out, const proxy::AccessRule& rule) {
  using Action = proxy::AccessRule::Action;
  out.Choice("action", kAccessActions, rule.action);
  if (!rule.clients.empty()) out.Texts("clients", rule.clients);
  if (!rule.metadata.empty()) out.Each("metadata", rule.metadata, [&](const auto& match) { DumpMatch(out, match); });
  if (rule.action != Action::kDeny) return;
  out.Text("status", CodeName(rule.status));
  if (!rule.message.empty()) out.Text("message", rule.message);
}

void DumpHashBy(DumpWriter& out, const HashBy& by) {
  switch (by.kind) {
    case HashBy::Kind::kRandom:
      return out.Text("hash_by", "random");
    case HashBy::Kind::kMethod:
      return out.Text("hash_by", "method");
    case HashBy::Kind::kPeer:
      return out.Text("hash_by", "peer");
    case HashBy::Kind::kMetadata:
      return out.Map("hash_by", [&] {
        out.Text("metadata", by.metadata.text());
        out.Choice("repeated", proxy::kRepeated, by.repeated);
      });
    case HashBy::Kind::kField:
      return out.Map("hash_by", [&] {
        out.Text("field", by.field);
        out.Options(proxy::kHashByOptions, by);
      });
  }
}

void DumpRetry(DumpWriter& out, const RetryOptions& retry, bool declared) {
  using Methods = RetryOptions::Methods;
  out.Options(proxy::kRetryOptions, retry);
  if (retry.methods == Methods::kListed) {
    std::vector<std::string> names;
    for (const std::string& path : retry.paths) names.emplace_back(NameOf(path));
    out.Texts("methods", names);
  } else if (retry.methods != Methods::kDeclared || declared) {
    out.Choice("methods", kRetriedMethods, retry.methods);
  }
  std::vector<std::string> codes;
  for (uint8_t code = 1; code < kCodeCount; ++code) {
    if ((retry.on >> code & 1) != 0) codes.emplace_back(CodeName(code));
  }
  out.Texts("on", codes);
  out.Map("backoff", proxy::kRetryBackoffOptions, retry);
}

void DumpClientRate(DumpWriter& out, const proxy::ClientRateOptions& client) {
  if (client.metadata.empty()) {
    out.Text("by", "peer");
  } else {
    out.Map("by", [&] {
      out.Text("metadata", client.metadata.text());
      out.Choice("repeated", proxy::kRepeated, client.repeated);
    });
  }
  out.Options(limits::kRateOptions, client.rate);
  out.Options(proxy::kClientRateOptions, client);
}

void DumpCacheRule(DumpWriter& out, const proxy::CacheRule& rule) {
  out.Options(proxy::kCachedMethodOptions, rule.methods[0]);
  if (rule.methods.size() > kCachedMethodsMax) {
    out.Text("methods", kNoSideEffects);  // no list has so many
  } else {
    out.Each("methods", rule.methods, [&](const proxy::CachedMethod& method) {
      out.Text("name", NameOf(method.path));
      out.Options(proxy::kCachedMethodOptions, method);
    });
  }
  out.Texts("vary", rule.vary);
  std::vector<std::string> codes;
  for (const uint8_t code : rule.errors) codes.emplace_back(CodeName(code));
  out.Texts("errors", codes);
  out.Options(proxy::kCacheRuleOptions, rule);
}

void DumpFields(DumpWriter& out, std::string_view key, const proxy::FieldRewrite& fields) {
  const auto entry = [&](const proxy::FieldRewrite::Entry& field) {
    out.Text("name", field.name);
    if (field.name == "authorization" || field.name == "cookie")
      out.Secret("value", field.value);
    else
      out.Text("value", field.value);
  };
  if (fields.empty()) return;
  out.Map(key, [&] {
    if (!fields.remove.empty()) out.Texts("remove", fields.remove);
    if (!fields.set.empty()) out.Each("set", fields.set, entry);
    if (!fields.add.empty()) out.Each("add", fields.add, entry);
  });
}

}  // namespace

void DumpRoute(DumpWriter& out, const RouteOptions& route, bool declared) {
  out.Text("name", route.name);
  out.Text("service", route.service);
  out.Text("method", route.method);
  out.Text("prefix", route.prefix);
  out.Text("authority", route.authority);
  out.Each("metadata", route.metadata, [&](const auto& match) { DumpMatch(out, match); });
  if (!route.listeners.empty()) out.Texts("listeners", route.listeners);
  if (route.clusters.empty()) {
    out.Text("cluster", route.cluster);
  } else {
    out.Each("clusters", route.clusters, [&](const proxy::WeightedCluster& cluster) {
      out.Text("name", cluster.name);
      out.Options(proxy::kWeightedClusterOptions, cluster);
    });
  }
  if (!route.failover.empty()) out.Text("failover", route.failover);
  DumpHashBy(out, route.hash_by);
  out.Options(proxy::kRouteOptions, route);
  out.Map("retry", [&] { DumpRetry(out, route.retry, declared); });
  if (route.hedge != proxy::HedgeOptions()) {
    out.Map("hedge", [&] {
      if (route.hedge.delay.count() == 0)
        out.Text("delay", "auto");
      else
        out.Options(proxy::kHedgeDelayOptions, route.hedge);
      out.Options(proxy::kHedgeOptions, route.hedge);
    });
  }
  out.Map("rate_limit", limits::kRateOptions, route.rate_limit);
  if (route.client_rate_limit != proxy::ClientRateOptions())
    out.Map("client_rate_limit", [&] { DumpClientRate(out, route.client_rate_limit); });
  if (!route.access.empty()) out.Each("access", route.access, [&](const auto& rule) { DumpAccess(out, rule); });
  if (route.cache.enabled()) out.Map("cache", [&] { DumpCacheRule(out, route.cache); });
  if (route.mirror.enabled()) {
    out.Map("mirror", [&] {
      out.Text("cluster", route.mirror.cluster);
      out.Options(proxy::kMirrorOptions, route.mirror);
    });
  }
  if (route.rewrite.enabled()) {
    out.Map("rewrite", [&] {
      if (!route.rewrite.authority.empty()) out.Text("authority", route.rewrite.authority);
      DumpFields(out, "request", route.rewrite.request);
      DumpFields(out, "response", route.rewrite.response);
    });
  }
  if (route.jwt.enabled()) {
    out.Map("jwt", [&] {
      out.Text("provider", route.jwt.provider);
      out.Options(proxy::kJwtRuleOptions, route.jwt);
    });
  }
}

void DumpJwtProvider(DumpWriter& out, const proxy::JwtProviderOptions& provider) {
  out.Text("name", provider.name);
  out.File("jwks_file", provider.jwks_file);
  out.Text("issuer", provider.issuer);
  if (!provider.audiences.empty()) out.Texts("audiences", provider.audiences);
  std::vector<std::string> algorithms;
  for (size_t i = 0; i < std::size(kJwtAlgorithms); ++i) {
    if ((provider.algorithms >> i & 1) != 0) algorithms.emplace_back(kJwtAlgorithms[i]);
  }
  out.Texts("algorithms", algorithms);
  out.Each("forward_claims", provider.forward_claims, [&](const proxy::JwtClaim& claim) {
    out.Text("claim", claim.claim);
    out.Text("metadata", claim.metadata);
  });
  out.Options(proxy::kJwtProviderOptions, provider);
}

}  // namespace sluice::config
