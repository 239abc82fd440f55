// FdWatch: a descriptor's registration with its worker's reactor. It is added once; from then on its edges are told,
// and the kernel is asked for nothing in between: no system call for each wait, no operation object (docs/scheduler.md,
// "Sockets").
//
// Derive, Worker::Watch. Lives and dies on that worker; Worker::Unwatch before the descriptor is closed and before the
// object dies. From then on nothing is told, also not what the kernel had reported already.
#pragma once

#include <cstdint>

#include "base/intrusive_list.h"

namespace sluice::runtime {

class FdWatch : private base::ListNode<FdWatch> {
 public:
  // `events`: what the descriptor is ready for now, in the bits of epoll(7). Edge-triggered: told when that has
  // changed, and perhaps when it has not. May Unwatch and destroy itself and others.
  virtual void OnEdge(uint32_t events) = 0;
  // What Worker::RequeueNextTurn asked for. May do what OnEdge may.
  virtual void OnRequeued() = 0;

 protected:
  ~FdWatch() = default;

 private:
  friend class Reactor;
  template <typename, typename>
  friend class base::IntrusiveList;
};

}  // namespace sluice::runtime
