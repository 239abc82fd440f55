// Fetch: one call to the upstream on behalf of all calls with the same key that are there while it is under way (single
// flight). The calls are its participants, on any worker; each keeps its own deadline and cancellation.
//
//   under way --Complete--> done          every participant is woken, with the same result
//       |-----last participant leaves---> abandoned   its upstream call is cancelled, unless it refreshes a stale entry
//
// Its deadline is the latest of its participants', until the upstream is told it (FixDeadline): what was sent cannot be
// taken back, and the backend goes by it.
//
// Beside that, `keep` says whether its response may be stored and whether newcomers may join: no more after a purge, or
// when a newer fetch has taken its place. Its participants still get the result.
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
  CachedResponsePtr response;        // null: go by yourself (the response is too large to hold, or no unary one)
  std::optional<base::Error> cause;  // the response is an error of ours
  // For access logs.
  std::string endpoint, waits, tries;
  uint32_t attempts = 0;
  // The fetch's. A DEADLINE_EXCEEDED is not for a call whose own deadline is later: it asks again.
  base::TimePoint deadline = base::kNever;
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
    runtime::Waker waker_;                       // under the shard's mutex
    std::function<void()> wake_for_test_;        // same
  };

  Fetch(FetchTable& table, const cache::Key128& hash, std::string_view key, base::TimePoint deadline, bool refresh,
        std::function<void()> on_abandoned)
      : table_(table),
        hash_(hash),
        key_(key),
        refresh_(refresh),
        deadline_(deadline),
        on_abandoned_(std::move(on_abandoned)) {}

  const cache::Key128& hash() const { return hash_; }
  const std::string& key() const { return key_; }
  // By which the upstream call must have ended, as it is now. A participant that has joined since it was fixed may have
  // a later one: see FetchResult::deadline. Any thread.
  base::TimePoint deadline() const;
  // The same, and from here on calls that join do not change it. Idempotent. Any thread.
  base::TimePoint FixDeadline();

 private:
  friend class FetchTable;
  enum class Keep : uint8_t { kYes, kPurged, kSuperseded, kAbandoned };

  FetchTable& table_;
  const cache::Key128 hash_;
  const std::string key_;
  const bool refresh_;  // goes on without participants
  // Under the shard's mutex:
  base::TimePoint deadline_;
  bool deadline_fixed_ = false;
  base::IntrusiveList<Participant, Participant> participants_;
  std::function<void()> on_abandoned_;
  Keep keep_ = Keep::kYes;
  // Written once, under the mutex, before done_.
  std::shared_ptr<const FetchResult> result_;
  // Publishes result_: the release store in FetchTable::Complete pairs with the acquire load in Participant::result.
  std::atomic<bool> done_{false};
};

}  // namespace sluice::proxy
