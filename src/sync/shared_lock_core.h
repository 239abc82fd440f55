// BasicSharedLock: shared and exclusive holders, one fair queue, removal. A state machine; never suspends.
//
//   holders    none | one exclusive | any number of shared
//   queue_     front  E  E  [group]  E  back       E: one exclusive waiter. group: all shared waiters, at most one
//   sharers_   the members of the group, in order of arrival; removed_   for good: no holders, no queue
//   telling_   waiters whose outcome is set and whose wake-up has not been taken yet
//
// A waiter:  idle -> queued -> (granted | removed) in telling_ -> told          outcome set once, under mutex_
//                      \-> timed out, cancelled: by Leave, without a wake-up
//
// Rules (docs/shared-lock.md; Ganeti, doc/design-2.1.rst, with hand-over):
//   1. A request is granted at once only if the queue is empty and the mode fits the holders. Else an exclusive goes to
//      the back, a shared one joins the group wherever it stands, or opens it at the back.
//   2. After every change of holders or of the front, the front is granted if it fits. So the queue's front never fits.
//   3. A group closes (leaves queue_) before any of it is told: newcomers open the next one, behind waiting exclusives.
//   4. A waiter that leaves may have been the front: rule 2 again.
//      Without that a sharer behind an exclusive that gave up waits for a release that
//      changes nothing for it.
// Hence an exclusive waits for the exclusives before it, one group that stood before it, and one group per downgrade.
//
// Ownership is handed over: a waiter wakes as holder. A guard is a value and belongs to no thread: tasks migrate.
// Thread safety: everything from any thread, under one small mutex. Wake-ups are moved out under it and called after
// it, in batches of kWakeBatch, so no stranger's code runs inside and nothing is allocated for any number of waiters.
// Lifetime: the lock outlives every call on it, a guard's destructor included: hold it counted where it can be removed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/intrusive_list.h"
#include "sync/shared_lock_holders.h"

namespace sluice::sync {

// kTimedOut also: it would have had to wait and was not allowed to.
enum class LockOutcome : uint8_t { kWaiting, kGranted, kTimedOut, kCancelled, kRemoved };
std::string_view ToString(LockOutcome outcome);

// Traits: Mutex (lock, unlock), Wakeup (default constructible, movable, Wake() from any thread).
template <typename Traits>
class BasicSharedLock {
  struct QueueTag {};
  struct WaiterTag {};
  using Mutex = typename Traits::Mutex;
  using Lock = std::unique_lock<Mutex>;
  // A place in the queue: an exclusive waiter, or the group.
  struct Place : base::ListNode<QueueTag> {};

 public:
  using Wakeup = typename Traits::Wakeup;
  static constexpr size_t kWakeBatch = 16;

  // The right to be inside. Move-only; the destructor releases.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept { Swap(other); }
    Guard& operator=(Guard&& other) noexcept {
      Guard(std::move(other)).Swap(*this);
      return *this;
    }
    ~Guard() { Release(); }

    explicit operator bool() const { return lock_ != nullptr; }
    LockMode mode() const { return mode_; }
    void Release() {
      if (BasicSharedLock* lock = std::exchange(lock_, nullptr)) lock->ReleaseHeld(mode_, what_, caller_);
    }
    // Exclusive becomes shared without a gap, and the shared ones that wait come in. Nothing for a shared guard, or a
    // holder could keep pulling newcomers past the exclusives.
    void Downgrade() {
      if (lock_ == nullptr || mode_ == LockMode::kShared) return;
      mode_ = LockMode::kShared;
      lock_->DowngradeHeld();
    }
    // Another task or thread goes on with it: the one that asked may ask again (see Start, `caller`).
    void PassOn() {
      if (lock_ != nullptr && caller_ != nullptr) lock_->PassOnHeld(std::exchange(caller_, nullptr));
    }

   private:
    friend class BasicSharedLock;
    Guard(BasicSharedLock* lock, LockMode mode, std::string_view what, const void* caller)
        : lock_(lock), mode_(mode), what_(what), caller_(caller) {}
    void Swap(Guard& other) {
      std::swap(lock_, other.lock_);
      std::swap(mode_, other.mode_);
      std::swap(what_, other.what_);
      std::swap(caller_, other.caller_);
    }
    BasicSharedLock* lock_ = nullptr;
    LockMode mode_ = LockMode::kShared;
    std::string_view what_;
    const void* caller_ = nullptr;
  };

  struct Result {
    LockOutcome outcome = LockOutcome::kWaiting;
    Guard guard;          // held if kGranted
    std::string blocker;  // kTimedOut, kCancelled: "held by reload", "held by inspection (2), next is reload"
  };

  // One request. Lives where its owner waits; the destructor leaves the lock, whatever the state.
  class Waiter : private Place, private base::ListNode<WaiterTag> {
   public:
    Waiter() = default;
    ~Waiter() {
      if (lock_ != nullptr) (void)lock_->End(*this);
    }

   private:
    friend class BasicSharedLock;
    template <typename, typename>
    friend class base::IntrusiveList;
    BasicSharedLock* lock_ = nullptr;  // from Start to Finish; the owner's
    // Below: under the lock's mutex from Start to Finish.
    LockMode mode_ = LockMode::kShared;
    LockOutcome outcome_ = LockOutcome::kWaiting;
    std::string_view what_;
    const void* caller_ = nullptr;
    Wakeup wakeup_;
    LockBlocker blocker_;
  };

  BasicSharedLock() = default;
  BasicSharedLock(const BasicSharedLock&) = delete;
  BasicSharedLock& operator=(const BasicSharedLock&) = delete;
  ~BasicSharedLock() {
    // Audit: every guard and every waiter has gone.
    SLUICE_CHECK(!holders_.exclusive() && holders_.shared() == 0);
    SLUICE_CHECK(queue_.empty() && sharers_.empty() && telling_.empty());
  }

  // Asks. kWaiting: queued; `wakeup` is called once when the outcome is set, unless Leave or Finish comes before.
  // Anything else: decided, ask Finish. Without `may_wait` it is never kWaiting. `what`: why, for those it keeps out;
  // of static duration, and few different ones. `caller`: identifies the asking task or thread in builds with
  // assertions, where a second request by a holder stops the process (the lock is not recursive); null: not checked.
  LockOutcome Start(Waiter& waiter, LockMode mode, std::string_view what, bool may_wait, Wakeup wakeup,
                    const void* caller = nullptr) {
    SLUICE_CHECK(waiter.lock_ == nullptr);
    waiter.lock_ = this;
    Lock lock(mutex_);
    waiter.mode_ = mode;
    waiter.what_ = what;
    waiter.caller_ = caller;
    waiter.blocker_ = {};
    waiter.outcome_ = LockOutcome::kWaiting;
    SLUICE_DCHECK(caller == nullptr || !holders_.IsInside(caller));
    if (removed_) return waiter.outcome_ = LockOutcome::kRemoved;
    if (queue_.empty() && holders_.Fits(mode)) {
      Hold(waiter);
      return waiter.outcome_;
    }
    if (!may_wait) {
      waiter.blocker_ = Blocker();
      return waiter.outcome_ = LockOutcome::kTimedOut;
    }
    waiter.wakeup_ = std::move(wakeup);
    if (mode == LockMode::kExclusive) {
      queue_.PushBack(waiter);
      ++exclusive_waiting_;
    } else {
      if (!group_.linked()) queue_.PushBack(group_);
      sharers_.PushBack(waiter);
    }
    return LockOutcome::kWaiting;
  }

  // Gives up a wait, from any place in the queue, in constant time; `why`: kTimedOut or kCancelled. Receives the
  // wake-up, which was not called. False: the outcome was set before, and the wake-up has been called or will be.
  bool Leave(Waiter& waiter, LockOutcome why, Wakeup* wakeup = nullptr) {
    SLUICE_CHECK(waiter.lock_ == this);
    Lock lock(mutex_);
    if (waiter.outcome_ != LockOutcome::kWaiting) return false;
    LeaveQueue(waiter, why);
    Wakeup removed = std::move(waiter.wakeup_);
    TellAll(lock);
    if (wakeup != nullptr) *wakeup = std::move(removed);
    return true;
  }

  // Ends a request: what became of it. One that still waits leaves as cancelled; a wake-up not yet taken is not called.
  Result Finish(Waiter& waiter) {
    Ended ended = End(waiter);
    return {ended.outcome, std::move(ended.guard), ended.blocker.ToString()};
  }

  // The end: no holder, every waiter ends with kRemoved in queue order, all later requests at once. False, and nothing
  // changed: `guard` does not hold this lock exclusively. No continuation runs inside.
  bool Remove(Guard& guard) {
    if (guard.lock_ != this || guard.mode_ != LockMode::kExclusive) return false;
    guard.lock_ = nullptr;
    Lock lock(mutex_);
    removed_ = true;
    holders_.Drop(LockMode::kExclusive, guard.what_, guard.caller_);
    while (Place* place = queue_.PopFront()) {
      if (place == &group_) {
        while (Waiter* sharer = sharers_.PopFront()) Decide(*sharer, LockOutcome::kRemoved);
      } else {
        Decide(static_cast<Waiter&>(*place), LockOutcome::kRemoved);
      }
    }
    exclusive_waiting_ = 0;
    TellAll(lock);
    return true;
  }

  bool removed() {
    Lock lock(mutex_);
    return removed_;
  }

  // A moment's look, for inspection and tests.
  struct View {
    bool exclusive = false, removed = false;
    size_t shared = 0, groups = 0, exclusive_waiting = 0;
    bool front_fits = false;  // never true: rule 2
    std::string blocker;
  };
  View Look() {
    View view;
    LockBlocker blocker;
    {
      Lock lock(mutex_);
      view = {holders_.exclusive(),
              removed_,
              holders_.shared(),
              exclusive_waiting_ + (group_.linked() ? 1 : 0),
              exclusive_waiting_,
              false,
              {}};
      if (Place* front = queue_.front()) view.front_fits = Fits(*front);
      blocker = Blocker();
    }
    view.blocker = blocker.ToString();
    return view;
  }

 private:
  // What became of a request, before anything is spelled.
  struct Ended {
    LockOutcome outcome = LockOutcome::kWaiting;
    Guard guard;
    LockBlocker blocker;
  };
  Ended End(Waiter& waiter) {
    SLUICE_CHECK(waiter.lock_ == this);
    Ended ended;
    Wakeup dropped;  // destroyed after the mutex
    Lock lock(mutex_);
    waiter.lock_ = nullptr;
    if (waiter.outcome_ == LockOutcome::kWaiting) LeaveQueue(waiter, LockOutcome::kCancelled);
    static_cast<base::ListNode<WaiterTag>&>(waiter).Unlink();  // telling_
    dropped = std::move(waiter.wakeup_);
    ended.outcome = waiter.outcome_;
    ended.blocker = waiter.blocker_;
    if (waiter.outcome_ == LockOutcome::kGranted) ended.guard = Guard(this, waiter.mode_, waiter.what_, waiter.caller_);
    TellAll(lock);
    return ended;
  }

  // All below: under mutex_.
  bool Fits(const Place& place) const {
    return holders_.Fits(&place == &group_ ? LockMode::kShared : LockMode::kExclusive);
  }

  void Hold(Waiter& waiter) {
    waiter.outcome_ = LockOutcome::kGranted;
    holders_.Add(waiter.mode_, waiter.what_, waiter.caller_);
  }

  void ReleaseHeld(LockMode mode, std::string_view what, const void* caller) {
    Lock lock(mutex_);
    holders_.Drop(mode, what, caller);
    GrantFront();  // a shared release that is not the last finds that the front does not fit
    TellAll(lock);
  }

  void DowngradeHeld() {
    Lock lock(mutex_);
    holders_.Downgrade();
    if (group_.linked()) GrantGroup();
    TellAll(lock);
  }

  void PassOnHeld(const void* caller) {
    Lock lock(mutex_);
    holders_.ForgetCaller(caller);
  }

  void Decide(Waiter& waiter, LockOutcome outcome) {
    waiter.outcome_ = outcome;
    telling_.PushBack(waiter);
  }

  void GrantGroup() {
    group_.Unlink();  // closed: from here on newcomers open the next one
    while (Waiter* sharer = sharers_.PopFront()) {
      Hold(*sharer);
      telling_.PushBack(*sharer);
    }
  }

  // Rule 2.
  void GrantFront() {
    while (Place* front = queue_.front()) {
      if (!Fits(*front)) return;
      if (front == &group_) {
        GrantGroup();
        continue;
      }
      front->Unlink();
      --exclusive_waiting_;
      Hold(static_cast<Waiter&>(*front));
      telling_.PushBack(static_cast<Waiter&>(*front));
    }
  }

  void LeaveQueue(Waiter& waiter, LockOutcome why) {
    waiter.outcome_ = why;
    if (waiter.mode_ == LockMode::kExclusive) {
      static_cast<Place&>(waiter).Unlink();
      --exclusive_waiting_;
    } else {
      static_cast<base::ListNode<WaiterTag>&>(waiter).Unlink();
      if (sharers_.empty()) group_.Unlink();
    }
    waiter.blocker_ = Blocker();
    GrantFront();  // rule 4
  }

  // Takes wake-ups out in batches and calls them without the mutex; leaves it unlocked. Once the last one is taken the
  // lock is not touched again: the woken waiter may destroy it.
  void TellAll(Lock& lock) {
    while (!telling_.empty()) {
      std::array<Wakeup, kWakeBatch> batch;
      size_t count = 0;
      while (count < kWakeBatch && !telling_.empty()) batch[count++] = std::move(telling_.PopFront()->wakeup_);
      const bool more = !telling_.empty();
      lock.unlock();
      for (size_t i = 0; i < count; ++i) batch[i].Wake();
      if (!more) return;
      lock.lock();
    }
    lock.unlock();
  }

  LockBlocker Blocker() {
    LockBlocker blocker = holders_.Blocker();
    if (Place* front = queue_.front(); front != nullptr && front != &group_) {
      blocker.SetNext(static_cast<Waiter&>(*front).what_);
    }
    return blocker;
  }

  Mutex mutex_;
  bool removed_ = false;
  LockHolders holders_;
  size_t exclusive_waiting_ = 0;
  base::IntrusiveList<Place, QueueTag> queue_;
  Place group_;  // in queue_ while sharers_ is not empty
  base::IntrusiveList<Waiter, WaiterTag> sharers_;
  base::IntrusiveList<Waiter, WaiterTag> telling_;
};

}  // namespace sluice::sync
