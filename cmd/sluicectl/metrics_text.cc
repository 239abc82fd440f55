#include "sluicectl/metrics_text.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

namespace sluice::ctl {
namespace {

using Labels = std::map<std::string, std::string>;

// `a="x",b="y"}`: takes them off the front of `line`, with the brace.
std::optional<Labels> TakeLabels(std::string_view& line) {
  Labels labels;
  while (!line.starts_with('}')) {
    const size_t equals = line.find("=\"");
    if (equals == line.npos) return std::nullopt;
    std::string& value = labels[std::string(line.substr(0, equals))];
    size_t at = equals + 2;
    for (; at < line.size() && line[at] != '"'; ++at) {
      if (line[at] == '\\' && at + 1 < line.size()) {
        value += line[++at] == 'n' ? '\n' : line[at];
      } else {
        value += line[at];
      }
    }
    if (at >= line.size()) return std::nullopt;
    line.remove_prefix(at + 1);
    if (line.starts_with(',')) line.remove_prefix(1);
  }
  line.remove_prefix(1);
  return labels;
}

struct Sample {
  Labels labels;
  double value = 0;
};

std::optional<Sample> ReadSample(std::string_view line, std::string_view name) {
  if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != '{') return std::nullopt;
  line.remove_prefix(name.size() + 1);
  std::optional<Labels> labels = TakeLabels(line);
  if (!labels || !line.starts_with(' ')) return std::nullopt;
  return Sample{std::move(*labels), std::strtod(std::string(line.substr(1)).c_str(), nullptr)};
}

// Of series as they stand in the text: each bucket has those below it in its count.
class Cumulative {
 public:
  void Add(const std::string& series, const Sample& sample) {
    const auto le = sample.labels.find("le");
    if (le == sample.labels.end()) return;
    const double bound =
        le->second == "+Inf" ? std::numeric_limits<double>::infinity() : std::strtod(le->second.c_str(), nullptr);
    series_[series][bound] = sample.value;
  }
  // Adds each one's buckets, on their own, to what `into` says of its name.
  template <typename Into>
  void Split(Into into) const {
    for (const auto& [name, bounds] : series_) {
      Buckets* const out = into(name);
      if (out == nullptr) continue;
      double below = 0;
      for (const auto& [bound, count] : bounds) {
        (*out)[bound] += count - below;
        below = count;
      }
    }
  }

 private:
  std::map<std::string, Buckets> series_;
};

}  // namespace

double Quantile(const Buckets& buckets, double q, double max) {
  double all = 0;
  for (const auto& [bound, count] : buckets) all += count;
  if (all <= 0) return 0;
  const auto capped = [max](double value) { return max > 0 ? std::min(value, max) : value; };
  double wanted = q * all, from = 0;
  for (const auto& [bound, count] : buckets) {
    if (wanted <= count && count > 0) return capped(std::isinf(bound) ? from : from + (bound - from) * wanted / count);
    wanted -= count;
    if (!std::isinf(bound)) from = bound;
  }
  return capped(from);
}

Buckets Since(const Buckets& now, const Buckets& before) {
  Buckets out;
  for (const auto& [bound, count] : now) {
    const auto then = before.find(bound);
    out[bound] = std::max(0.0, count - (then == before.end() ? 0 : then->second));
  }
  return out;
}

CallMetrics ReadCallMetrics(std::string_view text) {
  CallMetrics out;
  std::map<std::string, std::string> cluster_of;  // by route
  Cumulative durations, latencies;
  std::map<std::string, std::pair<std::string, std::string>> endpoint_of;  // by series
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (auto calls = ReadSample(line, "sluice_calls_total")) {
      cluster_of[calls->labels["route"]] = calls->labels["cluster"];
      CallMetrics::Cluster& cluster = out.clusters[calls->labels["cluster"]];
      cluster.calls += calls->value;
      if (calls->labels["grpc_status"] != "OK") cluster.errors += calls->value;
    } else if (auto duration = ReadSample(line, "sluice_call_duration_seconds_bucket")) {
      durations.Add(duration->labels["route"], *duration);
    } else if (auto latency = ReadSample(line, "sluice_endpoint_latency_seconds_bucket")) {
      const std::string series = latency->labels["cluster"] + '\n' + latency->labels["endpoint"];
      endpoint_of[series] = {latency->labels["cluster"], latency->labels["endpoint"]};
      latencies.Add(series, *latency);
    } else if (auto longest = ReadSample(line, "sluice_call_duration_max_seconds")) {
      double& cluster = out.clusters[longest->labels["cluster"]].longest;
      cluster = std::max(cluster, longest->value);
    } else if (auto slowest = ReadSample(line, "sluice_endpoint_latency_max_seconds")) {
      out.endpoints[{slowest->labels["cluster"], slowest->labels["endpoint"]}].longest = slowest->value;
    }
  }
  durations.Split([&](const std::string& route) -> Buckets* {
    const auto cluster = cluster_of.find(route);
    return cluster == cluster_of.end() ? nullptr : &out.clusters[cluster->second].duration;
  });
  latencies.Split([&](const std::string& series) { return &out.endpoints[endpoint_of[series]].latency; });
  return out;
}

}  // namespace sluice::ctl
