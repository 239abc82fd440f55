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

// Of cgroup v1: two files, and -1 for no bound.
std::optional<double> ReadCfs(const std::string& group) {
  std::ifstream quota_file(group + "/cpu.cfs_quota_us"), period_file(group + "/cpu.cfs_period_us");
  double quota = 0, period = 0;
  if (!(quota_file >> quota) || !(period_file >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

// The least of `group` and all above it, as `read` finds it.
template <typename Read>
void TakeLeast(std::string group, const Read& read, std::optional<double>* least) {
  for (;; group.erase(group.rfind('/'))) {
    if (group == "/") group.clear();
    if (const auto quota = read(group); quota && (!*least || *quota < **least)) *least = quota;
    if (group.empty()) return;
  }
}

// A line "4:cpu,cpuacct:/a/b" of cgroup v1, or "0::/a/b" of v2.
struct OwnGroup {
  std::string controllers, path;
  bool has_cpu() const { return ("," + controllers + ",").find(",cpu,") != std::string::npos; }
};

std::optional<OwnGroup> ParseOwn(const std::string& line) {
  const size_t first = line.find(':');
  const size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
  if (second == line.npos || !line.substr(second + 1).starts_with('/')) return std::nullopt;
  return OwnGroup{line.substr(first + 1, second - first - 1), line.substr(second + 1)};
}

}  // namespace

std::optional<double> CpuQuota(const std::string& own, const std::string& root) {
  std::optional<double> least;
  std::string unified = "/";
  std::ifstream file(own);
  for (std::string line; std::getline(file, line);) {
    const auto group = ParseOwn(line);
    if (!group) continue;
    if (group->controllers.empty()) unified = group->path;
    if (!group->has_cpu()) continue;
    // The hierarchy is mounted under its controllers' names; "cpu" mostly leads there too.
    const std::string mounted = root + "/" + group->controllers;
    const std::string base = std::ifstream(mounted + "/cpu.cfs_period_us").good() ? mounted : root + "/cpu";
    TakeLeast(
        group->path, [&base](const std::string& path) { return ReadCfs(base + path); }, &least);
  }
  TakeLeast(
      unified, [&root](const std::string& path) { return ReadMax(root + path + "/cpu.max"); }, &least);
  return least;
}

unsigned WorkersFor(unsigned cores, std::optional<double> quota) {
  cores = std::max(cores, 1u);
  if (!quota || *quota >= cores) return cores;
  return std::max(1u, static_cast<unsigned>(std::ceil(*quota)));
}

}  // namespace sluice::runtime
