#include "proxy/call/access_gate.h"

#include <algorithm>
#include <utility>

#include "net/tls/names.h"
#include "proxy/metadata_match.h"

namespace sluice::proxy {
namespace {

// Of a certificate that could be taken for that of many: NameAllowed says no to it.
bool Unclear(const net::TlsNames& names) {
  const auto many = [](const std::string& name) { return name.starts_with('*'); };
  const auto climbs = [](const std::string& uri) { return uri.find("/.") != uri.npos; };
  return std::any_of(names.dns.begin(), names.dns.end(), many) ||
         std::any_of(names.uris.begin(), names.uris.end(), climbs);
}

// What is in doubt is not allowed, and is denied: a certificate that has ended, too, and one whose names are unclear.
bool ClientFits(const AccessRule& rule, const GateRequest& request) {
  if (rule.clients.empty()) return true;
  const ClientCertificate* certificate = request.client.certificate.get();
  if (certificate == nullptr) return false;
  const bool named = net::NameAllowed(certificate->names, rule.clients);
  if (rule.action == AccessRule::Action::kDeny) return named || Unclear(certificate->names);
  return named && request.now < certificate->ends;
}

bool Fits(const AccessRule& rule, const GateRequest& request) {
  const auto fits = rule.action == AccessRule::Action::kAllow ? EveryValueFits : AnyValueFits;
  return ClientFits(rule, request) &&
         std::all_of(rule.metadata.begin(), rule.metadata.end(),
                     [&](const MetadataMatch& wanted) { return fits(wanted, request.headers); });
}

}  // namespace

AccessGate::AccessGate(std::string route, std::vector<AccessRule> rules)
    : route_(std::move(route)), name_("route/" + route_ + "/access"), rules_(std::move(rules)) {}

GateVerdict AccessGate::Ask(const GateRequest& request, std::unique_ptr<GateCheck>&) const {
  const auto rule = std::find_if(rules_.begin(), rules_.end(), [&](const auto& one) { return Fits(one, request); });
  if (rule == rules_.end()) {
    return GateVerdict::Refuse(
        base::MakeError(base::ErrorKind::kAccessDenied, "no access rule of route " + route_ + " allows this call"));
  }
  if (rule->action == AccessRule::Action::kAllow) return GateVerdict::Go();
  base::Error error = base::MakeError(base::ErrorKind::kAccessDenied, rule->message);
  if (error.detail.empty())
    error.detail =
        "rule access[" + std::to_string(rule - rules_.begin()) + "] of route " + route_ + " denies this call";
  error.grpc_code = rule->status;
  return GateVerdict::Refuse(std::move(error));
}

std::shared_ptr<const GateList> GatesOf(const RouteOptions& route, const GateList* former) {
  if (route.access.empty()) return nullptr;
  GateList gates;
  if (former != nullptr) {
    for (const auto& gate : *former) {
      const auto* rules = dynamic_cast<const AccessGate*>(gate.get());
      if (rules != nullptr && rules->Is(route.name, route.access)) gates.push_back(gate);
    }
  }
  if (gates.empty()) gates.push_back(std::make_shared<const AccessGate>(route.name, route.access));
  return std::make_shared<const GateList>(std::move(gates));
}

}  // namespace sluice::proxy
