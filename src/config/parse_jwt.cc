// JWTs: the providers, and what routes ask of them.
#include <algorithm>
#include <set>

#include "config/parsers.h"
#include "config/suggest.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::JwtClaim;
using proxy::JwtProviderOptions;
using proxy::JwtRule;
using proxy::RouteOptions;

// What forwarding, gRPC or the proxy itself has a meaning for.
constexpr std::string_view kReservedNames[] = {"authorization",
                                               "cache-control",
                                               "connection",
                                               "content-length",
                                               "content-type",
                                               "cookie",
                                               "forwarded",
                                               "host",
                                               "keep-alive",
                                               "proxy-connection",
                                               "te",
                                               "traceparent",
                                               "tracestate",
                                               "transfer-encoding",
                                               "upgrade",
                                               "user-agent",
                                               "via",
                                               "x-forwarded-client-cert",
                                               "x-forwarded-for",
                                               "x-forwarded-host",
                                               "x-forwarded-proto",
                                               "x-request-id"};
constexpr std::string_view kReservedPrefixes[] = {"grpc-", "sluice-"};
// Its values are Base64 (gRPC over HTTP/2, "Binary-Header").
constexpr std::string_view kBinarySuffix = "-bin";

bool IsReserved(std::string_view name) {
  return std::ranges::find(kReservedNames, name) != std::end(kReservedNames) || name.ends_with(kBinarySuffix) ||
         std::ranges::any_of(kReservedPrefixes, [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// A list of texts with 1..kNameBytesMax bytes, each once.
void ParseTexts(Section& section, std::string_view key, size_t max, std::vector<std::string>* out) {
  const bool listed = section.Each(key, max, [&](const Node& item, std::string path) {
    const std::string* text = section.Scalar(item, path, "a text");
    if (text == nullptr) return;
    if (text->empty() || text->size() > kNameBytesMax)
      return section.reader().Fail(item, std::move(path), Cat("has not 1 to ", kNameBytesMax, " bytes"));
    if (std::ranges::find(*out, *text) != out->end())
      return section.reader().Fail(item, std::move(path), Cat(Shown(*text), " stands twice"));
    out->push_back(*text);
  });
  if (listed && out->empty()) section.Fail(key, "is empty; leave the key out, or name at least one");
}

void ParseAlgorithms(Section& section, uint8_t* out) {
  std::vector<std::string> names;
  if (section.Find("algorithms") == nullptr) return;
  ParseTexts(section, "algorithms", std::size(kJwtAlgorithms), &names);
  uint8_t bits = 0;
  for (const std::string& name : names) {
    const auto it = std::ranges::find(kJwtAlgorithms, name);
    if (it == std::end(kJwtAlgorithms))
      section.Fail("algorithms", Cat(Shown(name), " is not allowed; allowed: ", Join(kJwtAlgorithms)));
    else
      bits |= static_cast<uint8_t>(1 << (it - std::begin(kJwtAlgorithms)));
  }
  if (bits != 0) *out = bits;
}

void ParseClaims(Section& section, std::vector<JwtClaim>* out) {
  section.Each("forward_claims", kJwtClaimsMax, [&](const Node& item, std::string path) {
    Section claim(section.reader(), item, std::move(path));
    JwtClaim parsed;
    if (claim.Require("claim") != nullptr) claim.Text("claim", &parsed.claim);
    if (!ParseMetadataName(claim, "metadata", &parsed.metadata)) return;
    if (IsReserved(parsed.metadata)) {
      return claim.Fail("metadata", Cat(Shown(parsed.metadata),
                                        " has a meaning of its own; another name is needed, "
                                        "such as \"x-jwt-",
                                        "sub\""));
    }
    if (std::ranges::find(*out, parsed.metadata, &JwtClaim::metadata) != out->end())
      return claim.Fail("metadata", Cat(Shown(parsed.metadata), " is that of another claim already"));
    if (parsed.claim.empty()) return claim.Fail("claim", "is empty; the name of a claim is needed, such as \"sub\"");
    out->push_back(std::move(parsed));
  });
}

void ParseProvider(Section& section, JwtProviderOptions* out) {
  section.Require("name");
  ParseName(section, "name", &out->name);
  if (section.Require("jwks_file") != nullptr && section.Text("jwks_file", &out->jwks_file)) {
    if (out->jwks_file.empty())
      section.Fail("jwks_file", "is empty; the name of a file is needed");
    else
      out->jwks_file = section.FileAt("jwks_file", out->jwks_file, NamedFile::Use::kNeeded);
  }
  if (section.Require("issuer") != nullptr && section.Text("issuer", &out->issuer) && out->issuer.empty())
    section.Fail("issuer", "is empty; what the claim iss of each token is, is needed");
  ParseTexts(section, "audiences", kJwtAudiencesMax, &out->audiences);
  ParseAlgorithms(section, &out->algorithms);
  ParseClaims(section, &out->forward_claims);
  section.Options(proxy::kJwtProviderOptions, out);
}

}  // namespace

void ParseJwt(Section& root, std::vector<JwtProviderOptions>* out) {
  UniqueNames names;
  root.Each("jwt", kJwtProvidersMax, [&](const Node& node, std::string path) {
    Section section(root.reader(), node, path);
    JwtProviderOptions& provider = out->emplace_back();
    ParseProvider(section, &provider);
    if (!provider.name.empty()) names.Add(root.reader(), node, path, Cat("name ", Shown(provider.name)), provider.name);
  });
}

void CheckClaimsStay(Section& forwarding, const std::vector<JwtProviderOptions>& providers,
                     const proxy::ForwardingOptions& options) {
  for (const JwtProviderOptions& provider : providers) {
    for (const JwtClaim& claim : provider.forward_claims) {
      if (std::ranges::find(options.remove, claim.metadata) == options.remove.end()) continue;
      forwarding.Fail("remove", Cat(Shown(claim.metadata), " is metadata of a claim of ", Shown(provider.name),
                                    ", whose gate removes what clients say; another name is needed"));
    }
  }
}

// A route is chosen before tokens are looked at, and again after waits: by what a gate has set it would be another one
// then, with other gates.
void CheckRouteByClaims(Section& section, const std::vector<JwtProviderOptions>& providers, const RouteOptions& route) {
  for (const proxy::MetadataMatch& match : route.metadata) {
    for (const JwtProviderOptions& provider : providers) {
      if (std::ranges::find(provider.forward_claims, match.name, &JwtClaim::metadata) == provider.forward_claims.end())
        continue;
      section.Fail("metadata", Cat(Shown(match.name), " is metadata of a claim of ", Shown(provider.name),
                                   ", by which no route can be chosen: that is done before the token is looked at"));
    }
  }
}

void ParseJwtRule(Section& section, const std::vector<JwtProviderOptions>& providers, const RouteOptions& route,
                  JwtRule* out) {
  section.Options(proxy::kJwtRuleOptions, out);
  if (section.Require("provider") == nullptr || !section.Text("provider", &out->provider)) return;
  std::vector<std::string_view> names;
  for (const JwtProviderOptions& provider : providers) {
    names.push_back(provider.name);
    if (provider.name != out->provider || provider.name.empty()) continue;
    // A call that has waited is routed once more, without it.
    const bool by_token =
        std::ranges::find(route.metadata, "authorization", &proxy::MetadataMatch::name) != route.metadata.end();
    if (by_token && !provider.forward_token)
      section.Fail("provider", Cat(Shown(provider.name),
                                   " takes authorization away (forward_token: false), by which "
                                   "the route is chosen"));
    return;
  }
  const std::string_view near = Suggest(out->provider, names);
  section.Fail("provider", Cat("no provider of jwt is named ", Shown(out->provider),
                               near.empty() ? "" : Cat("; did you mean \"", near, "\"?")));
}

}  // namespace sluice::config
