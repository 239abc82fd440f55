#include "server/gate_set.h"

#include <algorithm>
#include <utility>

#include "proxy/call/access_gate.h"
#include "proxy/call/gate.h"

namespace sluice::server {

namespace {

// The endpoint sees of the credential what is forwarded of its claims, and the cache's key has all of that.
bool KeyHasCredential(const proxy::RouteOptions& route, const proxy::JwtProviderOptions& provider) {
  const std::vector<std::string>& vary = route.cache.vary;
  return !provider.forward_token && !provider.forward_claims.empty() &&
         std::ranges::all_of(provider.forward_claims, [&](const proxy::JwtClaim& claim) {
           return std::ranges::find(vary, claim.metadata) != vary.end();
         });
}

}  // namespace

base::Result<std::shared_ptr<const proxy::Gate>> GateSet::JwtGateOf(const proxy::RouteOptions& route, const Plan& plan,
                                                                    const proxy::GateList* former) {
  const auto provider = plan.jwt.Of(route.jwt.provider);
  const auto failed = [&](const std::string& why) {
    return base::MakeError(base::ErrorKind::kInvalidArgument, "route " + route.name + ": " + why);
  };
  if (provider == nullptr) return failed("no provider of jwt is named " + route.jwt.provider);
  // The parser refuses these; a gate must never touch them (GateFields).
  for (const proxy::JwtClaim& claim : provider->options().forward_claims) {
    if (http2::TokenOf(claim.metadata) != http2::Token::kOther) return failed("no claim can be " + claim.metadata);
  }
  if (former != nullptr) {
    for (const auto& gate : *former) {
      const auto* jwt = dynamic_cast<const proxy::JwtGate*>(gate.get());
      if (jwt != nullptr && jwt->provider() == provider && jwt->required() == route.jwt.required) return gate;
    }
  }
  return std::shared_ptr<const proxy::Gate>(std::make_shared<proxy::JwtGate>(provider, route.jwt.required));
}

base::Result<std::shared_ptr<const proxy::GateList>> GateSet::GatesOf(const proxy::RouteOptions& route, Plan& plan) {
  proxy::GateList gates;
  std::shared_ptr<const proxy::GateList> former = table_.Of(route.name);
  if (route.jwt.enabled()) {
    auto gate = JwtGateOf(route, plan, former.get());
    if (!gate) return gate.error();
    const auto& jwt = static_cast<const proxy::JwtGate&>(**gate);
    if (KeyHasCredential(route, jwt.provider()->options())) plan.table.key_has_credential.insert(route.name);
    gates.push_back(std::move(*gate));
  }
  // Rules see what a token claims.
  if (const auto rules = proxy::GatesOf(route, former.get())) gates.insert(gates.end(), rules->begin(), rules->end());
  if (former != nullptr && *former == gates) return former;
  if (gates.empty()) return std::shared_ptr<const proxy::GateList>();
  return std::make_shared<const proxy::GateList>(std::move(gates));
}

base::Result<GateSet::Plan> GateSet::Prepare(const config::Config& config) {
  auto jwt = jwt_files_.Prepare(config.jwt);
  if (!jwt) return jwt.error();
  Plan plan;
  plan.jwt = std::move(*jwt);
  for (const proxy::RouteOptions& route : config.routes) {
    auto gates = GatesOf(route, plan);
    if (!gates) return gates.error();
    if (*gates != nullptr) plan.table.lists[route.name] = std::move(*gates);
  }
  return plan;
}

void GateSet::Commit(Plan plan) {
  jwt_files_.Commit(std::move(plan.jwt));
  table_ = std::move(plan.table);
}

}  // namespace sluice::server
