// LockHolders: the holders of a SharedLock and their purposes. Plain data, under the lock's mutex.
// LockBlocker: the same as a request that was kept out saw it, copied under the mutex and spelled after it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace sluice::sync {

enum class LockMode : uint8_t { kShared, kExclusive };

// Holders of one purpose, counted together. `what` is of static duration.
struct LockHolding {
  std::string_view what;
  size_t count = 0;
};

// Copying one allocates nothing.
class LockBlocker {
 public:
  static constexpr size_t kHoldingsMax = 8;  // more are "others"

  void Add(const LockHolding& holding) {
    if (size_ < kHoldingsMax) {
      holdings_[size_++] = holding;
    } else {
      others_ = true;
    }
  }
  // The exclusive request at the front of the queue.
  void SetNext(std::string_view what) {
    next_ = what;
    has_next_ = true;
  }

  // "held by inspection (2), drain, next is reload"; empty: the lock was free.
  std::string ToString() const {
    std::string out;
    for (size_t i = 0; i < size_; ++i) {
      out += i == 0 ? "held by " : ", ";
      out += holdings_[i].what;
      if (holdings_[i].count > 1) out += " (" + std::to_string(holdings_[i].count) + ")";
    }
    if (others_) out += " and others";
    if (has_next_) {
      out += out.empty() ? "next is " : ", next is ";
      out += next_;
    }
    return out;
  }

 private:
  std::array<LockHolding, kHoldingsMax> holdings_;
  size_t size_ = 0;
  bool others_ = false;
  bool has_next_ = false;
  std::string_view next_;
};

class LockHolders {
 public:
  // Room for as many purposes as there usually are, so that a grant does not allocate under the mutex.
  LockHolders() { holdings_.reserve(LockBlocker::kHoldingsMax); }

  bool exclusive() const { return exclusive_; }
  size_t shared() const { return shared_; }
  bool Fits(LockMode mode) const { return !exclusive_ && (mode == LockMode::kShared || shared_ == 0); }

  // Holders of one `what` are counted together: one entry for each different word. `caller`: see IsInside.
  void Add(LockMode mode, std::string_view what, const void* caller) {
    SLUICE_CHECK(Fits(mode));
    if (mode == LockMode::kExclusive) {
      exclusive_ = true;
    } else {
      ++shared_;
    }
    NoteCaller(caller);
    for (LockHolding& holding : holdings_) {
      if (holding.what != what) continue;
      ++holding.count;
      return;
    }
    holdings_.push_back({what, 1});
  }

  void Drop(LockMode mode, std::string_view what, const void* caller) {
    if (mode == LockMode::kExclusive) {
      exclusive_ = false;
    } else {
      --shared_;
    }
    ForgetCaller(caller);
    for (LockHolding& holding : holdings_) {
      if (holding.what != what) continue;
      if (--holding.count > 0) return;
      holding = holdings_.back();
      holdings_.pop_back();
      return;
    }
  }

  void Downgrade() {
    exclusive_ = false;
    shared_ = 1;
  }

  LockBlocker Blocker() const {
    LockBlocker blocker;
    for (const LockHolding& holding : holdings_) blocker.Add(holding);
    return blocker;
  }

  // Whether this task or thread came in and has not left, in builds with assertions; null is never inside.
#ifndef NDEBUG
  bool IsInside(const void* caller) const {
    for (const void* holder : callers_) {
      if (holder == caller) return true;
    }
    return false;
  }
  void ForgetCaller(const void* caller) {
    for (const void*& holder : callers_) {
      if (holder != caller) continue;
      holder = callers_.back();
      callers_.pop_back();
      return;
    }
  }

 private:
  void NoteCaller(const void* caller) {
    if (caller != nullptr) callers_.push_back(caller);
  }
  std::vector<const void*> callers_;
#else
  static bool IsInside(const void*) { return false; }
  static void ForgetCaller(const void*) {}

 private:
  static void NoteCaller(const void*) {}
#endif

  bool exclusive_ = false;
  size_t shared_ = 0;
  std::vector<LockHolding> holdings_;
};

}  // namespace sluice::sync
