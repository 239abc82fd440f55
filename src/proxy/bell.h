// Bell: wakes a thread that polls, as those of the log and of the exporter: at most one system call for what rings
// between two of its rounds.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::proxy {

class Bell {
 public:
  Bell();
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // Any thread.
  void Ring() {
    // seq_cst, with the store in Hear: a ring that is left out was heard by a round that has yet to look into the rings
    // (concurrent/record_ring.h).
    if (rung_.load(std::memory_order_seq_cst) == 0 && rung_.exchange(1, std::memory_order_seq_cst) == 0) Wake();
  }
  // The woken thread, before it looks.
  void Hear();
  // Readable once it has rung; -1: the system had none left, and the thread wakes by time alone.
  int fd() const { return fd_; }

 private:
  void Wake() const;

  std::atomic<uint32_t> rung_{0};
  int fd_;
};

}  // namespace sluice::proxy
