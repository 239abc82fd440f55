#include "proxy/response_cache/fetch_table.h"

#include <algorithm>
#include <utility>

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
  if (fetch.keep_ != Fetch::Keep::kYes) return;  // detached before; a newer one may be in its place
  fetch.keep_ = why;
  shard.fetches.erase(Ref{fetch.hash_, fetch.key_});
}

FetchTable::Joined FetchTable::Join(const Request& request, Fetch::Participant* participant,
                                    std::function<void()> on_abandoned, absl::FunctionRef<CachedResponsePtr()> answer,
                                    std::shared_ptr<Fetch>* fetch) {
  SLUICE_CHECK(participant == nullptr || !participant->in_fetch());
  std::shared_ptr<Fetch> superseded;  // its last reference, if that is here, goes after the unlock
  Shard& shard = ShardOf(request.hash);
  std::lock_guard lock(shard.mutex);
  const auto take_part = [&](const std::shared_ptr<Fetch>& in) {
    if (participant == nullptr) return;
    if (!participant->wake_for_test_) participant->waker_ = runtime::Waker::ForRunningTask();
    participant->fetch_ = in;
    in->participants_.PushBack(*participant);
  };

  if (const auto found = shard.fetches.find(Ref{request.hash, request.key}); found != shard.fetches.end()) {
    Fetch& running = *found->second;
    if (!request.supersede && (!running.deadline_fixed_ || running.deadline_ >= request.least)) {
      // A refresh goes on when the call has left: only its own bound ends it.
      if (!running.deadline_fixed_ && !running.refresh_)
        running.deadline_ = std::max(running.deadline_, request.fetch_deadline);
      take_part(found->second);
      return Joined::kJoined;
    }
    superseded = found->second;
  } else if (CachedResponsePtr response = answer(); response != nullptr) {
    if (participant != nullptr) {
      auto result = std::make_shared<FetchResult>();
      result->response = std::move(response);
      participant->result_ = std::move(result);
    }
    return Joined::kAnswered;
  }

  if (!Reserve(request.fetches_max)) return Joined::kFull;
  if (superseded != nullptr) Detach(shard, *superseded, Fetch::Keep::kSuperseded);
  auto started = std::make_shared<Fetch>(*this, request.hash, request.key, request.fetch_deadline,
                                         participant == nullptr, std::move(on_abandoned));
  shard.fetches.emplace(Ref{started->hash_, started->key_}, started);
  take_part(started);
  *fetch = std::move(started);
  return Joined::kStarted;
}

FetchTable::Stored FetchTable::Complete(const std::shared_ptr<Fetch>& fetch, std::shared_ptr<const FetchResult> result,
                                        absl::FunctionRef<void()> store) {
  Shard& shard = ShardOf(fetch->hash_);
  std::function<void()> on_abandoned;  // not wanted any more; what it holds goes after the unlock
  std::array<Wake, kWakeBatch> wakes;
  Fetch::Keep keep = Fetch::Keep::kYes;
  bool more = true;
  for (bool first = true; more; first = false) {
    size_t count = 0;
    {
      std::lock_guard lock(shard.mutex);
      if (first) {
        SLUICE_CHECK(fetch->result_ == nullptr && result != nullptr);  // once
        keep = fetch->keep_;
        if (keep == Fetch::Keep::kYes) {
          store();
          shard.fetches.erase(Ref{fetch->hash_, fetch->key_});
        }
        on_abandoned = std::exchange(fetch->on_abandoned_, nullptr);
        fetch->result_ = std::move(result);
        // Publishes result_. Pairs with the acquire load in Participant::result.
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
      return Stored::kStored;
    case Fetch::Keep::kPurged:
      return Stored::kPurged;
    case Fetch::Keep::kSuperseded:
      return Stored::kSuperseded;
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
    if (fetch->participants_.empty() && !fetch->refresh_ && fetch->result_ == nullptr) {
      // A newcomer starts another fetch: this one may be cancelled by the time its answer would come.
      Detach(shard, *fetch, Fetch::Keep::kAbandoned);
      on_abandoned = std::exchange(fetch->on_abandoned_, nullptr);
    }
  }
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

// The part of a participant that the table guards.

std::shared_ptr<const FetchResult> Fetch::Participant::result() const {
  if (fetch_ == nullptr) return result_;
  // Pairs with the release store in FetchTable::Complete; result_ is never written after it.
  return fetch_->done_.load(std::memory_order_acquire) ? fetch_->result_ : nullptr;
}

void Fetch::Participant::Leave() {
  if (fetch_ != nullptr) fetch_->table_.Leave(*this);
  result_.reset();
}

}  // namespace sluice::proxy
