#include "proxy/bell.h"

#include <sys/eventfd.h>
#include <unistd.h>

namespace sluice::proxy {

Bell::Bell() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Bell::~Bell() {
  if (fd_ >= 0) ::close(fd_);
}

void Bell::Wake() const {
  const uint64_t one = 1;
  // It cannot be full: Hear empties it before another ring writes.
  if (fd_ >= 0) [[maybe_unused]]
    const ssize_t written = ::write(fd_, &one, sizeof(one));
}

void Bell::Hear() {
  uint64_t count;
  // Before the store: a ring after it is to be heard. In any case: a ring whose write comes after an earlier Hear has
  // cleared its word would keep poll(2) from waiting ever again.
  if (fd_ >= 0) [[maybe_unused]]
    const ssize_t taken = ::read(fd_, &count, sizeof(count));
  rung_.store(0, std::memory_order_seq_cst);
}

}  // namespace sluice::proxy
