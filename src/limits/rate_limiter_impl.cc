// The RateLimiter of the proxy, compiled once.
#include "limits/rate_limiter_impl.h"

namespace sluice::limits {

template class BasicRateLimiter<RateLimiterTraits>;

}  // namespace sluice::limits
