// Fetch: one call to the upstream on behalf of all calls with the same key that are there while it is under way (single
// flight). The calls are its participants, on any worker; each keeps its own deadline and cancellation.
//
//   under way --Complete--> done          every participant is woken, with the same result; where that is the leader's
//       |                                 own affair (sharing.h), the others are told to go by themselves
//       |-----waits at its client's rate limit--> left to the calls of that client: the others go by themselves
//       |-----last participant leaves---> abandoned   its upstream call is cancelled, unless it refreshes a stale entry
//
// Its deadline is the latest of its participants', until the upstream is told it (FixDeadline): what was sent cannot be
// taken back, and the backend goes by it.
//
// Beside that, `keep` says whether its response may be stored and whether newcomers may join: neither after a purge; no
// newcomers where it runs beside another fetch of its key, or another has taken its place. An answer never replaces one
// that a later fetch has stored. Its participants still get the result.
//
// Thread safety: state and participants under the mutex of the table's shard (fetch_table.h). The fetch takes a
// participant's waker out under the mutex and never touches the participant after that.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/intrusive_list.h"
#include "cache/clock_cache.h"
#include "proxy/response_cache/entry.h"
#include "runtime/waker.h"

namespace sluice::proxy {

class FetchTable;

// What the upstream call came to. Shared by all participants.
struct FetchResult {
  CachedResponsePtr response;        // null: go by yourself (the response is too large to hold, or is another call's)
  std::optional<base::Error> cause;  // the response is an error of ours
  // For access logs.
  std::string endpoint, waits, tries;
  uint32_t attempts = 0;
  // The fetch's. A DEADLINE_EXCEEDED is not for a call whose own deadline is later: it asks again.
  base::TimePoint deadline = base::kNever;
  // The response is for the call alone that started the fetch.
  bool leaders_only = false;
};

class Fetch {
 public:
  // A call that waits for the result. Used by one thread at a time, the call's; Leave or the destructor gives up.
  class Participant : public base::ListNode<Participant> {
   public:
    Participant() = default;
    ~Participant() { Leave(); }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;
    // Null: not yet, or not in a fetch. There at any time after the wake-up, until Leave.
    std::shared_ptr<const FetchResult> result() const;
    bool in_fetch() const { return fetch_ != nullptr; }
    // The last one out, before the result, cancels the fetch's upstream call. Idempotent. Cancel-safe: a wake-up under
    // way may still come to the task.
    void Leave();
    // Tests without tasks: called, on any thread, where a task would be woken. Before Join.
    void SetWakeForTest(std::function<void()> wake) { wake_for_test_ = std::move(wake); }

   private:
    friend class FetchTable;
    std::shared_ptr<Fetch> fetch_;               // while taking part; the owner's thread only
    std::shared_ptr<const FetchResult> result_;  // answered without a fetch; the owner's thread only
    bool leads_ = false;                         // it started fetch_. Written under the mutex, by the owner's thread
    uint64_t client_ = 0;                        // FetchTable::Request::client. The same
    runtime::Waker waker_;                       // under the shard's mutex
    std::function<void()> wake_for_test_;        // same
  };

  // Which one it is among those of its table, and on whose behalf.
  struct Origin {
    uint64_t sequence;  // later ones have larger numbers
    uint64_t purges;    // FetchTable::Forget calls before it
    uint64_t client;    // FetchTable::Request::client
    bool refresh;       // it goes on without participants
    uint32_t hops;      // FetchTable::Request::hops
  };
  Fetch(FetchTable& table, const cache::Key128& hash, std::string_view key, base::TimePoint deadline,
        const Origin& origin, std::function<void()> on_abandoned)
      : table_(table),
        hash_(hash),
        key_(key),
        origin_(origin),
        deadline_(deadline),
        on_abandoned_(std::move(on_abandoned)) {}

  const cache::Key128& hash() const { return hash_; }
  const std::string& key() const { return key_; }
  uint64_t sequence() const { return origin_.sequence; }
  // By which the upstream call must have ended, as it is now. A participant that has joined since it was fixed may have
  // a later one: see FetchResult::deadline. Any thread.
  base::TimePoint deadline() const;
  // The same, and from here on calls that join do not change it. Idempotent. Any thread.
  base::TimePoint FixDeadline();
  // It waits at the rate limit of the client that started it: calls of other clients need not, and go by themselves.
  // Idempotent. Any thread.
  void LeaveToClient();

 private:
  friend class FetchTable;
  // kAside: not in the table, so that no call joins it, but its response may be stored.
  enum class Keep : uint8_t { kYes, kAside, kPurged, kAbandoned };

  FetchTable& table_;
  const cache::Key128 hash_;
  const std::string key_;
  const Origin origin_;
  // Under the shard's mutex:
  base::TimePoint deadline_;
  bool deadline_fixed_ = false;
  base::IntrusiveList<Participant, Participant> participants_;
  std::function<void()> on_abandoned_;
  Keep keep_ = Keep::kYes;
  // Written once, under the mutex, before done_.
  std::shared_ptr<const FetchResult> result_;
  std::shared_ptr<const FetchResult> others_;  // the same for participants that do not lead; null: result_
  // Publishes both: the release store in FetchTable::Complete pairs with the acquire load in Participant::result.
  std::atomic<bool> done_{false};
  // LeaveToClient was called. Written under the mutex; read without it, by itself: relaxed.
  std::atomic<bool> left_{false};
};

}  // namespace sluice::proxy
