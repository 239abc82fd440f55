#include "runtime/internal/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>

namespace sluice::runtime {
namespace {

// "50000 100000", or "max 100000": microseconds in a period of so many.
std::optional<double> ReadMax(const std::string& path) {
  std::ifstream file(path);
  double quota = 0, period = 0;
  if (!(file >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The group's path of the line "0::/a/b"; that of cgroup v1 is in other lines.
std::string OwnGroup(const std::string& own) {
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::/")) return line.substr(3);
  }
  return "/";
}

}  // namespace

std::optional<double> CpuQuota(const std::string& own, const std::string& root) {
  std::optional<double> least;
  for (std::string group = OwnGroup(own);; group.erase(group.rfind('/'))) {
    if (group == "/") group.clear();
    if (const auto quota = ReadMax(root + group + "/cpu.max"); quota && (!least || *quota < *least)) least = quota;
    if (group.empty()) return least;
  }
}

unsigned WorkersFor(unsigned cores, std::optional<double> quota) {
  cores = std::max(cores, 1u);
  if (!quota || *quota >= cores) return cores;
  return std::max(1u, static_cast<unsigned>(std::ceil(*quota)));
}

}  // namespace sluice::runtime
