// Gate: a check of a call by its headers, its client and its deadline. Each call of a route asks the route's gates
// once, in order.
//
//   route --> gates --> message --> cache --> gates that allow the fast path --> limits --> endpoint
//               |
//               +-- kGo       the next gate; behind the last one, the message and the cache
//               +-- kRefused  the call ends with the gate's error: its kind is the status and the reason token
//               +-- kWait     the call's task sleeps; woken, it asks the gate's check again (GateCheck::Poll)
//
// No stored answer is given past a gate: CachePlanMemo has no plan for a route with a gate that does not allow it, so
// such a request becomes a Call, and a Call asks before it looks in the cache. That holds for calls that join a fetch
// or move to another worker, too. A fetch itself is not asked: each call that takes part in it was.
//
// A call that waits while a new configuration brings other gates is asked by all of those before it goes to the
// upstream, and is not looked up in the cache any more. A call that has joined a fetch takes the fetch's answer.
//
// A gate that allows the fast path need not see calls that the cache answers: a quota of what reaches the upstream. It
// is asked behind the cache, by the call that goes to the upstream, which may be a fetch.
//
// Gates are immutable, part of the configuration, and belong to all workers. Without one a call pays a load and a
// branch.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "base/clock.h"
#include "base/error.h"
#include "http2/fields/header.h"
#include "proxy/canonical/request.h"
#include "proxy/client.h"
#include "proxy/route_table.h"
#include "runtime/frame_pool.h"

namespace sluice::proxy {

// What a gate may change of a call: metadata that only the proxy may set. All that follows sees the call as the gates
// have left it: later gates, the cache and its key, the client's rate limit, the key of the ring, the access log and
// each attempt at an endpoint. The route was chosen before, and is chosen anew after a wait, by the fields as they are
// then. A gate must not touch what forwarding reads: pseudo-headers and names with a Token, but for authorization.
// Valid during Ask only; each change makes views of the request's fields invalid.
class GateFields {
 public:
  GateFields(http2::HeaderList& fields, bool* credential_dropped)
      : fields_(fields), credential_dropped_(credential_dropped) {}

  // Removes each field of that name, which has no Token.
  void Remove(std::string_view name) const { fields_.Remove(name); }
  // Appends one. What the client has sent under that name must have been removed.
  void Add(std::string_view name, std::string_view value) const { fields_.Add(name, value); }
  // Removes `authorization`. A response to the call is stored only where the cache's key has all that an endpoint still
  // learns of the credential (Route::key_has_credential), or the rule says `shared`.
  void DropCredential() const {
    fields_.Remove(http2::Token::kAuthorization);
    *credential_dropped_ = true;
  }
  // By a gate, perhaps of an earlier configuration: that the field is not there says nothing of the client.
  bool credential_dropped() const { return *credential_dropped_; }

 private:
  http2::HeaderList& fields_;
  bool* const credential_dropped_;
};

// What a gate sees of a call. Valid during Ask only.
struct GateRequest {
  const CanonicalRequest& headers;
  const Client& client;
  base::TimePoint now, deadline;  // deadline kNever: none
  uint32_t worker;                // slot of counters
  GateFields fields;              // of `headers`
};

struct GateVerdict {
  enum class Kind : uint8_t { kGo, kWait, kRefused } kind = Kind::kGo;
  base::TimePoint check_at = base::kNever;  // kWait: asked again at this time also if the task was not woken
  std::unique_ptr<base::Error> error;       // kRefused: never null

  static GateVerdict Go() { return {}; }
  static GateVerdict Wait(base::TimePoint check_at = base::kNever) { return {Kind::kWait, check_at, nullptr}; }
  static GateVerdict Refuse(base::Error why) {
    return {Kind::kRefused, base::kNever, std::make_unique<base::Error>(std::move(why))};
  }
};

// What a gate keeps for one call, until the call ends or is cancelled: then it is destroyed, also while it waits. It
// may outlive the gate. Thread safety: the call's worker.
class GateCheck {
 public:
  virtual ~GateCheck() = default;
  // After kWait: the verdict as of `now`. In the call's task. Woken without need it says kWait again.
  virtual GateVerdict Poll(base::TimePoint now) = 0;
};

// Thread safety: any worker.
class Gate {
 public:
  virtual ~Gate() = default;
  // For messages: "while it waited for NAME".
  virtual std::string_view name() const = 0;
  // A stored answer may be given to a call that this gate has not seen. Constant.
  virtual bool AllowsFastPath() const = 0;
  // Does not suspend. With kWait `check` must be set; it wakes the task that runs now, from any thread, with a waker
  // that it took here (runtime::Waker::ForRunningTask). With another verdict it may be set, to be told of the call's
  // end.
  virtual GateVerdict Ask(const GateRequest& request, std::unique_ptr<GateCheck>& check) const = 0;
};

// Whether a stored answer may be given to a call that has met none of these. Null: there are none.
bool AllowFastPath(const GateList* gates);

// When a gate is asked: before the cache, or, one that allows the fast path, when the call goes to the upstream.
enum class GateStage : uint8_t { kBeforeCache, kToUpstream };

// One call's way through the gates of its route.
class GateWalk {
 public:
  static void* operator new(size_t bytes) { return runtime::AllocateFrame(bytes); }
  static void operator delete(void* memory, size_t bytes) { runtime::FreeFrame(memory, bytes); }

  // `fetch`: of a fetch, which only gates that allow the fast path are asked about.
  explicit GateWalk(bool fetch) : fetch_(fetch) {}

  // Asks the gates of one stage, as far as the verdicts let the call go. kGo: it has passed all of them, and gets kGo
  // for this stage from then on while `gates` has the same gates. To the upstream, gates that the walk does not know
  // are asked whatever their stage is. While the call waits, `gates` is not looked at.
  GateVerdict Advance(GateStage stage, const std::shared_ptr<const GateList>& gates, const GateRequest& request);
  // The last call of Advance was about these gates.
  bool Knows(const std::shared_ptr<const GateList>& gates) const {
    return gates_ == gates || (gates_ != nullptr && *gates_ == *gates);
  }
  // The gate that the call waits for; null: none.
  const Gate* waiting() const { return waiting_; }
  // By GateFields::DropCredential.
  bool credential_dropped = false;
  // Whether the cache may answer the call has been decided, by the fields as the gates left them.
  bool cache_planned = false;

 private:
  static constexpr size_t kPassed = SIZE_MAX;
  const bool fetch_;
  bool of_both_stages_ = false;
  GateStage stage_ = GateStage::kBeforeCache;
  size_t next_ = 0;
  std::shared_ptr<const GateList> gates_;  // those that are asked now, or were last
  const Gate* waiting_ = nullptr;          // the next one, whose check is the last
  absl::InlinedVector<std::unique_ptr<GateCheck>, 1> checks_;
};

}  // namespace sluice::proxy
