#include "net/descriptor_reserve.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace sluice::net {

bool DescriptorReserve::MayTake() {
  if (!short_) return true;
  ReadLimit();  // it may have been changed from outside (prlimit)
  const int lowest = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (lowest < 0) return false;
  ::close(lowest);
  short_ = lowest >= mark_;
  return !short_;
}

void DescriptorReserve::ReadLimit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) limit.rlim_cur = INT_MAX;  // not permitted: nothing is kept
  limit_ = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, INT_MAX));
  mark_ = MarkOf(limit_, share_);
}

int DescriptorReserve::MarkOf(int limit, int share) { return limit - std::min(limit / share, kMax * kShare / share); }

}  // namespace sluice::net
