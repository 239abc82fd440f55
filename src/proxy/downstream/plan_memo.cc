#include "proxy/downstream/plan_memo.h"

#include <algorithm>

#include "proxy/call/gate.h"
#include "proxy/canonical/field_name.h"
#include "proxy/response_cache/key.h"
#include "proxy/response_cache/policy.h"

namespace sluice::proxy {
namespace {

using http2::Token;

constexpr uint64_t Bit(Token token) { return uint64_t{1} << static_cast<uint32_t>(token); }

// What is looked at whatever the configuration says: RouteTable::Match, ResponseCache::Find, cache_policy::PlanFor,
// cache_key::Start.
constexpr uint64_t kAlwaysDecide = Bit(Token::kMethod) | Bit(Token::kPath) | Bit(Token::kAuthority) |
                                   Bit(Token::kHost) | Bit(Token::kContentType) | Bit(Token::kAuthorization) |
                                   Bit(Token::kCookie) | Bit(Token::kCacheControl) | Bit(Token::kGrpcEncoding) |
                                   Bit(Token::kGrpcAcceptEncoding);

}  // namespace

const FastPathPlan* CachePlanMemo::For(const RouteConfig& config, uint64_t version, const CanonicalRequest& request,
                                       uint64_t listener) {
  if (version_ != version) [[unlikely]]
    ReadNames(config, version);
  const http2::FieldRun* run = request.run();
  if (run == nullptr || AnyDecides(request, run->count)) {
    Make(config, request, listener, scratch_);
    return scratch_.may_hit ? &scratch_ : nullptr;
  }
  Slot& slot = (*slots_)[run->id % kSlots];
  if (slot.run != run->id || (slot.listener != listener && config.routes.by_listener())) [[unlikely]] {
    Make(config, request, listener, slot.plan);
    slot.listener = listener;
    slot.run = slot.plan.key_head.size() <= kHeadBytesMax ? run->id : 0;
  }
  return slot.plan.may_hit ? &slot.plan : nullptr;
}

void CachePlanMemo::ReadNames(const RouteConfig& config, uint64_t version) {
  version_ = version;
  slots_ = std::make_unique<std::array<Slot, kSlots>>();
  tokens_ = kAlwaysDecide;
  names_.clear();
  const auto add = [&](const std::string& name) {
    const Token token = http2::TokenOf(name);
    tokens_ |= Bit(token);
    if (token == Token::kOther) names_.push_back(name);
  };
  for (const Route& route : config.routes.routes()) {
    for (const MetadataMatch& wanted : route.options.metadata) add(wanted.name);
    for (const std::string& name : route.options.cache.vary) add(name);
  }
}

bool CachePlanMemo::AnyDecides(const CanonicalRequest& request, uint32_t first) const {
  return std::any_of(request.begin() + first, request.end(), [this](const http2::Field* field) {
    if ((tokens_ & Bit(field->token)) == 0) return false;
    return field->token != Token::kOther || std::any_of(names_.begin(), names_.end(), [&](const std::string& name) {
             return SameFieldName(name, field->name());
           });
  });
}

void CachePlanMemo::Make(const RouteConfig& config, const CanonicalRequest& request, uint64_t listener,
                         FastPathPlan& plan) {
  plan.made = ++made_;
  plan.may_hit = false;
  plan.key_head.clear();
  plan.route = config.routes.Match(request, listener);
  // Which cluster's response it is to be depends on the key, which may be in the message: a Call finds out.
  if (plan.route == nullptr || plan.route->split != nullptr || !AllowFastPath(plan.route->gates.get())) return;
  const CacheRule& rule = plan.route->options.cache;
  const CachedMethod* method = ResponseCache::Find(rule, request);
  if (method == nullptr || cache_policy::PlanFor(rule, *method, request, plan.plan)) return;
  if (plan.plan.revalidate) return;
  cache_key::Start(plan.key_head, rule, plan.route->cache_scope, request, /*message_size=*/0);
  plan.may_hit = true;
}

}  // namespace sluice::proxy
