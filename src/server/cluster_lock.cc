#include "server/cluster_lock.h"

#include "base/check.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;

base::Result<LockedCluster> ClusterLock::Lock(std::shared_ptr<ClusterLock> lock, sync::LockMode mode,
                                              std::string_view what, base::TimePoint deadline) {
  sync::SharedLock::Result result = lock->lock_.AcquireBlocking(mode, what, deadline);
  switch (result.outcome) {
    case sync::LockOutcome::kGranted:
      return LockedCluster(std::move(lock), std::move(result.guard));
    case sync::LockOutcome::kRemoved:
      return MakeError(ErrorKind::kRemoved, "cluster " + lock->name() + " was removed while the request waited");
    case sync::LockOutcome::kTimedOut:
    case sync::LockOutcome::kCancelled:
    case sync::LockOutcome::kWaiting:
      break;
  }
  return MakeError(ErrorKind::kBusy, "cluster " + lock->name() + " is busy: " + result.blocker);
}

void ClusterLock::Remove(sync::SharedLock::Guard& guard) { SLUICE_CHECK(lock_.Remove(guard)); }

void ClusterLock::AddLeaving(const std::vector<std::shared_ptr<upstream::Endpoint>>& endpoints) {
  std::lock_guard lock(mutex_);
  leaving_.insert(leaving_.end(), endpoints.begin(), endpoints.end());
}

std::vector<std::shared_ptr<upstream::Endpoint>> ClusterLock::Leaving() {
  std::vector<std::shared_ptr<upstream::Endpoint>> out;
  std::lock_guard lock(mutex_);
  for (const auto& weak : leaving_) {
    if (auto endpoint = weak.lock()) out.push_back(std::move(endpoint));
  }
  return out;
}

void ClusterLock::Sweep() {
  std::lock_guard lock(mutex_);
  std::erase_if(leaving_, [](const auto& endpoint) { return endpoint.expired(); });
}

}  // namespace sluice::server
