// The steps of a call whose connection was lost: it may be the call that ends connections (poison), or one that was
// beside it. Its next attempt shares its connection with no other call, so that a poison shows itself alone.
#include <string>

#include "base/hash.h"
#include "proxy/call/call.h"
#include "runtime/runtime.h"

namespace sluice::proxy {

using base::ErrorKind;
using http2::Token;

// What blame goes by: other methods with the same key, and other keys with the same method, are other calls.
uint64_t Call::PoisonId() const {
  const http2::Field* path = request.Find(Token::kPath);
  return base::Hash64(path != nullptr ? path->value() : std::string_view(), ring_key);
}

// Calls with a key by chance have nothing in common that a quarantine could go by.
bool Call::HasPoisonId() const { return route_->options.hash_by.kind != HashBy::Kind::kRandom; }

bool Call::InQuarantine() {
  const base::TimePoint now = context.worker().now();
  return context.quarantine.any(now) && HasPoisonId() && context.quarantine.Holds(PoisonId(), now);
}

// Before the attempt begins. One that is in quarantine is not sent where it cannot be alone.
void Call::ChooseAlone() {
  const bool held = InQuarantine();
  if (held || (history_ != nullptr && history_->lost > 0)) attempt_.RunAlone(/*must=*/held);
}

// The attempt ended with its connection, or it was alone on one. A call that has lost kLostMax of them, or one that it
// had to itself, is not tried again: wherever it goes it costs a connection with all that is on it.
void Call::NoteLoss(Attempt& attempt) {
  const base::TimePoint now = context.worker().now();
  if (attempt.error() == nullptr || attempt.error()->kind != ErrorKind::kConnectionLost) {
    if (attempt.complete() && HasPoisonId()) context.quarantine.Answered(PoisonId());
    return;
  }
  const uint32_t lost = ++history().lost;
  const bool alone = attempt.alone();
  // Where no attempt follows that would show it, calls of its kind are suspect together.
  if (HasPoisonId() && (alone || !MayFollow(AttemptEnd::kInDoubt))) context.quarantine.Lost(PoisonId(), alone, now);
  if (lost < kLostMax && !alone) return;
  attempt.SetError(base::MakeError(ErrorKind::kPoisonCall,
                                   "the connection to endpoint " + attempt.endpoint()->name() +
                                       " was lost under the call" + (alone ? ", which was alone on it" : "") + "; " +
                                       std::to_string(lost) + " were lost in all, and it is not tried again",
                                   base::ErrorSource::kUpstream));
}

}  // namespace sluice::proxy
