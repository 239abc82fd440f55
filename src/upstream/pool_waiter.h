// PoolWaiter: an attempt that waits for a connection of an EndpointPool.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/error.h"
#include "base/intrusive_list.h"

namespace sluice::http2 {
class Connection;
}

namespace sluice::upstream {

// Told once; CancelWait or the destructor leaves the queue from any place in it.
class PoolWaiter : public base::ListNode<PoolWaiter> {
 public:
  // `connection` has room: open a stream on it now, inside the call, because the next waiter is served after it.
  virtual void OnConnection(http2::Connection& connection) = 0;
  virtual void OnNoConnection(const base::Error& error) = 0;
  // When it began to wait: before Wait. The same for as long as it waits.
  virtual base::TimePoint WaitsSince() const = 0;
  void CancelWait() {
    if (linked() && waiting_ != nullptr) --*waiting_;
    Unlink();
  }

 protected:
  ~PoolWaiter() { CancelWait(); }

 private:
  friend class EndpointPool;
  friend class LoneCalls;
  uint32_t* waiting_ = nullptr;  // how many wait in its queue; null: it waits alone
};

}  // namespace sluice::upstream
