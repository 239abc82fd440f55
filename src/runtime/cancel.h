// CancelSource and CancelToken: a wish to stop, passed down by value. One worker only; no locks.
//
// The owner of a piece of work has a CancelSource; whatever waits on its behalf gets a token and, while it
// waits, a registered CancelCallback. Cancel() is sticky, runs each callback once and leaves the list empty.
#pragma once

#include "base/intrusive_list.h"

namespace sluice::runtime {

// Derive and override OnCancel. The destructor unregisters.
class CancelCallback : public base::ListNode<CancelCallback> {
 public:
  virtual void OnCancel() = 0;

 protected:
  ~CancelCallback() = default;
};

class CancelSource;

class CancelToken {
 public:
  CancelToken() = default;  // never cancelled
  bool cancelled() const;
  // Calls back when cancelled; the caller has checked cancelled() first.
  void Register(CancelCallback& callback) const;

 private:
  friend class CancelSource;
  explicit CancelToken(CancelSource* source) : source_(source) {}
  CancelSource* source_ = nullptr;
};

// Outlives its tokens' use.
class CancelSource {
 public:
  CancelToken token() { return CancelToken(this); }
  bool cancelled() const { return cancelled_; }
  void Cancel() {
    cancelled_ = true;
    while (CancelCallback* callback = callbacks_.PopFront()) callback->OnCancel();
  }

 private:
  friend class CancelToken;
  bool cancelled_ = false;
  base::IntrusiveList<CancelCallback, CancelCallback> callbacks_;
};

inline bool CancelToken::cancelled() const { return source_ != nullptr && source_->cancelled(); }
inline void CancelToken::Register(CancelCallback& callback) const {
  if (source_ != nullptr) source_->callbacks_.PushBack(callback);
}

}  // namespace sluice::runtime
