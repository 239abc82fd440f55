// The part of a call that decides when it may go, and where: the limits, the key, the endpoint and its permit.
#include <algorithm>

#include "base/hash.h"
#include "proxy/call.h"
#include "proxy/message_field.h"

namespace sluice::proxy {

using base::ErrorKind;
using AnswerKind = limits::Answer::Kind;

uint64_t Call::ClientKey() const {
  const std::string& name = route_->options.client_rate_limit.metadata;
  if (name.empty()) return base::Hash64(client_->peer_hash, config_->hash_seed);
  const http2::Field* field = request_.Find(name);
  return field == nullptr ? 0 : base::Hash64(field->value(), config_->hash_seed);
}

bool Call::WaitsForAdmission() {
  if (over() || admitted_) return false;
  if (admission_ == nullptr) {
    admitted_ = !Admission::Needed(*config_, *route_, *cluster_);
    if (admitted_) return false;
    admission_.reset(new Admission(config_, context_.LimitsOf(route_->cluster, *cluster_), *route_, client_->flow,
                                   context_.index()));
  }
  auto client_key = [this] { return ClientKey(); };
  const limits::Answer answer = admission_->Advance(context_.worker().now(), deadline_, client_key);
  if (answer.kind == AnswerKind::kRefused) Refuse(answer);
  ArmTimer(answer.check_at);
  admitted_ = answer.kind == AnswerKind::kGo;
  if (admitted_ && !admission_->waits().empty()) {
    // The list and the routes may have changed while it waited.
    Reroute();
  }
  return answer.kind == AnswerKind::kWait;
}

void Call::Refuse(const limits::Answer& answer) {
  const std::string& bound = admission_->bound()->name;
  base::Error error = base::MakeError(admission_->is_rate() ? ErrorKind::kRateLimited : ErrorKind::kConcurrencyLimited,
                                      bound + " refused the call: " + std::string(ToString(answer.refusal)));
  error.bound = bound;
  error.retry_after = answer.retry_after;
  Fail(std::move(error));
}

uint64_t Call::HashKey() const {
  const HashBy& by = route_->options.hash_by;
  const http2::Field* path = request_.Find(http2::Token::kPath);
  switch (by.kind) {
    case HashBy::Kind::kRandom:
      break;
    case HashBy::Kind::kPeer:
      return base::Hash64(client_->peer_hash, config_->hash_seed);
    case HashBy::Kind::kMethod:
      if (path != nullptr) return base::Hash64(path->value(), config_->hash_seed);
      break;
    case HashBy::Kind::kMetadata:
      if (const http2::Field* field = request_.Find(by.metadata))
        return base::Hash64(field->value(), config_->hash_seed);
      break;
    case HashBy::Kind::kField: {
      const MethodField* field = path == nullptr ? nullptr : FindMethodField(by, path->value());
      if (field == nullptr) break;
      const FieldValue value = ReadField(body_.parts(), field->numbers, by.field_bytes_max);
      if (value.HasKey()) return HashField(value, config_->hash_seed);
      break;
    }
  }
  return context_.worker().random().Next();
}

// How choosy a pick is. Each level gives up one wish of the one before.
enum Level : int {
  kIdeal,     // a free permit, below the bounded load, not tried by this call
  kOverLoad,  // a free permit, not tried
  kFull,      // not tried: the call waits in its queue
  kTriedToo,  // all that are left have been tried: one that refused may take the call on another connection
  kLevels
};

uint32_t Call::PickAtLevel(int level) {
  const uint32_t w = context_.index();
  auto ok = [&](uint32_t index) {
    const upstream::ListedEndpoint& entry = cluster_->endpoints[index];
    if (entry.draining || entry.endpoint->removed()) return false;
    if (level < kTriedToo && history_ != nullptr && history_->Tried(*entry.endpoint)) return false;
    if (level < kFull && admission_ != nullptr && !entry.endpoint->concurrency()->HasRoom()) return false;
    if (level < kOverLoad && !cluster_->BelowBoundedLoad(index, w)) return false;
    const upstream::EndpointPool* pool = entry.endpoint->pool(w);
    return pool == nullptr || pool->Usable();
  };
  auto load = [&](uint32_t index) {
    const upstream::EndpointPool* pool = cluster_->endpoints[index].endpoint->pool(w);
    return pool == nullptr ? 0u : pool->in_flight();
  };
  upstream::PickContext pick{key_, context_.worker().random().Next(), w, ok, load};
  return cluster_->balancer->Pick(pick);
}

void Call::Pick() {
  if (over()) return;
  if (!key_known_) key_ = HashKey();
  key_known_ = true;
  waits_for_endpoint_ = false;
  for (int level = kIdeal; level < kLevels; ++level) {
    const uint32_t index = PickAtLevel(level);
    if (index == upstream::LoadBalancer::kNone) continue;
    endpoint_ = &cluster_->endpoints[index].endpoint;
    if (admission_ == nullptr || admission_->TryEndpoint(**endpoint_)) return;
    if (level < kFull) continue;  // somebody was faster
    waits_for_endpoint_ = true;
    return;
  }
  // Why the last attempt failed says more than that nothing is left.
  if (history_ != nullptr && history_->last_failure != nullptr) return Fail(*history_->last_failure);
  Fail(ErrorKind::kNoEndpoint,
       "no endpoint of cluster " + cluster_->name() + " can take the call: " +
           (cluster_->endpoints.empty() ? "the list is empty" : "all are in back-off or draining"));
}

bool Call::WaitsForEndpoint() {
  while (!over() && waits_for_endpoint_) {
    const limits::Answer answer = admission_->AdvanceEndpoint(**endpoint_, *cluster_, context_.worker().now());
    if (answer.kind == AnswerKind::kWait) return true;
    waits_for_endpoint_ = false;
    if (answer.kind == AnswerKind::kRefused) {
      Refuse(answer);
    } else if ((*endpoint_)->removed()) {
      // It left the list while the call waited.
      admission_->DropEndpoint();
      Reroute();
      Pick();
    }
  }
  return false;
}

}  // namespace sluice::proxy
