#include "proxy/call/forwarded_fields.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "proxy/canonical/field_name.h"

namespace sluice::proxy {
namespace {

using http2::Token;

constexpr std::string_view kClientCert = "x-forwarded-client-cert";

bool Names(const std::vector<MetadataMatch>& conditions) {
  return std::any_of(conditions.begin(), conditions.end(), [](const auto& match) { return match.name == kClientCert; });
}

bool LooksAtClientCert(const RouteOptions& route) {
  const std::vector<std::string>& vary = route.cache.vary;
  return route.hash_by.metadata == kClientCert || route.client_rate_limit.metadata == kClientCert ||
         std::find(vary.begin(), vary.end(), kClientCert) != vary.end() || Names(route.metadata) ||
         std::any_of(route.access.begin(), route.access.end(),
                     [](const AccessRule& rule) { return Names(rule.metadata); });
}

// Fields of these names, and of those that some server takes for one of them.
void RemoveAll(const std::vector<std::string>& names, http2::HeaderList& request) {
  for (const std::string& name : names) {
    request.Remove(name);
    std::string alias;
    do {
      alias.clear();
      for (const http2::Field* field : request) {
        if (SameFieldName(field->name(), name)) alias = field->name();
      }
      if (!alias.empty()) request.Remove(alias);
    } while (!alias.empty());
  }
}

// All fields of that name as one, in the order of the chain (RFC 9110 5.3).
std::string Joined(const http2::HeaderList& request, Token token) {
  std::string chain;
  for (const http2::Field* field : request) {
    if (field->token != token) continue;
    if (!chain.empty()) chain.append(", ");
    chain.append(field->value());
  }
  return chain;
}

// A proxy that is trusted may say the certificates of those before it; its own is said here.
void SetClientCert(const Client& client, base::TimePoint now, http2::HeaderList& request) {
  const ClientCertificate* certificate = client.certificate.get();
  std::string_view ours;
  if (certificate != nullptr && now < certificate->ends) ours = certificate->forwarded;
  const std::string said = Joined(request, Token::kXForwardedClientCert);
  std::string_view others = said;
  if (!ours.empty() && others.ends_with(ours)) others.remove_suffix(ours.size());  // it was said before
  while (others.ends_with(',') || others.ends_with(' ')) others.remove_suffix(1);
  std::string chain(LastElements(others, client.TrustedHops(now), /*quoted=*/true));
  if (!chain.empty() && !ours.empty()) chain += ',';
  chain.append(ours);
  if (chain == said) return;
  if (chain.empty())
    request.Remove(Token::kXForwardedClientCert);
  else
    request.Set(Token::kXForwardedClientCert, kClientCert, chain);
}

}  // namespace

std::string_view LastElements(std::string_view chain, size_t count, bool quoted) {
  std::vector<size_t> starts = {0};
  bool inside = false;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (quoted && chain[i] == '\\') {
      if (!inside) return {};
      ++i;
    } else if (quoted && chain[i] == '"') {
      inside = !inside;
    } else if (chain[i] == ',' && !inside) {
      starts.push_back(i + 1);
    }
  }
  if (count == 0 || inside) return {};
  std::string_view last = chain.substr(starts[starts.size() - std::min(count, starts.size())]);
  while (last.starts_with(' ') || last.starts_with('\t')) last.remove_prefix(1);
  while (last.ends_with(' ') || last.ends_with('\t')) last.remove_suffix(1);
  return last;
}

std::shared_ptr<const FieldGuard> MakeFieldGuard(const ForwardingOptions& forwarding,
                                                 const std::vector<RouteOptions>& routes,
                                                 std::vector<std::string> claims) {
  FieldGuard guard;
  guard.claims = std::move(claims);
  guard.names = forwarding.remove;
  guard.client_cert_decides = std::any_of(routes.begin(), routes.end(), LooksAtClientCert);
  const bool none = guard.names.empty() && guard.claims.empty();
  if (none && !guard.client_cert_decides && !forwarding.client_cert) return nullptr;
  return std::make_shared<const FieldGuard>(std::move(guard));
}

void GuardFields(const FieldGuard& guard, const ForwardingOptions& forwarding, const Client& client,
                 base::TimePoint now, http2::HeaderList& request) {
  RemoveAll(guard.names, request);
  if (forwarding.client_cert)
    SetClientCert(client, now, request);
  else
    request.Remove(Token::kXForwardedClientCert);
}

void GuardClaims(const FieldGuard& guard, http2::HeaderList& request) { RemoveAll(guard.claims, request); }

void GuardTrailers(const FieldGuard* guard, const RouteTable& routes, http2::HeaderList& trailers) {
  const auto named = [](const std::vector<std::string>& names, std::string_view name) {
    return std::any_of(names.begin(), names.end(), [name](const auto& one) { return SameFieldName(one, name); });
  };
  std::vector<std::string> gone;
  for (const http2::Field* field : trailers) {
    const std::string_view name = field->name();
    if (field->token != Token::kOther || IsAliasOfKnown(name) || routes.DecidesBy(name) ||
        (guard != nullptr && (named(guard->names, name) || named(guard->claims, name))))
      gone.emplace_back(name);
  }
  for (const std::string& name : gone) trailers.Remove(name);
}

bool GuardDecides(const FieldGuard& guard, const http2::HeaderList& request) {
  const auto has = [&](const std::string& name) {
    return std::any_of(request.begin(), request.end(),
                       [&](const http2::Field* field) { return SameFieldName(field->name(), name); });
  };
  return guard.client_cert_decides || std::any_of(guard.names.begin(), guard.names.end(), has) ||
         std::any_of(guard.claims.begin(), guard.claims.end(), has);
}

void SetXForwarded(const Client& client, base::TimePoint now, http2::HeaderList& request) {
  const uint32_t trusted = client.TrustedHops(now);
  const std::string said = Joined(request, Token::kXForwardedFor);
  std::string chain(LastElements(said, trusted, /*quoted=*/false));
  if (!chain.empty()) chain.append(", ");
  chain.append(client.address());
  request.Set(Token::kXForwardedFor, "x-forwarded-for", chain);
  const http2::Field* authority = request.Find(Token::kAuthority);
  if (trusted == 0 || request.Find(Token::kXForwardedProto) == nullptr)
    request.Set(Token::kXForwardedProto, "x-forwarded-proto", client.tls ? "https" : "http");
  if (trusted > 0 && request.Find(Token::kXForwardedHost) != nullptr) return;
  if (authority != nullptr)
    request.Set(Token::kXForwardedHost, "x-forwarded-host", authority->value());
  else
    request.Remove(Token::kXForwardedHost);
}

}  // namespace sluice::proxy
