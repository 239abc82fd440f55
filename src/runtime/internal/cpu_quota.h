// CpuQuota: how much CPU time a control group lets this process have, whatever cores it may run on.
#pragma once

#include <optional>
#include <string>

namespace sluice::runtime {

// In cores (1.5: 150 ms in 100), the least of the process's group and the groups above it (cgroup v2: cpu.max; v1:
// cpu.cfs_quota_us by cpu.cfs_period_us); nullopt: no bound, or none that can be read. `own`: as /proc/self/cgroup;
// `root`: as /sys/fs/cgroup. Blocks; any thread.
std::optional<double> CpuQuota(const std::string& own = "/proc/self/cgroup",
                               const std::string& root = "/sys/fs/cgroup");

// Workers for so many cores and such a quota: a part of a core needs a worker too. At least 1.
unsigned WorkersFor(unsigned cores, std::optional<double> quota);

}  // namespace sluice::runtime
