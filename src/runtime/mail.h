// Mail: a message to a worker that its sender owns and sends again and again, so that sending allocates nothing.
#pragma once

#include <cstdint>

#include "concurrent/mpsc_queue.h"

namespace sluice::runtime {

// What travels through inboxes and the global queue.
struct Message : concurrent::MpscNode {
  enum class Kind : uint8_t { kTask, kFunction, kMail };
  explicit Message(Kind k) : kind(k) {}
  const Kind kind;
};

// Derive, and hand to Worker::Send. From then until one of the two functions is called the mail belongs to the inbox,
// and the sender leaves it alone.
class Mail : public Message {
 public:
  // On the worker it was sent to, between two tasks or before them; mails of one sender in the order they were sent.
  // What the sender wrote before Send is seen. The mail may be sent again, or destroyed, inside.
  virtual void OnDelivered() = 0;
  // The runtime has shut down with the mail undelivered: on that worker's thread, when no task runs anywhere any more.
  virtual void OnDropped() = 0;

 protected:
  Mail() : Message(Kind::kMail) {}
  ~Mail() = default;
};

}  // namespace sluice::runtime
