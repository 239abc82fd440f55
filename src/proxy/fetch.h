// Fetch: one call to the upstream on behalf of all calls with the same key that are there while it is under way (single
// flight). The calls are its participants, on any worker; each keeps its own deadline and cancellation.
//
//   under way --Complete--> done          every participant is woken, with the same result
//       |-----last participant leaves---> abandoned   (unless it refreshes a stale entry): the upstream call is cancelled
//
// Thread safety: state and participants under the mutex of the table's shard (response_cache.cc). A participant whose
// result is set is never touched again by the fetch.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/intrusive_list.h"
#include "cache/clock_cache.h"
#include "proxy/cached_response.h"
#include "runtime/waker.h"

namespace sluice::proxy {

class ResponseCache;

// What the upstream call came to. Shared by all participants.
struct FetchResult {
  CachedResponsePtr response;        // null: go by yourself (the response is too large to hold, or no unary one)
  std::optional<base::Error> cause;  // the response is an error of ours
  // For access logs.
  std::string endpoint, waits;
  uint32_t attempts = 0;
};

class Fetch {
 public:
  // A call that waits for the result. On the call's worker; Leave or the destructor gives up.
  class Participant : public base::ListNode<Participant> {
   public:
    Participant() = default;
    ~Participant() { Leave(); }
    Participant(const Participant&) = delete;
    Participant& operator=(const Participant&) = delete;
    // Null: not yet, or not in a fetch. Any time after the wake-up.
    std::shared_ptr<const FetchResult> result() const;
    bool in_fetch() const { return fetch_ != nullptr; }
    // The last one out cancels the fetch's upstream call. Idempotent.
    void Leave();

   private:
    friend class ResponseCache;
    friend class Fetch;
    std::shared_ptr<Fetch> fetch_;                // while taking part
    std::shared_ptr<const FetchResult> result_;   // under the shard's mutex
    runtime::Waker waker_;
  };

  const std::string& key() const { return key_; }
  base::TimePoint deadline() const { return deadline_; }
  // Runs once, on any thread and outside of locks, if the last participant leaves before the result is there. Set by who
  // started the fetch, before anybody else can see... (it has not returned from Start yet).

 private:
  friend class ResponseCache;
  ResponseCache* cache_ = nullptr;
  cache::Key128 hash_;
  std::string key_;
  base::TimePoint deadline_;  // of the upstream call; later participants must have one no later
  // Under the shard's mutex:
  base::IntrusiveList<Participant, Participant> participants_;
  std::shared_ptr<const FetchResult> result_;
  bool refresh_ = false;   // goes on without participants
  bool store_ = true;      // no purge has come since it began
  bool abandoned_ = false;
  std::function<void()> on_abandoned_;
};

}  // namespace sluice::proxy
