#include "server/call_explain.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "http2/fields/bin_value.h"
#include "http2/fields/respell.h"
#include "http2/fields/validate.h"
#include "proxy/call/access_gate.h"
#include "proxy/call/forwarded_fields.h"
#include "proxy/call/hash_key.h"
#include "proxy/call/retry_policy.h"
#include "proxy/grpc_status.h"
#include "proxy/grpc_timeout.h"
#include "proxy/grpc_web/media_type.h"
#include "proxy/response_cache/cache.h"
#include "proxy/response_cache/policy.h"
#include "server/insight_view.h"
#include "server/route_view.h"

namespace sluice::server {

using admin::CallExplanation;
using base::ErrorKind;
using base::MakeError;
using http2::Token;
using proxy::CanonicalRequest;
using proxy::HashBy;
using proxy::MetadataMatch;
using proxy::Route;
using proxy::RouteOptions;
using proxy::ShownText;

namespace {

// The call's values of that name, for a sentence.
std::string SaidBy(const CanonicalRequest& request, std::string_view name) {
  std::string said;
  for (const http2::Field* field : request) {
    if (field->name() == name) said += (said.empty() ? "" : ", ") + ShownText(field->value());
  }
  return said.empty() ? "has none" : "says " + said;
}

std::string PathText(const proxy::RouteTable& routes, size_t place) {
  bool exact = false;
  const std::string path(routes.PathOf(place, &exact));
  return exact ? "the path " + path : "a path that begins with " + path;
}

// More than the metadata of a question can be, members of lists apart.
constexpr size_t kFieldsMax = 1000;

std::string JoinedOr(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text;
}

std::string WhyPassed(const proxy::RouteTable& routes, size_t place, const CanonicalRequest& request,
                      uint64_t listener) {
  using What = proxy::RouteMiss::What;
  const RouteOptions& options = routes.routes()[place].options;
  const proxy::RouteMiss miss = routes.WhyNot(place, request, listener);
  switch (miss.what) {
    case What::kPath:
      return "it wants " + PathText(routes, place);
    case What::kSpelling:
      return "it wants " + PathText(routes, place) + ", of which this is another spelling";
    case What::kListener:
      return "it wants the listener " + JoinedOr(options.listeners);
    case What::kAuthority: {
      const std::string_view said = request.authority();
      return "it wants the authority " + options.authority + "; the call " +
             (said.empty() ? "has none" : "says " + ShownText(said));
    }
    case What::kMetadata: {
      const MetadataMatch& wanted = options.metadata[miss.metadata];
      return "it wants the metadata " + ConditionText(wanted) + "; the call " + SaidBy(request, wanted.name);
    }
    case What::kNone:
      break;
  }
  return "its conditions hold, but another route guards a path that to some servers is this one";
}

base::Status CheckMetadata(const std::string& name, const std::string& value) {
  const auto bad = [&](const std::string& why) {
    return MakeError(ErrorKind::kInvalidArgument, "metadata " + ShownText(name) + ": " + why);
  };
  if (name.starts_with(':')) return bad("pseudo-headers are the path, the authority and nothing else");
  if (name == "content-type") return bad("the content type is asked for by itself");
  if (name.empty() || !http2::ValidFieldName(name))
    return bad("a name is of lower case letters, digits and punctuation but \":\" (RFC 9113 8.2.1)");
  if (!http2::ValidFieldValue(value))
    return bad("a value has no NUL, CR or LF, and no blank at either end (RFC 9113 8.2.1)");
  if (http2::IsBinName(name) && http2::FormOfBin(value) == http2::BinForm::kBroken)
    return bad("the value of a -bin name is base64");
  return base::Ok();
}

// The request as it would come. Its content-type is that of gRPC where the listener translates gRPC-Web.
base::Result<http2::HeaderList> MakeRequest(const admin::CallQuestion& question,
                                            const proxy::ListenerOptions& listener) {
  http2::HeaderList fields;
  fields.Add(":method", "POST");
  fields.Add(":scheme", listener.tls.enabled ? "https" : "http");
  fields.Add(":path", question.path);
  if (!question.authority.empty()) fields.Add(":authority", question.authority);
  std::string type = question.type.value_or("application/grpc");
  if (const auto web = proxy::grpc_web::ParseMediaType(type); web && listener.grpc_web.enabled)
    type = proxy::grpc_web::ToGrpcType(*web);
  if (!type.empty()) {
    if (!http2::ValidFieldValue(type)) return MakeError(ErrorKind::kInvalidArgument, "this is no content type");
    fields.Add("content-type", type);
  }
  if (http2::IsGrpcType(type)) fields.Add("te", "trailers");
  for (const auto& [name, value] : question.metadata) {
    if (base::Status good = CheckMetadata(name, value); !good.ok()) return good.error();
    fields.Add(name, value);
  }
  const char* wrong = http2::ValidateRequest(fields).malformed;
  if (wrong == http2::kToRespell) {
    http2::InternTable interns;
    fields = http2::Respell(interns, fields, kFieldsMax).fields.Clone();
    wrong = http2::ValidateRequest(fields).malformed;
  }
  if (wrong != nullptr)
    return MakeError(ErrorKind::kInvalidArgument, std::string("no client can send this over HTTP/2: ") + wrong);
  return fields;
}

CallExplanation::Refusal RefusalOf(const base::Error& error, const CanonicalRequest& request) {
  const proxy::GrpcError said = proxy::ToGrpcError(error);
  const bool grpc = request.is_grpc();
  return {std::string(ToString(said.code)), grpc ? "" : std::string(proxy::ToHttpStatus(error.kind)),
          std::string(said.reason), said.message};
}

// A client without a certificate. Trusted proxies are others.
proxy::Client MakeClient(const proxy::ListenerOptions& listener) {
  proxy::Client client{.peer_name = "?:0", .peer_hash = 0, .flow = 0};
  client.tls = listener.tls.enabled;
  client.listener = proxy::ListenerId(listener.name);
  client.paths = listener.paths;
  return client;
}

// Access rules are asked, as far as no other gate before them may change what they read. Other gates verify tokens and
// count what they see: of them the name is told.
void AskGates(const Route& route, CanonicalRequest& request, const proxy::Client& client, base::TimePoint now,
              CallExplanation& out) {
  if (route.gates == nullptr) return;
  using Verdict = CallExplanation::Gate::Verdict;
  const bool by_certificate = std::any_of(route.options.access.begin(), route.options.access.end(),
                                          [](const proxy::AccessRule& rule) { return !rule.clients.empty(); });
  bool known = true;
  for (const auto& gate : *route.gates) {
    CallExplanation::Gate& answer = out.gates.emplace_back();
    answer.name = gate->name();
    const auto* access = dynamic_cast<const proxy::AccessGate*>(gate.get());
    if (access == nullptr || !known) {
      answer.why = access == nullptr ? "by the call's token" : "by what the gate before it makes of the metadata";
      known = false;
      continue;
    }
    bool dropped = false;
    std::unique_ptr<proxy::GateCheck> check;
    const proxy::GateVerdict verdict =
        access->Ask({request, client, now, base::kNever, 0, proxy::GateFields(request, &dropped)}, check);
    const bool goes = verdict.kind == proxy::GateVerdict::Kind::kGo;
    if (by_certificate) {
      answer.why = "by the client's certificate; without one it " +
                   (goes ? std::string("passes") : "is refused: " + verdict.error->detail);
      continue;
    }
    answer.verdict = goes ? Verdict::kPasses : Verdict::kRefuses;
    if (goes) continue;
    answer.why = verdict.error->detail;
    if (!out.refusal) out.refusal = RefusalOf(*verdict.error, request);
  }
}

// Why a call of the route has no key that is known from its headers.
std::string WhyNoKey(const HashBy& by) {
  switch (by.kind) {
    case HashBy::Kind::kRandom:
      return "hash_by is random: any";
    case HashBy::Kind::kPeer:
      return "by the client's address";
    case HashBy::Kind::kMetadata:
      return "the call has no " + by.metadata.text() + ", by which the route hashes: any";
    case HashBy::Kind::kField:
      return "by the field " + by.field + " of the request's message";
    case HashBy::Kind::kMethod:
      break;
  }
  return "any";
}

void Choose(const Route& route, const CanonicalRequest& request, const proxy::Client& client,
            const proxy::Snapshot& snapshot, CallExplanation& out) {
  const RouteOptions& options = route.options;
  const HashBy& by = options.hash_by;
  const uint64_t seed = snapshot.config->hash_seed;
  const auto key = [&](upstream::Ring ring) {
    return by.kind == HashBy::Kind::kPeer ? std::nullopt : KeyOfHeaders(by, ring, request, client, seed);
  };
  uint32_t place = route.cluster;
  if (route.split != nullptr) {
    const auto known = key(upstream::Ring::kSluice);
    if (!known) {
      out.cluster_why = "by weight and key: " + WhyNoKey(by);
      return;
    }
    place = route.split->Of(proxy::SplitPosition(*known)).cluster;
    out.cluster_why = "by weight and " + HashText(by);
  }
  const upstream::ClusterState& cluster = *snapshot.clusters[place];
  out.cluster = cluster.name();
  if (!options.failover.empty() && options.failover != out.cluster)
    out.cluster_why += (out.cluster_why.empty() ? "" : "; ") + options.failover + " where it has no endpoint";
  if (cluster.options->policy != upstream::Policy::kRingHash) {
    out.endpoint_why = "by policy " + std::string(upstream::ToString(cluster.options->policy));
    return;
  }
  const auto known = key(cluster.options->ring);
  if (!known) {
    out.endpoint_why = WhyNoKey(by);
    return;
  }
  out.endpoint = OwnerOf(cluster, *known);
  out.endpoint_why = out.endpoint.empty() ? "no endpoint of the cluster takes calls" : "by " + HashText(by);
}

CallExplanation::Answer MayCache(const Route& route, const CanonicalRequest& request,
                                 const proxy::RouteConfig& config) {
  const proxy::CacheRule& rule = route.options.cache;
  if (config.cache == nullptr || !rule.enabled()) return {false, "the route caches nothing"};
  const proxy::CachedMethod* method = proxy::ResponseCache::Find(rule, request);
  if (method == nullptr) return {false, "it is no method of the route's cache.methods"};
  proxy::CachePlan plan;
  if (const auto why = proxy::cache_policy::PlanFor(rule, *method, request, plan))
    return {false, "not cached: " + std::string(ToString(*why))};
  return {true, std::string(plan.revalidate ? "fetched anew, then kept" : "kept") + " for " +
                    std::to_string(method->ttl.count()) + " ms, if its answer says no other time"};
}

CallExplanation::Answer MayRepeat(const Route& route, const CanonicalRequest& request) {
  const proxy::RetryOptions& retry = route.options.retry;
  if (retry.attempts_max <= 1) return {false, "retry.attempts is 1"};
  const std::string methods = "retry.methods: " + RetryText(retry);
  const std::string attempts = ", at most " + std::to_string(retry.attempts_max) + " attempts";
  if (proxy::MayRepeat(retry, request)) return {true, methods + attempts};
  return {false, methods + "; only where no backend has worked on it" + attempts};
}

base::Result<const proxy::ListenerOptions*> FindListener(const std::string& name,
                                                         const std::vector<proxy::ListenerOptions>& listeners) {
  if (name.empty()) return &listeners.front();
  const auto found =
      std::find_if(listeners.begin(), listeners.end(), [&](const auto& one) { return one.name == name; });
  if (found != listeners.end()) return &*found;
  std::vector<std::string> names;
  for (const proxy::ListenerOptions& one : listeners) names.push_back(one.name);
  return MakeError(ErrorKind::kNotFound, "no listener " + ShownText(name) + "; there is " + JoinedOr(names));
}

// What refuses a call before a route is looked for (Call::Start).
std::optional<base::Error> RefusedOnArrival(const CanonicalRequest& request) {
  const http2::Field* timeout = request.Find(Token::kGrpcTimeout);
  if (timeout != nullptr && !proxy::ParseGrpcTimeout(timeout->value()))
    return MakeError(ErrorKind::kMalformedRequest, "malformed grpc-timeout", base::ErrorSource::kDownstream);
  if (request.fault() != CanonicalRequest::Fault::kNone) return request.Refusal();
  return std::nullopt;
}

}  // namespace

base::Result<CallExplanation> ExplainCall(const admin::CallQuestion& question,
                                          const std::vector<proxy::ListenerOptions>& listeners,
                                          const proxy::Snapshot& snapshot, base::TimePoint now) {
  const auto listener = FindListener(question.listener, listeners);
  if (!listener.ok()) return listener.error();
  base::Result<http2::HeaderList> fields = MakeRequest(question, **listener);
  if (!fields.ok()) return fields.error();
  const proxy::Client client = MakeClient(**listener);
  const proxy::RouteConfig& config = *snapshot.config;
  CanonicalRequest request = proxy::Canonicalize(std::move(*fields), client.paths);
  CallExplanation out;
  out.listener = (*listener)->name;
  out.path = request.path();
  out.authority = request.authority();
  if (const auto refused = RefusedOnArrival(request)) {
    out.refusal = RefusalOf(*refused, request);
    return out;
  }
  if (config.guard != nullptr) {
    GuardClaims(*config.guard, request);
    GuardFields(*config.guard, config.forwarding, client, now, request);
  }
  const std::vector<Route>& routes = config.routes.routes();
  const Route* const route = config.routes.Match(request, client.listener);
  const size_t place = route == nullptr ? routes.size() : static_cast<size_t>(route - routes.data());
  for (size_t i = 0; i < place; ++i)
    out.passed.push_back({routes[i].options.name, WhyPassed(config.routes, i, request, client.listener)});
  if (route == nullptr) {
    out.refusal = RefusalOf(MakeError(ErrorKind::kNoRoute, config.routes.WhyNone(request, client.listener)), request);
    return out;
  }
  out.route = MakeRouteView(config.routes, place);
  AskGates(*route, request, client, now, out);
  Choose(*route, request, client, snapshot, out);
  out.cache = MayCache(*route, request, config);
  out.repeat = MayRepeat(*route, request);
  return out;
}

}  // namespace sluice::server
