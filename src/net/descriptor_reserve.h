// DescriptorReserve: keeps the process's last file descriptors from clients. Calls of connected clients need some for
// backends, the operator needs one for the admin RPC, and logs and the state file are opened anew now and then.
//
// The kernel gives the lowest free number. So one below the mark says that there are descriptors left, at no cost; once
// a client got one above it, each look asks for one and gives it back. Not thread-safe. Several users may each go over
// the mark by one.
#pragma once

#include <climits>

namespace sluice::net {

class DescriptorReserve {
 public:
  // Kept of RLIMIT_NOFILE: one in kShare, at most kMax; half of that from operators, so that they get in when clients
  // do not.
  static constexpr int kShare = 8, kMax = 1024, kOperatorsShare = 2 * kShare;
  // Users that are few by a bound of their own.
  static constexpr int kNothingKept = INT_MAX;

  // `share` is one of the above.
  explicit DescriptorReserve(int share = kShare) : share_(share) { ReadLimit(); }

  // A client (an operator, where made for these) may have a descriptor now.
  bool MayTake();
  // A client got this one.
  void Took(int fd) { short_ = fd >= mark_; }
  // There was none.
  void NoneLeft() { short_ = true; }
  // Of `limit` descriptors, the first number that is not for those of `share`.
  static int MarkOf(int limit, int share);
  // RLIMIT_NOFILE as last looked at.
  int limit() const { return limit_; }

 private:
  void ReadLimit();

  const int share_;
  int limit_ = 0, mark_ = 0;  // MarkOf it
  bool short_ = false;
};

}  // namespace sluice::net
