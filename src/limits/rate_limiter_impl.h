// RateLimiter's functions, for rate_limiter_impl.cc and for tests that bring Traits of their own.
#pragma once

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "limits/rate_limiter.h"

namespace sluice::limits {

template <typename Traits>
auto BasicRateLimiter<Traits>::MakeBucket(const RateOptions& options, base::TimePoint now, base::TimePoint full_at)
    -> Bucket {
  concurrent::TokenBucketOptions bucket;
  bucket.rate = std::max(options.rate, 0.0) * kCallTokens;
  bucket.limit = std::max<uint64_t>(options.burst, 1) * concurrent::kTokensPerCall;
  uint64_t missing = 0;
  if (full_at > now) {
    using concurrent::TokenRate;
    missing = TokenRate::Worth(TokenRate::Encode(bucket.rate), TokenRate::Instant(now), TokenRate::Instant(full_at));
  }
  const uint64_t initial = bucket.limit - std::min(missing, bucket.limit);
  if (options.capped) return Bucket(std::in_place_type<Capped>, bucket, initial, now);
  return Bucket(std::in_place_type<Plain>, bucket, initial, now);
}

template <typename Traits>
BasicRateLimiter<Traits>::BasicRateLimiter(const RateOptions& options, base::TimePoint now, base::TimePoint full_at,
                                           bool debt)
    : bucket_(MakeBucket(options, now, full_at)),
      on_(options.enabled()),
      queue_time_(options.queue_time),
      debt_until_(debt ? full_at : base::TimePoint::min()),
      queue_max_(options.queue_max) {}

template <typename Traits>
BasicRateLimiter<Traits>::~BasicRateLimiter() {
  SLUICE_CHECK(queue_.empty());
  // Audit: holders of tokens keep this alive.
  SLUICE_DCHECK(outstanding() == others_.load(std::memory_order_relaxed));
}

template <typename Traits>
void BasicRateLimiter<Traits>::Configure(const RateOptions& options, base::TimePoint now) {
  SLUICE_CHECK(CanBecome(options));
  Wakeup first;
  {
    Lock lock(mutex_);
    if (closed_) return;
    queue_max_ = options.queue_max;
    queue_time_.store(options.queue_time, std::memory_order_relaxed);
    on_.store(options.enabled(), std::memory_order_relaxed);  // a caller that queues looks again under the mutex
    if (options.enabled()) {
      const uint64_t burst = std::max<uint64_t>(options.burst, 1) * concurrent::kTokensPerCall;
      WithBucket([&](auto& bucket) {
        SLUICE_CHECK(bucket.SetRate(options.rate * kCallTokens, now));
        if constexpr (requires { bucket.cap(); }) bucket.SetCap(burst);
        bucket.SetLimit(burst);
      });
      first = FirstWakeup();  // its time was reckoned at the old rate
    }
  }
  if (options.enabled()) {
    first.Wake();
  } else {
    LetAllGo();
  }
}

template <typename Traits>
void BasicRateLimiter<Traits>::Close() {
  {
    Lock lock(mutex_);
    closed_ = true;
    on_.store(false, std::memory_order_relaxed);
  }
  LetAllGo();
}

template <typename Traits>
void BasicRateLimiter<Traits>::LetAllGo() {
  while (true) {
    Wakeup batch[kWakeBatch];
    size_t taken = 0;
    {
      Lock lock(mutex_);
      if (on_.load(std::memory_order_relaxed)) return;  // there is a limit again: present waiters wait for that one
      while (taken < kWakeBatch) {
        Ticket* ticket = queue_.PopFront();  // from here on its owner takes it as let go, see Poll
        if (ticket == nullptr) break;
        batch[taken++] = std::move(ticket->wakeup_);
      }
      waiting_.store(waiting_.load(std::memory_order_relaxed) - static_cast<uint32_t>(taken),
                     std::memory_order_relaxed);
    }
    for (size_t i = 0; i < taken; ++i) batch[i].Wake();
    if (taken < kWakeBatch) return;
  }
}

template <typename Traits>
double BasicRateLimiter<Traits>::rate() const {
  if (!on_.load(std::memory_order_relaxed)) return 0;
  return WithBucket([](const auto& bucket) { return bucket.rate(); }) / kCallTokens;
}

template <typename Traits>
uint64_t BasicRateLimiter<Traits>::outstanding() const {
  const auto* capped = std::get_if<Capped>(&bucket_);
  return capped == nullptr ? 0 : capped->outstanding() / concurrent::kTokensPerCall;
}

template <typename Traits>
auto BasicRateLimiter<Traits>::LevelAt(base::TimePoint now) -> Level {
  const uint64_t missing = WithBucket([now](auto& bucket) {
    bucket.Replenish(now);
    return bucket.debt();
  });
  return {missing, outstanding()};
}

template <typename Traits>
void BasicRateLimiter<Traits>::Resume(const Level& level) {
  constexpr uint64_t kCallsMax = Plain::kTokensMax / concurrent::kTokensPerCall;
  const uint64_t others =
      capped() ? std::min(level.outstanding, kCallsMax - others_.load(std::memory_order_relaxed)) : 0;
  others_.fetch_add(others, std::memory_order_relaxed);
  WithBucket([&](auto& bucket) { bucket.Resume(level.missing, others * concurrent::kTokensPerCall); });
}

template <typename Traits>
void BasicRateLimiter<Traits>::ReleaseForOther(uint64_t calls) {
  auto* bucket = std::get_if<Capped>(&bucket_);
  calls = std::min(calls, others_.load(std::memory_order_relaxed));
  if (bucket == nullptr || calls == 0) return;
  others_.fetch_sub(calls, std::memory_order_relaxed);
  SLUICE_CHECK(bucket->Release(calls * concurrent::kTokensPerCall));
  // seq_cst: as in Release.
  if (wants_release_.load(std::memory_order_seq_cst)) WakeReleaseWaiter();
}

template <typename Traits>
base::TimePoint BasicRateLimiter<Traits>::FullAt(base::TimePoint now) {
  return WithBucket([now](auto& bucket) {
    bucket.Replenish(now);
    return bucket.ReadyAt(bucket.tail() + bucket.limit());
  });
}

template <typename Traits>
Verdict BasicRateLimiter<Traits>::LookForFirst(base::TimePoint now) {
  for (bool said = false;;) {
    if (TryTake(now)) return Verdict::Go();
    if (const auto* bucket = std::get_if<Capped>(&bucket_)) {
      if (bucket->NeedsRelease(bucket->tail() + concurrent::kTokensPerCall)) {
        if (said) return Verdict::Wait(base::kNever);
        // seq_cst: before the second look for tokens. Pairs with Release, which gives back and then looks at this.
        wants_release_.store(true, std::memory_order_seq_cst);
        said = true;
        continue;
      }
    }
    const base::TimePoint start = PredictedStart(1);
    if (start > now) return Verdict::Wait(start);
    // Another thread brought tokens, or lost the race for an earlier span, after our look.
  }
}

template <typename Traits>
base::TimePoint BasicRateLimiter<Traits>::PredictedStart(size_t position) const {
  return WithBucket(
      [position](const auto& bucket) { return bucket.DueAt(bucket.tail() + position * concurrent::kTokensPerCall); });
}

template <typename Traits>
std::chrono::milliseconds BasicRateLimiter<Traits>::RetryAfter(base::TimePoint start, base::TimePoint now) {
  constexpr std::chrono::milliseconds kLeast(1), kMost(std::chrono::hours(24));
  if (start <= now) return kLeast;
  if (start - now >= kMost) return kMost;
  return std::max(kLeast, std::chrono::ceil<std::chrono::milliseconds>(start - now));
}

template <typename Traits>
Verdict BasicRateLimiter<Traits>::Refuse(Refusal why, base::TimePoint start, base::TimePoint now) const {
  return Verdict::Refused(now < debt_until_ ? Refusal::kDebt : why, RetryAfter(start, now));
}

template <typename Traits>
auto BasicRateLimiter<Traits>::Leave(Ticket& ticket) -> Wakeup {
  const bool was_first = queue_.front() == &ticket;
  ticket.Unlink();
  waiting_.store(waiting_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
  return was_first ? FirstWakeup() : Wakeup();
}

template <typename Traits>
auto BasicRateLimiter<Traits>::FirstWakeup() -> Wakeup {
  Ticket* first = queue_.front();
  return first == nullptr ? Wakeup() : first->wakeup_;
}

template <typename Traits>
void BasicRateLimiter<Traits>::WakeFirst() {
  Wakeup first;
  {
    Lock lock(mutex_);
    first = FirstWakeup();
  }
  first.Wake();
}

template <typename Traits>
void BasicRateLimiter<Traits>::WakeReleaseWaiter() {
  if (wants_release_.exchange(false, std::memory_order_seq_cst)) WakeFirst();
}

template <typename Traits>
void BasicRateLimiter<Traits>::ReleaseUnused() {
  // Also where the limit was switched off meanwhile: what is out must come back.
  SLUICE_CHECK(std::get_if<Capped>(&bucket_)->Refund(concurrent::kTokensPerCall));
  // seq_cst: as in Refund.
  if (waiting_.load(std::memory_order_seq_cst) != 0) WakeFirst();
}

template <typename Traits>
void BasicRateLimiter<Traits>::Refund() {
  auto* bucket = std::get_if<Plain>(&bucket_);
  if (bucket == nullptr || !on_.load(std::memory_order_relaxed)) return;
  bucket->Refund(concurrent::kTokensPerCall);
  // seq_cst: after the refund. Pairs with the store of waiting_ by a caller that queues and then looks.
  if (waiting_.load(std::memory_order_seq_cst) != 0) WakeFirst();
}

template <typename Traits>
void BasicRateLimiter<Traits>::Ticket::DropUnused() {
  if (state_ != State::kHolding) return Drop();
  state_ = State::kIdle;
  std::exchange(limiter_, nullptr)->ReleaseUnused();
}

template <typename Traits>
bool BasicRateLimiter<Traits>::Ticket::Detach() {
  SLUICE_CHECK(state_ != State::kWaiting);
  limiter_ = nullptr;
  return std::exchange(state_, State::kIdle) == State::kHolding;
}

template <typename Traits>
Verdict BasicRateLimiter<Traits>::Ticket::Ask(BasicRateLimiter& l, base::TimePoint now, base::TimePoint latest) {
  SLUICE_DCHECK(state_ == State::kIdle);
  if (const Start start = l.TryStart(now); start != Start::kNo) {
    if (start == Start::kHeld) {
      limiter_ = &l;
      state_ = State::kHolding;
    }
    return Verdict::Go();
  }
  Verdict verdict;
  {
    Lock lock(l.mutex_);
    if (!l.on_.load(std::memory_order_relaxed)) return Verdict::Go();
    const uint32_t ahead = l.waiting_.load(std::memory_order_relaxed);
    if (ahead >= l.queue_max_) {
      verdict = l.Refuse(Refusal::kQueueFull, l.PredictedStart(ahead + 1), now);
    } else {
      l.queue_.PushBack(*this);
      l.waiting_.store(ahead + 1, std::memory_order_seq_cst);  // pairs with TryStart's look
      verdict = ahead == 0 ? l.LookForFirst(now) : Verdict::Wait(base::kNever);
      const base::TimePoint start = l.PredictedStart(ahead + 1);
      if (verdict.kind == Verdict::Kind::kWait && start > latest) {
        verdict = l.Refuse(Refusal::kTooLate, start, now);
      }
      if (verdict.kind == Verdict::Kind::kWait) {
        limiter_ = &l;
        state_ = State::kWaiting;
        wakeup_ = Wakeup::ForRunningTask();
      } else {
        (void)l.Leave(*this);  // it was the last in the queue
      }
    }
  }
  if (verdict.kind == Verdict::Kind::kGo && l.capped()) {
    limiter_ = &l;
    state_ = State::kHolding;
  }
  return verdict;
}

template <typename Traits>
Verdict BasicRateLimiter<Traits>::Ticket::Poll(base::TimePoint now) {
  if (state_ != State::kWaiting) return Verdict::Go();
  BasicRateLimiter& l = *limiter_;
  bool took = false;
  Wakeup next;
  {
    Lock lock(l.mutex_);
    if (this->linked()) {
      if (l.queue_.front() != this) return Verdict::Wait(base::kNever);
      const Verdict verdict = l.LookForFirst(now);
      if (verdict.kind == Verdict::Kind::kWait) return verdict;
      next = l.Leave(*this);
      took = true;
    }
  }
  wakeup_ = Wakeup();
  next.Wake();
  if (took && l.capped()) {
    state_ = State::kHolding;
  } else {
    state_ = State::kIdle;
    limiter_ = nullptr;
  }
  return Verdict::Go();
}

template <typename Traits>
Verdict BasicRateLimiter<Traits>::Ticket::Expire(base::TimePoint now, Refusal why) {
  SLUICE_CHECK(state_ == State::kWaiting);
  BasicRateLimiter& l = *limiter_;
  Verdict verdict = Verdict::Go();  // the limit has just been lifted
  Wakeup next;
  {
    Lock lock(l.mutex_);
    if (this->linked()) {
      verdict = l.Refuse(why, l.PredictedStart(l.waiting_.load(std::memory_order_relaxed)), now);
      next = l.Leave(*this);
    }
  }
  wakeup_ = Wakeup();
  next.Wake();
  state_ = State::kIdle;
  limiter_ = nullptr;
  return verdict;
}

template <typename Traits>
void BasicRateLimiter<Traits>::Ticket::Drop() {
  if (state_ == State::kIdle) return;
  if (state_ == State::kHolding) {
    limiter_->Release();
  } else {
    Wakeup next;
    {
      Lock lock(limiter_->mutex_);
      if (this->linked()) next = limiter_->Leave(*this);
    }
    wakeup_ = Wakeup();
    next.Wake();
  }
  state_ = State::kIdle;
  limiter_ = nullptr;
}

}  // namespace sluice::limits
