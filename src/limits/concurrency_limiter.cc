#include "limits/concurrency_limiter.h"

#include "runtime/worker.h"

namespace sluice::limits {

base::TimePoint ConcurrencyLimiterTraits::Now() {
  const runtime::Worker* worker = runtime::Worker::Current();
  return worker == nullptr ? base::kNever : worker->now();
}

}  // namespace sluice::limits
