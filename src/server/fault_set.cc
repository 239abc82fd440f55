#include "server/fault_set.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace sluice::server {

using base::ErrorKind;
using base::MakeError;
using proxy::Fault;
using proxy::FaultOptions;

namespace {

admin::FaultView ViewOf(const Fault& fault, base::TimePoint now) {
  return {fault.id, fault.options, fault.ends - now, fault.calls.load(std::memory_order_relaxed)};
}

// "pkg.Service/Get" -> "/pkg.Service/Get"; empty: it is no method.
std::string MethodOf(const std::string& target) {
  const std::string path = target.starts_with('/') ? target : "/" + target;
  const size_t slash = path.find('/', 1);
  const bool is_method =
      slash != path.npos && slash > 1 && slash + 1 < path.size() && path.find('/', slash + 1) == path.npos;
  return is_method ? path : "";
}

}  // namespace

base::Result<admin::FaultView> FaultSet::Add(const admin::FaultOrder& order, const base::Result<std::string>& route) {
  FaultOptions options;
  if (route.ok())
    options.route = *route;
  else if (options.method = MethodOf(order.target); options.method.empty())
    return MakeError(ErrorKind::kNotFound, route.error().detail + "; or name a method, like pkg.Service/Get");
  if (order.delay > order.time) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "the delay is longer than the fault's own time: a call without a "
                     "deadline would wait for all of it");
  }
  options.delay = order.delay;
  options.abort = order.abort;
  options.reset_after = order.reset_after;
  options.percent = order.percent;
  std::lock_guard lock(mutex_);
  const base::TimePoint now = clock_.Now();
  DropEndedLocked(now);
  if (faults_.size() >= FaultOptions::kFaultsMax) {
    return MakeError(ErrorKind::kInvalidArgument,
                     "there are " + std::to_string(FaultOptions::kFaultsMax) + " faults, as many as there may be");
  }
  faults_.push_back(std::make_shared<const Fault>(++last_id_, std::move(options), now + order.time));
  PublishLocked();
  return ViewOf(*faults_.back(), now);
}

base::Status FaultSet::Remove(uint64_t id) {
  std::lock_guard lock(mutex_);
  DropEndedLocked(clock_.Now());
  const size_t removed = std::erase_if(faults_, [id](const auto& fault) { return fault->id == id; });
  PublishLocked();
  if (removed == 0) return MakeError(ErrorKind::kNotFound, "no fault " + std::to_string(id) + ", or it has ended");
  return base::Ok();
}

std::vector<admin::FaultView> FaultSet::List() {
  std::lock_guard lock(mutex_);
  const base::TimePoint now = clock_.Now();
  std::vector<admin::FaultView> out;
  for (const auto& fault : faults_) {
    if (now < fault->ends) out.push_back(ViewOf(*fault, now));
  }
  return out;
}

void FaultSet::Poll() {
  std::lock_guard lock(mutex_);
  if (DropEndedLocked(clock_.Now())) PublishLocked();
}

bool FaultSet::DropEndedLocked(base::TimePoint now) {
  return std::erase_if(faults_, [&](const auto& fault) {
           if (now < fault->ends) return false;
           SLUICE_LOG_INFO("fault {} has ended, it has met {} calls", fault->id,
                           fault->calls.load(std::memory_order_relaxed));
           return true;
         }) > 0;
}

void FaultSet::PublishLocked() {
  publish_(faults_.empty() ? nullptr : std::make_shared<const proxy::FaultTable>(faults_));
}

}  // namespace sluice::server
