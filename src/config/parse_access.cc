// Which clients may call what: the access rules of a route, the listeners that it takes calls from, and what is kept
// from clients in `forwarding`.
#include <algorithm>

#include "config/parsers.h"
#include "config/route_cover.h"
#include "config/route_values.h"
#include "config/text.h"
#include "config/values.h"
#include "proxy/option_table.h"

namespace sluice::config {
namespace {

using proxy::AccessRule;
using proxy::RouteOptions;

constexpr std::string_view kClientCert = "x-forwarded-client-cert";

bool Certificates(const std::vector<proxy::ListenerOptions>& listeners, const std::vector<std::string>& names) {
  return std::any_of(listeners.begin(), listeners.end(), [&](const proxy::ListenerOptions& listener) {
    const bool named = names.empty() || std::find(names.begin(), names.end(), listener.name) != names.end();
    return named && !listener.tls.ca.empty();
  });
}

void ParseStatus(Section& section, uint8_t* out) {
  std::string name;
  if (!section.Text("status", &name)) return;
  for (uint8_t code = 1; code < kCodeCount; ++code) {
    if (name == CodeName(code)) {
      *out = code;
      return;
    }
  }
  section.Fail("status", Cat(Shown(name), " is not a gRPC code other than OK, like PERMISSION_DENIED"));
}

void ParseRule(Reader& reader, const Node& node, std::string path, bool certificates, AccessRule* out) {
  Section section(reader, node, std::move(path));
  section.Require("action");
  section.Choice("action", kAccessActions, &out->action);
  ParseAllowedNames(section, "clients", "a name: a.example.com, *.example.com, spiffe://..., CN=name", true,
                    &out->clients);
  if (const Node* clients = section.Find("clients")) {
    if (clients->items.empty()) section.Fail("clients", "is empty; leave it out for every client, or name one");
    if (!certificates)
      section.Fail("clients",
                   "no listener of the route asks clients for certificates (tls.client_ca), so no client "
                   "has a name");
  }
  ParseMetadata(section, "metadata", &out->metadata);
  if (out->action == AccessRule::Action::kAllow) {
    for (std::string_view key : {"status", "message"}) {
      if (section.Find(key) != nullptr) section.Fail(key, "goes with action: deny only");
    }
    return;
  }
  ParseStatus(section, &out->status);
  if (section.Text("message", &out->message) && out->message.size() > kAccessMessageBytesMax) {
    section.Fail("message",
                 Cat("has ", out->message.size(), " bytes; at most ", kAccessMessageBytesMax, " are allowed"));
  }
}

bool Always(const AccessRule& rule) { return rule.clients.empty() && rule.metadata.empty(); }

}  // namespace

void ParseRouteListeners(Section& section, const std::vector<proxy::ListenerOptions>& listeners, RouteOptions* out) {
  const bool listed = section.Each("listeners", kListenersMax, [&](const Node& node, std::string path) {
    const std::string* name = section.Scalar(node, path, "the name of a listener");
    if (name == nullptr) return;
    std::vector<std::string_view> names;
    for (const proxy::ListenerOptions& listener : listeners) names.push_back(listener.name);
    if (std::find(names.begin(), names.end(), *name) == names.end()) {
      section.reader().Fail(node, path, Cat("no listener is named ", Shown(*name), "; there are: ", Join(names)));
    } else if (std::find(out->listeners.begin(), out->listeners.end(), *name) != out->listeners.end()) {
      section.reader().Fail(node, path, Cat(Shown(*name), " is there twice"));
    } else {
      out->listeners.push_back(*name);
    }
  });
  if (listed && section.Find("listeners")->items.empty())
    section.Fail("listeners", "is empty; leave it out for all listeners, or name one");
}

void ParseAccess(Section& section, const std::vector<proxy::ListenerOptions>& listeners, RouteOptions* out) {
  const bool certificates = Certificates(listeners, out->listeners);
  const bool listed = section.Each("access", kAccessRulesMax, [&](const Node& node, std::string path) {
    if (!out->access.empty() && Always(out->access.back()))
      section.reader().Fail(node, path, "is never asked: the rule before it fits every call");
    ParseRule(section.reader(), node, path, certificates, &out->access.emplace_back());
  });
  if (!listed) return;
  if (out->access.empty())
    return section.Fail("access", "is empty; leave it out where every client may call, or write a rule");
  const bool allows = std::any_of(out->access.begin(), out->access.end(),
                                  [](const AccessRule& rule) { return rule.action == AccessRule::Action::kAllow; });
  if (!allows && !Always(out->access.back()))
    section.Warn("access",
                 "has no rule that allows, so that every call is refused; end it with {action: allow}, or "
                 "with {action: deny} if that is meant");
}

void WarnOfGuardsPassed(Reader& reader, const Node& node, const std::string& path,
                        const std::vector<proxy::ListenerOptions>& listeners, const std::vector<RouteOptions>& before,
                        const RouteOptions& route) {
  const auto guards = [](const RouteOptions& one) { return !one.access.empty() || one.jwt.enabled(); };
  const auto takes = [](const RouteOptions& one, const proxy::ListenerOptions& listener) {
    return one.listeners.empty() ||
           std::find(one.listeners.begin(), one.listeners.end(), listener.name) != one.listeners.end();
  };
  if (guards(route)) return;
  for (const RouteOptions& guard : before) {
    if (!guards(guard) || (guard.service.empty() && guard.prefix.empty()) || !Covers(route, guard)) continue;
    for (const proxy::ListenerOptions& listener : listeners) {
      if (listener.paths != proxy::PathRule::kAny || !takes(guard, listener) || !takes(route, listener)) continue;
      return reader.Warn(
          node, path,
          Cat("takes all that route ", guard.name, " does not guard, and listener ", listener.name,
              " takes any path (paths: any): a server that reads paths in a way of its own may run what ", guard.name,
              " refuses; leave paths: grpc, or end the routes with one that denies"));
    }
  }
}

void ParseForwarding(Section& section, const std::vector<RouteOptions>& routes, proxy::ForwardingOptions* out) {
  section.Options(proxy::kForwardingOptions, out);
  section.Gone("trusted_hops",
               "is said by listener, and of peers that are named: listeners[].trusted_proxies: {hops: 1, addresses: "
               "[10.0.0.0/8]}; here it would have believed every client, too");
  section.Choice("request_id", kRequestIds, &out->request_id);
  const auto wrong = [](std::string_view name) -> std::string_view {
    const bool of_grpc = name.starts_with("grpc-") || name == "content-type" || name == "te" || name == "host";
    return of_grpc ? " is a part of gRPC and cannot be taken away" : "";
  };
  ParseMetadataNames(section, "remove", kRemovedFieldsMax, wrong, &out->remove);
  if (!out->client_cert) return;
  // An endpoint that is told the client may answer by it.
  for (const RouteOptions& route : routes) {
    const std::vector<std::string>& vary = route.cache.vary;
    if (!route.cache.enabled() || route.cache.shared || std::find(vary.begin(), vary.end(), kClientCert) != vary.end())
      continue;
    section.Fail("client_cert", Cat("tells endpoints the client, and route ", route.name,
                                    " caches what they answer: one client could get another's; allowed: with ",
                                    kClientCert, " in its vary, or shared: true where answers are the same for all"));
  }
}

}  // namespace sluice::config
