// What `top` needs of the daemon's metrics (Prometheus text format 0.0.4): counts of calls and histograms of times.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::ctl {

// Counts of one histogram by the upper bounds of its buckets, in seconds; each count is of its own bucket alone.
using Buckets = std::map<double, double>;

// The time that a share `q` (0..1) of what is in `buckets` did not exceed, in seconds, straight between a bucket's
// bounds, and at most `max`; 0: there is none. 0 where nothing is in it. Of the bucket without a bound: the bound below
// it.
double Quantile(const Buckets& buckets, double q, double max = 0);
// What has come since `before`, of the same histogram; less than that counts as nothing.
Buckets Since(const Buckets& now, const Buckets& before);

struct CallMetrics {
  struct Cluster {
    double calls = 0, errors = 0;  // since the start; errors: with another status than OK
    Buckets duration;
    double longest = 0;  // since the start, in seconds; 0: not known
  };
  std::map<std::string, Cluster> clusters;
  struct Endpoint {
    Buckets latency;     // until the headers
    double longest = 0;  // as above
  };
  std::map<std::pair<std::string, std::string>, Endpoint> endpoints;  // by cluster and endpoint
};

// Lines that are none of these, or not as they should be, are passed over.
CallMetrics ReadCallMetrics(std::string_view text);

}  // namespace sluice::ctl
