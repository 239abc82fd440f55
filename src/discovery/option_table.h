// What may stand in a cluster's `discovery`, besides its source, and in an announcement.
#pragma once

#include "base/option.h"
#include "discovery/options.h"

namespace sluice::discovery {

// Of `dns`: what has no default.
inline constexpr base::Option<DnsOptions> kDnsOptions[] = {
    {"port", &DnsOptions::port, 1, 65535},
};
inline constexpr base::Option<DiscoveryOptions> kDiscoveryOptions[] = {
    {"empty_after", &DiscoveryOptions::empty_after, 0, base::kDay},
    {"moved_max", &DiscoveryOptions::moved_max, 0, 1},
    {"ready_timeout", &DiscoveryOptions::ready_timeout, 0, base::kHour},
};

inline constexpr base::Option<AnnounceOptions> kAnnounceOptions[] = {
    {"lease", &AnnounceOptions::lease, 2 * base::kSecond, base::kHour},
};

}  // namespace sluice::discovery
