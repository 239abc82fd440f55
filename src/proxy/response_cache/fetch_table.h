// FetchTable: the fetches under way by key, in shards with a mutex each. Single flight without knowing what is fetched
// or where it is kept: the store is a function that runs under the key's mutex.
//
// Why under the mutex: a purge first goes through the table (Forget), then through the store. A fetch that
// stores under the mutex has either stored before Forget came by, so that the purge of the store finds it, or sees that
// it must not.
//
// Thread safety: every function from any thread; nothing suspends. Wake-ups and on_abandoned run outside of the
// mutexes.
#pragma once

#include <absl/container/flat_hash_map.h>
#include <absl/functional/function_ref.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>

#include "proxy/response_cache/fetch.h"

namespace sluice::proxy {

class FetchTable {
 public:
  enum class Joined : uint8_t { kStarted, kJoined, kAnswered, kFull };
  // Whether the response might be stored, or why it could not be.
  enum class Stored : uint8_t { kStored, kPurged, kAbandoned };
  struct Request {
    const cache::Key128& hash;
    std::string_view key;
    base::TimePoint fetch_deadline;  // of a fetch that this one starts, and at least of one that it joins in time
    bool own = false;                // never join: start another, beside one that is there
    // A fetch whose deadline is before this point and fixed is not joined: another one takes its place.
    base::TimePoint least = base::TimePoint::min();
    uint32_t fetches_max = 1;
    // Whose rate limit the fetch may have to wait at, which calls of other clients must not (Fetch::LeaveToClient).
    uint64_t client = 0;
    // Proxies that the call has passed. In a loop of proxies the call that a fetch has sent comes back with more: it
    // would wait for itself. So no call joins a fetch of one that has passed fewer: its own takes that one's place.
    uint32_t hops = 0;
  };

  FetchTable() = default;
  ~FetchTable();  // CHECKs that no fetch is left
  FetchTable(const FetchTable&) = delete;
  FetchTable& operator=(const FetchTable&) = delete;

  // `answer`: under the mutex, before a fetch is started: a response that was stored since the caller looked, or null;
  // then the participant has it at once (kAnswered).
  Joined Join(const Request& request, Fetch::Participant* participant, std::function<void()> on_abandoned,
              absl::FunctionRef<CachedResponsePtr()> answer, std::shared_ptr<Fetch>* fetch);
  // `store` runs under the mutex, if the response may be stored. With result->leaders_only the participant that started
  // the fetch gets the result, and the others one without a response.
  Stored Complete(const std::shared_ptr<Fetch>& fetch, std::shared_ptr<const FetchResult> result,
                  absl::FunctionRef<void()> store);
  void Leave(Fetch::Participant& participant);
  void LeaveToClient(Fetch& fetch);
  base::TimePoint DeadlineOf(const Fetch& fetch);
  base::TimePoint FixDeadline(Fetch& fetch);
  // For a purge: of fetches whose key `covers`, the response will not be stored and no call joins any more.
  void Forget(absl::FunctionRef<bool(std::string_view key)> covers);
  // Runs fn under the key's mutex: no fetch of the key is completed, so stores nothing, meanwhile.
  void UnderKey(const cache::Key128& hash, absl::FunctionRef<void()> fn) {
    std::lock_guard lock(ShardOf(hash).mutex);
    fn();
  }
  // Started and not yet complete, whether or not they can be joined.
  size_t fetches() const { return fetches_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kShards = 64;
  static constexpr size_t kWakeBatch = 64;

  // Points into the Fetch. The hash is as good as its caller's; equal ones are told apart by the key.
  struct Ref {
    cache::Key128 hash;
    std::string_view key;
    bool operator==(const Ref&) const = default;
  };
  struct HashOf {
    size_t operator()(const Ref& ref) const { return static_cast<size_t>(ref.hash.lo); }
  };
  struct alignas(64) Shard {
    std::mutex mutex;
    absl::flat_hash_map<Ref, std::shared_ptr<Fetch>, HashOf> fetches;  // those that may be joined
    uint64_t started = 0;
  };
  struct Wake {
    runtime::Waker task;
    std::function<void()> for_test;
    void operator()() {
      if (for_test) for_test();
      task.Wake();
    }
  };
  static Wake TakeWake(Fetch::Participant& participant) {
    return {std::move(participant.waker_), std::exchange(participant.wake_for_test_, nullptr)};
  }
  void Detach(Shard& shard, Fetch& fetch, Fetch::Keep why);
  std::function<void()> AbandonIfEmpty(Shard& shard, Fetch& fetch);
  bool Reserve(uint32_t fetches_max);
  Shard& ShardOf(const cache::Key128& hash) { return shards_[hash.hi % kShards]; }

  std::array<Shard, kShards> shards_;
  // A bound, checked and raised apart from any other state: relaxed.
  std::atomic<size_t> fetches_{0};
  // Forget calls. Raised before it takes a shard's mutex, which orders what a fetch reads: relaxed.
  std::atomic<uint64_t> purges_{0};
};

}  // namespace sluice::proxy
