#include "metrics/open_metrics.h"

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <limits>
#include <set>
#include <vector>

#include "metrics/text.h"

namespace sluice::metrics {
namespace {

// " # {trace_id="..",span_id=".."} 0.012 1764075000.123": 63 characters of labels, of 128 that are allowed.
void AppendExemplar(std::string& out, const Exemplar& exemplar) {
  char text[128];
  std::snprintf(text, sizeof(text), " # {trace_id=\"%016" PRIx64 "%016" PRIx64 "\",span_id=\"%016" PRIx64 "\"} ",
                exemplar.trace_high, exemplar.trace_low, exemplar.span);
  out += text;
  AppendValue(out, static_cast<double>(exemplar.nanos) / 1e9);
  std::snprintf(text, sizeof(text), " %.3f", static_cast<double>(exemplar.wall_nanos) / 1e9);
  out += text;
}

// Adds to the buckets of one series after the other what belongs behind them.
class BucketLines {
 public:
  explicit BucketLines(const Exemplars& exemplars) : exemplars_(exemplars) {}

  void Append(std::string& out, std::string_view line) {
    if (!line.starts_with(exemplars_.line_begin())) return;
    constexpr std::string_view kBound = "\",le=\"";
    const size_t begin = exemplars_.line_begin().size(), end = line.rfind(kBound);
    if (end == line.npos || end < begin) return;
    const std::string_view value = line.substr(begin, end - begin);
    const std::string_view bound = line.substr(end + kBound.size());
    if (value != value_ || !begun_) {
      begun_ = true;
      value_ = value;
      left_ = exemplars_.Of(value);
      next_ = 0;
    }
    double seconds = std::numeric_limits<double>::infinity();
    if (!bound.starts_with("+Inf")) std::from_chars(bound.data(), bound.data() + bound.size(), seconds);
    const Exemplar* newest = nullptr;
    for (; next_ < left_.size() && static_cast<double>(left_[next_].nanos) / 1e9 <= seconds; ++next_) {
      if (newest == nullptr || newest->wall_nanos < left_[next_].wall_nanos) newest = &left_[next_];
    }
    if (newest != nullptr) AppendExemplar(out, *newest);
  }

 private:
  const Exemplars& exemplars_;
  bool begun_ = false;
  std::string value_;
  std::vector<Exemplar> left_;
  size_t next_ = 0;
};

// `help`: escaped for the plain format, which leaves quotes as they are. `names`: of the families before it.
void AppendFamily(std::string& out, std::string_view name, std::string_view type, std::string_view help,
                  std::set<std::string_view>& names) {
  constexpr std::string_view kTotal = "_total";
  if (type == "counter") {
    const std::string_view base = name.substr(0, name.size() - std::min(name.size(), kTotal.size()));
    if (name.ends_with(kTotal) && !names.contains(base)) {
      name = base;
    } else {
      type = "unknown";
    }
  }
  names.insert(name);
  out.append("# TYPE ").append(name).append(" ").append(type).append("\n");
  for (const std::string_view unit : {"seconds", "bytes"}) {
    if (name.ends_with(unit) && name.size() > unit.size() && name[name.size() - unit.size() - 1] == '_')
      out.append("# UNIT ").append(name).append(" ").append(unit).append("\n");
  }
  out.append("# HELP ").append(name).append(" ");
  for (const char c : help) {
    if (c == '"') out += '\\';
    out += c;
  }
  out += '\n';
}

}  // namespace

std::string ToOpenMetrics(std::string_view text, const Exemplars& exemplars) {
  constexpr std::string_view kHelp = "# HELP ", kType = "# TYPE ";
  std::string out;
  out.reserve(text.size() + text.size() / 16);
  BucketLines buckets(exemplars);
  std::set<std::string_view> names;  // in `text`
  std::string_view help;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.starts_with(kHelp)) {
      const std::string_view rest = line.substr(kHelp.size());
      help = rest.substr(std::min(rest.size(), rest.find(' ') + 1));
    } else if (line.starts_with(kType)) {
      const std::string_view rest = line.substr(kType.size());
      const size_t blank = rest.find(' ');
      AppendFamily(out, rest.substr(0, blank), rest.substr(blank + 1), help, names);
    } else {
      out += line;
      buckets.Append(out, line);
      out += '\n';
    }
  }
  return out += "# EOF\n";
}

}  // namespace sluice::metrics
