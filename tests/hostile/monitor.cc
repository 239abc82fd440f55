#include "hostile/monitor.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

namespace sluice::hostile {
namespace {

// Lines of one kind in one second. The log of refused requests has ten for each of the two workers.
constexpr int kLinesMax = 25;
constexpr uint64_t kMemorySlack = 8 << 20, kMemoryAConnection = 24 << 10;
constexpr double kSlowerMax = 5, kSlowFloorMs = 150;
constexpr size_t kSlowestShown = 8;
constexpr double kSlowDirectMs = 20;
constexpr double kHeldMs = 3000;  // by the clock, whatever the harness did meanwhile
constexpr size_t kSlowDirectMax = 256;

// What lines of one kind have in common: no numbers, no addresses, nothing that is quoted.
std::string KindOf(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (digit && !out.empty() && out.back() == '#') continue;
    out += digit ? '#' : c;
  }
  return out.substr(0, 120);
}

bool Honest(std::string_view name) { return name == "grpc" || name == "node"; }

// The value of a label in name{label="value",...}.
std::string Label(const std::string& line, const std::string& label) {
  const std::string key = label + "=\"";
  const size_t at = line.find(key);
  if (at == std::string::npos) return {};
  return line.substr(at + key.size(), line.find('"', at + key.size()) - at - key.size());
}

}  // namespace

Monitor::Monitor(Loop& loop, Tree& tree, Report report) : loop_(loop), tree_(tree), report_(std::move(report)) {
  Sample();
}

Monitor::~Monitor() { loop_.Cancel(sampler_); }

// Bursts are over when a seed is.
void Monitor::Sample() {
  most_resident_ = std::max(most_resident_, tree_.sluiced().ResidentBytes());
  sampler_ = loop_.After(20, [this] { Sample(); });
}

void Monitor::Look() {
  if (const std::string end = tree_.sluiced().Ended(); !end.empty()) {
    std::ifstream log(tree_.log_file());
    std::string text{std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()};
    report_("sluiced has ended: " + end + ": " + text.substr(text.size() - std::min<size_t>(text.size(), 3000)));
    return;
  }
  std::ifstream log(tree_.log_file());
  log.seekg(static_cast<std::streamoff>(log_read_));
  std::string text{std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()};
  log_read_ += text.size();
  log_rest_ += text;
  for (size_t end; (end = log_rest_.find('\n')) != std::string::npos;) {
    Line(log_rest_.substr(0, end));
    log_rest_.erase(0, end + 1);
  }
  resident_ = tree_.sluiced().ResidentBytes();
  if (base_ == 0) base_ = resident_;
}

void Monitor::Line(const std::string& line) {
  // "2026-01-02T03:04:05.678+00:00 info text"
  if (line.size() < 32) return;
  const std::string second = line.substr(0, 19), text = line.substr(line.find(' ') + 1);
  const std::string kind = KindOf(text);
  auto& counts = second_[kind];
  const int count = ++counts[second];
  if (counts.size() > 4) counts.erase(counts.begin());
  int& most = busiest_[kind];
  most = std::max(most, count);
  if (count == kLinesMax + 1)
    report_("the log has more than " + std::to_string(kLinesMax) + " lines of one kind in a second: " + text);
  if (text.find("Sanitizer") != std::string::npos) report_("a sanitizer has found: " + text);
  // "info cluster good endpoint node: up -> ejected: ..."
  const size_t at = text.find(" endpoint "), to = text.find(" -> ejected");
  if (at == std::string::npos || to == std::string::npos) return;
  const std::string name = text.substr(at + 10, text.find(':', at) - at - 10);
  if (Honest(name)) report_("an honest endpoint is ejected: " + text);
}

bool Monitor::LookAtMetrics() {
  std::string answer;
  bool ended = false;
  Wire http(
      loop_, [&answer](std::string_view bytes) { answer += bytes; }, [&ended](const std::string&) { ended = true; });
  if (!http.Connect(tree_.port("http"))) return false;
  http.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  if (!loop_.Run(5000, [&ended] { return ended; })) {
    report_("the admin port gives no metrics within 5 s");
    return false;
  }
  Metrics(answer);
  return true;
}

void Monitor::Metrics(const std::string& text) {
  std::map<std::string, double> lost;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const double value = std::strtod(line.c_str() + std::min(line.rfind(' '), line.size()), nullptr);
    if (!line.starts_with("sluice_upstream_connections_lost_total{")) continue;
    const std::string cluster = Label(line, "cluster"), endpoint = Label(line, "endpoint");
    if (cluster == "aged" || !Honest(endpoint)) continue;  // these end by age
    lost[cluster + "/" + endpoint] += value;
  }
  std::string which;
  for (const auto& [name, count] : lost) {
    const double news = count - std::exchange(lost_[name], count);
    if (news > 0) which += " " + name;
  }
  double all = 0;
  for (const auto& [name, count] : lost_) all += count;
  if (!which.empty() && all > static_cast<double>(tree_.ended_by_backends()))
    report_("an honest endpoint has lost a connection that it did not end:" + which);
}

void Monitor::CheckMemory(size_t connections) {
  const uint64_t most = std::exchange(most_resident_, 0);
  const uint64_t bound = base_ + tree_.options().memory_limit + kMemorySlack + kMemoryAConnection * connections;
  if (memory_checked_ && most > bound)
    report_("memory is above its bound: " + std::to_string(most >> 20) + " MiB with " + std::to_string(connections) +
            " connections; at the start " + std::to_string(base_ >> 20) + " MiB");
}

void Monitor::Times(std::vector<CallTime> times) {
  std::move(times.begin(), times.end(), std::back_inserter(times_));
  JudgeTimes(kTimesWanted);
}

void Monitor::DirectTimes(const std::vector<CallTime>& times) {
  for (const CallTime& time : times) {
    if (time.ms > kSlowDirectMs) slow_direct_.push_back(time);
  }
  while (slow_direct_.size() > kSlowDirectMax) slow_direct_.pop_front();
}

double Monitor::SlowDirectly(const CallTime& time) const {
  double ms = 0;
  for (const CallTime& direct : slow_direct_) {  // one at a time: they do not overlap
    if (direct.backend == time.backend)
      ms += std::max(0.0, std::min(direct.end, time.end) - std::max(direct.start, time.start));
  }
  return ms;
}

void Monitor::JudgeTimes(size_t enough) {
  if (times_.size() < enough) return;
  std::vector<CallTime> times = std::exchange(times_, {});
  for (CallTime& time : times) {
    const double excused = SlowDirectly(time);
    time.ms -= excused;
    if (times_checked_ && time.end - time.start - excused > kHeldMs)
      report_("an honest call was held for " + std::to_string(static_cast<int>(time.end - time.start)) +
              " ms: " + time.what);
  }
  std::sort(times.begin(), times.end(), [](const CallTime& a, const CallTime& b) { return a.ms > b.ms; });
  p99_ = times[std::max<size_t>(1, times.size() / 100)].ms;  // one call alone may be the machine's
  if (p99_before_ == 0) {
    p99_before_ = p99_;
    return;
  }
  if (!times_checked_ || p99_ <= std::max(kSlowFloorMs, kSlowerMax * p99_before_)) return;
  std::string slowest;
  for (size_t i = 0; i < std::min(kSlowestShown, times.size()); ++i)
    slowest += "\n  " + std::to_string(static_cast<int>(times[i].ms)) + " ms (" +
               std::to_string(static_cast<int>(times[i].end - times[i].start)) + " by the clock): " + times[i].what;
  report_("honest calls are slow: p99 " + std::to_string(static_cast<int>(p99_)) + " ms of " +
          std::to_string(times.size()) + " calls, at the start " + std::to_string(static_cast<int>(p99_before_)) +
          " ms" + slowest);
}

}  // namespace sluice::hostile
