// When a worker sleeps, what wakes it, and how work moves from a worker that is behind to one that is idle.
//
// Waking another core costs 40 to 400 us on a virtual machine, more than most tasks: so a push wakes no other worker
// while its own keeps up (docs/scheduler.md, "When is a worker behind").
#include <algorithm>

#include "runtime/internal/runtime_impl.h"
#include "runtime/internal/worker_impl.h"

namespace sluice::runtime {

// How long the reactor may wait. Zero: there is something to do. Else this worker has announced that it is parked.
base::Nanos Worker::Impl::PrepareToWait() {
  slot_seen_ = false;
  if (shared_ && self_.runtime_.impl_->idle.TryStartSearching(self_.runtime_.size())) {
    searching_ = true;
    if (Search()) return base::Nanos(0);
  }
  // seq_cst: pairs with WakeIfParked. We announce, then look into the inbox; a sender pushes, then looks for
  // the announcement. Release and acquire would let both look too early.
  park_.store(kParked, std::memory_order_seq_cst);
  if (shared_) self_.runtime_.impl_->idle.Park();
  if (ForeignWork()) {
    EndWait();
    // Found by the second look: perhaps no other worker is searching, so do not ask for leave.
    if (shared_ && !searching_) {
      self_.runtime_.impl_->idle.StartSearching();
      searching_ = true;
    }
    return base::Nanos(0);
  }
  Bump(parks_);
  const base::TimePoint next = self_.timers_->NextExpiry();
  base::Nanos timeout = Reactor::kWaitMax;
  if (next != base::kNever) timeout = std::clamp(next - self_.now_, base::Nanos(0), timeout);
  // A slot that could not be stolen yet: look again soon.
  if (slot_seen_) timeout = std::min<base::Nanos>(timeout, std::chrono::milliseconds(1));
  return timeout;
}

void Worker::Impl::EndWait() {
  // seq_cst, before the look at the monitor's doze: pairs with MustNotSleep. The look is past a wait only; a worker
  // that has not waited finds it awake.
  const uint32_t state = park_.exchange(kAwake, std::memory_order_seq_cst);
  doze_.End();
  // The waker has taken us off the count already.
  if (state == kParked && shared_) self_.runtime_.impl_->idle.Unpark();
  if (state == kWokenToSearch) searching_ = true;
}

// The second look, after the announcement.
bool Worker::Impl::ForeignWork() const {
  Runtime& runtime = self_.runtime_;
  if (!inbox_.Empty() || !runtime.impl_->global.Empty()) return true;
  if (runtime.impl_->stopping.load(std::memory_order_seq_cst)) return true;
  for (size_t i = 0; shared_ && i < runtime.size(); ++i) {
    if (i != self_.index_ && runtime.impl_->ImplOf(i).Stealable()) return true;
  }
  return false;
}

// Any thread, after publishing something for this worker.
void Worker::Impl::WakeIfParked() {
  if (park_.load(std::memory_order_seq_cst) != kParked) return;  // pairs with PrepareToWait
  uint32_t parked = kParked;
  if (!park_.compare_exchange_strong(parked, kWoken, std::memory_order_acq_rel, std::memory_order_relaxed)) return;
  if (shared_) self_.runtime_.impl_->idle.Unpark();
  reactor_.Wake();
}

void Runtime::Impl::WakeSearcher(uint32_t first_to_try) {
  const size_t n = self.workers_.size();
  while (idle.TryClaim()) {
    for (size_t i = 0; i < n; ++i) {
      Worker::Impl& worker = ImplOf((first_to_try + i) % n);
      uint32_t parked = Worker::Impl::kParked;
      if (worker.park_.load(std::memory_order_relaxed) == parked &&
          worker.park_.compare_exchange_strong(parked, Worker::Impl::kWokenToSearch, std::memory_order_acq_rel,
                                               std::memory_order_relaxed)) {
        worker.reactor_.Wake();
        return;
      }
    }
    // The parked one woke by itself. Again: while our claim stood another pusher may have relied on it.
    idle.UndoClaim();
  }
}

// Owner. `behind`: this worker has more to do than it will have done before another core is awake.
void Worker::Impl::NotifyIfBehind(bool behind) {
  if (!behind || !shared_) return;
  if (!behind_.load(std::memory_order_relaxed)) behind_.store(true, std::memory_order_release);
  if (notified_this_turn_) return;  // the searcher that finds work wakes the next one
  notified_this_turn_ = true;
  self_.runtime_.impl_->WakeSearcher(self_.index_ + 1);
}

bool Worker::Impl::Search() {
  Runtime& runtime = self_.runtime_;
  const size_t n = runtime.size();
  const size_t start = self_.random_.Below(n);
  bool found = false;
  for (size_t i = 0; i < n && !found; ++i) {
    Impl& victim = runtime.impl_->ImplOf((start + i) % n);
    if (&victim == this) continue;
    if (TaskHeader* task = StealFrom(victim)) {
      Bump(steals_);
      SLUICE_CHECK(run_queue_.Push(task));
      found = true;
      if (victim.Stealable() || run_queue_.SizeApprox() > kBehindTasks) notified_this_turn_ = false;
    }
  }
  if (!found) found = TakeGlobal();
  searching_ = false;
  const bool last = runtime.impl_->idle.StopSearching();
  // While we searched, pushers woke no worker: pass it on.
  if (found && last) runtime.impl_->WakeSearcher(self_.index_ + 1);
  return found;
}

TaskHeader* Worker::Impl::StealFrom(Impl& victim) {
  if (victim.Stealable() && run_queue_.SizeApprox() <= kRunQueueMax / 2) {
    if (TaskHeader* task = victim.run_queue_.StealInto(run_queue_)) return task;
  }
  if (victim.slot_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  SlotSighting& sighting = sightings_[victim.self_.index_];
  const uint64_t polls = victim.polls_.load(std::memory_order_relaxed);
  if (sighting.polls != polls) sighting = SlotSighting{polls, self_.now_};
  slot_seen_ = true;
  if (self_.now_ - sighting.since <= kSlotStealAge) return nullptr;
  return victim.slot_.exchange(nullptr, std::memory_order_acq_rel);  // pairs with PushSlot
}

}  // namespace sluice::runtime
