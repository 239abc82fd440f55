#include "server/cluster_life.h"

#include "base/check.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;

base::Result<HeldCluster> ClusterLife::Hold(std::shared_ptr<ClusterLife> life, sync::LockMode mode,
                                            std::string_view what, base::TimePoint deadline) {
  sync::SharedLock::Result result = life->lock_.AcquireBlocking(mode, what, deadline);
  switch (result.outcome) {
    case sync::LockOutcome::kGranted:
      return HeldCluster(std::move(life), std::move(result.guard));
    case sync::LockOutcome::kRemoved:
      return MakeError(ErrorKind::kRemoved, "cluster " + life->name() + " was removed while the request waited");
    case sync::LockOutcome::kTimedOut:
    case sync::LockOutcome::kCancelled:
    case sync::LockOutcome::kWaiting:
      break;
  }
  return MakeError(ErrorKind::kBusy, "cluster " + life->name() + " is busy: " + result.blocker);
}

void ClusterLife::Remove(sync::SharedLock::Guard& guard) { SLUICE_CHECK(lock_.Remove(guard)); }

void ClusterLife::AddLeaving(const std::vector<std::shared_ptr<upstream::Endpoint>>& endpoints) {
  std::lock_guard lock(mutex_);
  leaving_.insert(leaving_.end(), endpoints.begin(), endpoints.end());
}

std::vector<std::shared_ptr<upstream::Endpoint>> ClusterLife::Leaving() {
  std::vector<std::shared_ptr<upstream::Endpoint>> out;
  std::lock_guard lock(mutex_);
  for (const auto& weak : leaving_) {
    if (auto endpoint = weak.lock()) out.push_back(std::move(endpoint));
  }
  return out;
}

void ClusterLife::Sweep() {
  std::lock_guard lock(mutex_);
  std::erase_if(leaving_, [](const auto& endpoint) { return endpoint.expired(); });
}

}  // namespace sluice::server
