// LockHolders: who is inside of a SharedLock, and what for. Plain data, under the lock's mutex.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"

namespace sluice::sync {

enum class LockMode : uint8_t { kShared, kExclusive };

class LockHolders {
 public:
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
    for (Holding& holding : holdings_) {
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
    for (Holding& holding : holdings_) {
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

  // "held by inspection (2), drain"; empty: nobody is inside.
  std::string ToString() const {
    std::string out;
    for (const Holding& holding : holdings_) {
      out += out.empty() ? "held by " : ", ";
      out += holding.what;
      if (holding.count > 1) out += " (" + std::to_string(holding.count) + ")";
    }
    return out;
  }

  // Whether this task or thread came in and has not left, in builds with assertions; null is nobody.
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

  struct Holding {
    std::string_view what;
    size_t count;
  };
  bool exclusive_ = false;
  size_t shared_ = 0;
  std::vector<Holding> holdings_;
};

}  // namespace sluice::sync
