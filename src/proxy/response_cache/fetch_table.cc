#include "proxy/response_cache/fetch_table.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"

namespace sluice::proxy {

FetchTable::~FetchTable() {
  SLUICE_CHECK(fetches() == 0);
  for (Shard& shard : shards_) SLUICE_CHECK(shard.fetches.empty());
}

bool FetchTable::Reserve(uint32_t fetches_max) {
  if (fetches_.fetch_add(1, std::memory_order_relaxed) < fetches_max) return true;
  fetches_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void FetchTable::Detach(Shard& shard, Fetch& fetch, Fetch::Keep why) {
  const bool joinable = fetch.keep_ == Fetch::Keep::kYes;
  if (!joinable && fetch.keep_ != Fetch::Keep::kAside) return;
  fetch.keep_ = why;
  if (joinable) shard.fetches.erase(Ref{fetch.hash_, fetch.key_});  // else another one may be in its place
}

FetchTable::Joined FetchTable::Join(const Request& request, Fetch::Participant* participant,
                                    std::function<void()> on_abandoned, absl::FunctionRef<CachedResponsePtr()> answer,
                                    std::shared_ptr<Fetch>* fetch) {
  SLUICE_CHECK(participant == nullptr || !participant->in_fetch());
  std::shared_ptr<Fetch> replaced;  // its last reference, if that is here, goes after the unlock
  Shard& shard = ShardOf(request.hash);
  std::lock_guard lock(shard.mutex);
  bool aside = false;
  const auto take_part = [&](const std::shared_ptr<Fetch>& in, bool leads = false) {
    if (participant == nullptr) return;
    if (!participant->wake_for_test_) participant->waker_ = runtime::Waker::ForRunningTask();
    participant->fetch_ = in;
    participant->leads_ = leads;
    participant->client_ = request.client;
    in->participants_.PushBack(*participant);
  };

  if (const auto found = shard.fetches.find(Ref{request.hash, request.key}); found != shard.fetches.end()) {
    Fetch& running = *found->second;
    const bool in_time = !running.deadline_fixed_ || running.deadline_ >= request.least;
    // One refresh is enough, whatever it waits for: no call waits for it.
    const bool left = running.left_.load(std::memory_order_relaxed) && request.client != running.origin_.client &&
                      participant != nullptr;
    // It may be the call that the running one has sent.
    const bool behind = request.hops > running.origin_.hops && participant != nullptr;
    if (!request.own && in_time && !left && !behind) {
      // A refresh goes on when the call has left: only its own bound ends it.
      if (!running.deadline_fixed_ && !running.origin_.refresh)
        running.deadline_ = std::max(running.deadline_, request.fetch_deadline);
      take_part(found->second);
      return Joined::kJoined;
    }
    aside = request.own;
    if (!aside) replaced = found->second;
  } else if (CachedResponsePtr response = answer(); response != nullptr) {
    if (participant != nullptr) {
      auto result = std::make_shared<FetchResult>();
      result->response = std::move(response);
      participant->result_ = std::move(result);
    }
    return Joined::kAnswered;
  }

  if (!Reserve(request.fetches_max)) return Joined::kFull;
  if (replaced != nullptr) Detach(shard, *replaced, Fetch::Keep::kAside);
  const Fetch::Origin origin{++shard.started, purges_.load(std::memory_order_relaxed), request.client,
                             participant == nullptr, request.hops};
  auto started = std::make_shared<Fetch>(*this, request.hash, request.key, request.fetch_deadline, origin,
                                         std::move(on_abandoned));
  if (aside) {
    started->keep_ = Fetch::Keep::kAside;
  } else {
    shard.fetches.emplace(Ref{started->hash_, started->key_}, started);
  }
  take_part(started, /*leads=*/true);
  *fetch = std::move(started);
  return Joined::kStarted;
}

FetchTable::Stored FetchTable::Complete(const std::shared_ptr<Fetch>& fetch, std::shared_ptr<const FetchResult> result,
                                        absl::FunctionRef<void()> store) {
  Shard& shard = ShardOf(fetch->hash_);
  std::function<void()> on_abandoned;  // not wanted any more; what it holds goes after the unlock
  std::array<Wake, kWakeBatch> wakes;
  std::shared_ptr<FetchResult> others;
  if (result->leaders_only) {
    others = std::make_shared<FetchResult>();
    others->cause = result->cause;
    others->attempts = result->attempts;
  }
  Fetch::Keep keep = Fetch::Keep::kYes;
  bool more = true;
  for (bool first = true; more; first = false) {
    size_t count = 0;
    {
      std::lock_guard lock(shard.mutex);
      if (first) {
        SLUICE_CHECK(fetch->result_ == nullptr && result != nullptr);  // once
        keep = fetch->keep_;
        // A purge does not see it: any purge may have been of its key.
        if (keep == Fetch::Keep::kAside && fetch->origin_.purges != purges_.load(std::memory_order_relaxed))
          keep = Fetch::Keep::kPurged;
        if (keep == Fetch::Keep::kYes || keep == Fetch::Keep::kAside) store();
        if (keep == Fetch::Keep::kYes) shard.fetches.erase(Ref{fetch->hash_, fetch->key_});
        on_abandoned = std::exchange(fetch->on_abandoned_, nullptr);
        fetch->result_ = std::move(result);
        fetch->others_ = std::move(others);
        // Publishes result_ and others_. Pairs with the acquire load in Participant::result.
        fetch->done_.store(true, std::memory_order_release);
      }
      // Out of the list and waker taken: from the unlock on the participant is its owner's, which may destroy it.
      while (count < kWakeBatch) {
        Fetch::Participant* participant = fetch->participants_.PopFront();
        if (participant == nullptr) break;
        wakes[count++] = TakeWake(*participant);
      }
      more = !fetch->participants_.empty();
    }
    for (size_t i = 0; i < count; ++i) {
      wakes[i]();
      wakes[i] = Wake();
    }
  }
  fetches_.fetch_sub(1, std::memory_order_relaxed);
  switch (keep) {
    case Fetch::Keep::kYes:
    case Fetch::Keep::kAside:
      return Stored::kStored;
    case Fetch::Keep::kPurged:
      return Stored::kPurged;
    case Fetch::Keep::kAbandoned:
      return Stored::kAbandoned;
  }
  return Stored::kStored;
}

void FetchTable::Leave(Fetch::Participant& participant) {
  std::shared_ptr<Fetch> fetch = std::move(participant.fetch_);
  std::function<void()> on_abandoned;
  Wake wake;  // dropped after the unlock
  {
    Shard& shard = ShardOf(fetch->hash_);
    std::lock_guard lock(shard.mutex);
    participant.Unlink();
    wake = TakeWake(participant);
    on_abandoned = AbandonIfEmpty(shard, *fetch);
  }
  if (on_abandoned) on_abandoned();
}

// What to call, outside of the mutex, where no call waits for the fetch any more.
std::function<void()> FetchTable::AbandonIfEmpty(Shard& shard, Fetch& fetch) {
  if (!fetch.participants_.empty() || fetch.origin_.refresh || fetch.result_ != nullptr) return nullptr;
  // A newcomer starts another fetch: this one may be cancelled by the time its answer would come.
  Detach(shard, fetch, Fetch::Keep::kAbandoned);
  return std::exchange(fetch.on_abandoned_, nullptr);
}

void FetchTable::LeaveToClient(Fetch& fetch) {
  std::vector<Wake> wakes;
  std::function<void()> on_abandoned;
  {
    Shard& shard = ShardOf(fetch.hash_);
    std::lock_guard lock(shard.mutex);
    if (fetch.result_ != nullptr || fetch.left_.exchange(true, std::memory_order_relaxed)) return;
    base::IntrusiveList<Fetch::Participant, Fetch::Participant> stay;
    while (Fetch::Participant* participant = fetch.participants_.PopFront()) {
      if (participant->client_ == fetch.origin_.client) {
        stay.PushBack(*participant);
      } else {
        wakes.push_back(TakeWake(*participant));  // from the unlock on it is its owner's
      }
    }
    fetch.participants_.Splice(stay);
    if (!wakes.empty()) on_abandoned = AbandonIfEmpty(shard, fetch);
  }
  for (Wake& wake : wakes) wake();
  if (on_abandoned) on_abandoned();
}

base::TimePoint FetchTable::DeadlineOf(const Fetch& fetch) {
  std::lock_guard lock(ShardOf(fetch.hash_).mutex);
  return fetch.deadline_;
}

base::TimePoint FetchTable::FixDeadline(Fetch& fetch) {
  std::lock_guard lock(ShardOf(fetch.hash_).mutex);
  fetch.deadline_fixed_ = true;
  return fetch.deadline_;
}

void FetchTable::Forget(absl::FunctionRef<bool(std::string_view key)> covers) {
  purges_.fetch_add(1, std::memory_order_relaxed);
  for (Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    for (auto it = shard.fetches.begin(); it != shard.fetches.end();) {
      auto next = std::next(it);
      if (covers(it->second->key_)) {
        it->second->keep_ = Fetch::Keep::kPurged;
        shard.fetches.erase(it);
      }
      it = next;
    }
  }
}

base::TimePoint Fetch::deadline() const { return table_.DeadlineOf(*this); }
base::TimePoint Fetch::FixDeadline() { return table_.FixDeadline(*this); }
void Fetch::LeaveToClient() { table_.LeaveToClient(*this); }

// The part of a participant that the table guards.

std::shared_ptr<const FetchResult> Fetch::Participant::result() const {
  if (fetch_ == nullptr) return result_;
  // Pairs with the release store in FetchTable::Complete; neither is ever written after it.
  if (fetch_->done_.load(std::memory_order_acquire))
    return leads_ || fetch_->others_ == nullptr ? fetch_->result_ : fetch_->others_;
  static const std::shared_ptr<const FetchResult> kByItself = std::make_shared<FetchResult>();
  if (client_ != fetch_->origin_.client && fetch_->left_.load(std::memory_order_relaxed)) return kByItself;
  return nullptr;
}

void Fetch::Participant::Leave() {
  if (fetch_ != nullptr) fetch_->table_.Leave(*this);
  result_.reset();
}

}  // namespace sluice::proxy
