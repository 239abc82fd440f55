// The registry's tables and their rendering. Render walks the tables under the mutex, a few series at a time, and reads
// cells and callbacks without it: a callback may take its owner's locks or add a metric. What is in a table stays
// there, at its address.
#include "metrics/registry.h"

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "base/check.h"
#include "metrics/registry_impl.h"
#include "metrics/text.h"

namespace sluice::metrics {
namespace {

// Every second bound (1, 1.5, 2, 3, 4, 6, ...) is exported: half the lines, and still within 50%.
std::vector<std::string> BoundTexts(double scale) {
  std::vector<std::string> out(Histogram::kBuckets);
  for (size_t i = 0; i + 1 < out.size(); i += 2) {
    // The product may be one unit off in the last place; ten digits are exact enough and read well.
    char text[32];
    std::snprintf(text, sizeof(text), "%.10g", static_cast<double>(Histogram::UpperBound(i)) * scale);
    out[i] = text;
  }
  out.back() = "+Inf";
  return out;
}

// Writes the lines of series; one for the whole of a text, so that its strings are grown once.
class Writer {
 public:
  Writer(std::string& out, Show least) : out_(out), least_(least) {}

  void Write(std::string_view name, const Family& family, const std::string& labels, const Series& series) {
    const bool all =
        least_ == Show::kAlways || series.show == Show::kAlways || series.shown.load(std::memory_order_relaxed);
    bool touched = false;
    if (const auto* counter = std::get_if<Counter>(&series.metric)) {
      touched = One(name, labels, counter->Value(), all);
    } else if (const auto* gauge = std::get_if<Gauge>(&series.metric)) {
      touched = One(name, labels, gauge->Value(), all);
    } else if (const auto* histogram = std::get_if<Histogram>(&series.metric)) {
      touched = Buckets(name, labels, family.bounds, *histogram, all);
    } else if (const auto* row = std::get_if<Row>(&series.metric)) {
      // A counter does not come back to zero: each speaks for itself.
      const bool every = least_ == Show::kAlways || series.show == Show::kAlways;
      WriteRow(name, labels, family.values, *row, every, every || series.show == Show::kFirst);
    }
    if (touched) series.shown.store(true, std::memory_order_relaxed);
  }

 private:
  void Begin(std::string_view name, std::string_view labels) {
    out_ += name;
    if (!labels.empty()) out_.append("{").append(labels).append("}");
    out_ += ' ';
  }

  template <typename T>
  bool One(std::string_view name, std::string_view labels, T value, bool all) {
    if (value == 0 && !all) return false;
    Begin(name, labels);
    AppendWhole(out_, value);
    out_ += '\n';
    return value != 0;
  }

  void WriteRow(std::string_view name, const std::string& labels, const std::vector<std::string>& values,
                const Row& row, bool every, bool first) {
    for (size_t i = 0; i < row.counters.size(); ++i) {
      const uint64_t value = row.counters[i].Value();
      if (value == 0 && !every && !(first && i == 0)) continue;
      out_.append(name).append("{").append(labels, 0, row.split);
      AppendEscaped(out_, values[i]);
      out_.append(labels, row.split, labels.npos).append("} ");
      AppendWhole(out_, value);
      out_ += '\n';
    }
  }

  bool Buckets(std::string_view name, std::string_view labels, const std::vector<std::string>& bounds,
               const Histogram& histogram, bool all) {
    const Histogram::Snapshot snapshot = histogram.Read();
    if (snapshot.count == 0 && !all) return false;
    begin_.assign(name).append("_bucket{").append(labels).append(labels.empty() ? "le=\"" : ",le=\"");
    uint64_t cumulative = 0;
    for (size_t i = 0; i < bounds.size(); ++i) {
      cumulative += snapshot.buckets[i];
      if (bounds[i].empty()) continue;
      out_.append(begin_).append(bounds[i]).append("\"} ");
      AppendWhole(out_, cumulative);
      out_ += '\n';
    }
    begin_.assign(name).append("_sum");
    Begin(begin_, labels);
    AppendValue(out_, static_cast<double>(snapshot.sum) * histogram.scale());
    out_ += '\n';
    begin_.assign(name).append("_count");
    Begin(begin_, labels);
    AppendWhole(out_, snapshot.count);
    out_ += '\n';
    return snapshot.count != 0;
  }

  std::string& out_;
  const Show least_;
  std::string begin_;
};

}  // namespace

void Samples::Add(std::initializer_list<Label> labels, double value, std::string_view suffix) {
  out_.append(name_).append(suffix);
  char before = '{';
  for (const Label& label : labels) {
    out_ += before;
    before = ',';
    out_.append(label.name).append("=\"");
    AppendEscaped(out_, label.value);
    out_ += '"';
  }
  if (labels.size() > 0) out_ += '}';
  out_ += ' ';
  AppendValue(out_, value);
  out_ += '\n';
}

Registry::Registry(size_t slots) : slots_(slots), impl_(std::make_unique<Impl>(slots)) {}
Registry::~Registry() = default;

Counter* Registry::AddCounter(std::string_view name, std::string_view help, Labels labels, Show show) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "counter", 1);
  const auto by =
      std::find_if(labels.begin(), labels.end(), [&](const auto& label) { return label.first == family.by; });
  if (!family.by.empty() && by != labels.end()) {
    const auto value = std::find(family.values.begin(), family.values.end(), by->second);
    SLUICE_CHECK(value != family.values.end());
    labels.erase(by);
    const auto place = static_cast<size_t>(value - family.values.begin());
    return &impl_->RowOf(family, std::move(labels), show)->counters[place];
  }
  return impl_->SeriesOf<Counter>(family, std::move(labels), "", show, [&](auto& metric, const auto&) {
    metric = impl_->MakeCounter(impl_->arena.Allocate(1));
  });
}

std::span<Counter> Registry::AddCounters(std::string_view name, std::string_view help, Labels labels,
                                         std::string_view by, std::span<const std::string_view> values, Show show) {
  SLUICE_CHECK(!values.empty() && IsLabelName(by));
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "counter", 1);
  if (family.by.empty()) {
    SLUICE_CHECK(family.series.empty());
    family.by = by;
    family.values.assign(values.begin(), values.end());
  }
  SLUICE_CHECK(family.by == by && std::ranges::equal(family.values, values));
  return impl_->RowOf(family, std::move(labels), show)->counters;
}

Gauge* Registry::AddGauge(std::string_view name, std::string_view help, Labels labels, Show show) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "gauge", 1);
  return impl_->SeriesOf<Gauge>(family, std::move(labels), "", show, [&](auto& metric, const auto&) {
    metric = Gauge(impl_->MakeCounter(impl_->arena.Allocate(1)));
  });
}

Histogram* Registry::AddHistogram(std::string_view name, std::string_view help, double scale, Labels labels,
                                  Show show) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "histogram", scale);
  if (family.bounds.empty()) family.bounds = BoundTexts(scale);
  return impl_->SeriesOf<Histogram>(family, std::move(labels), "", show, [&](auto& metric, const auto&) {
    metric.template emplace<Histogram>(slots_, scale);
  });
}

void Registry::AddCallback(std::string_view name, std::string_view help, std::string_view kind,
                           std::function<std::vector<Sample>()> fn) {
  AddCollector(name, help, kind, [fn = std::move(fn)](Samples& samples) {
    for (const Sample& sample : fn()) samples.Append(sample);
  });
}

void Registry::AddCollector(std::string_view name, std::string_view help, std::string_view kind,
                            std::function<void(Samples&)> fn) {
  SLUICE_CHECK(kind == "counter" || kind == "gauge" || kind == "histogram");
  std::lock_guard lock(impl_->mutex);
  impl_->FamilyOf(name, help, kind, 1).collectors.push_back(std::make_shared<const Collector>(std::move(fn)));
}

void Samples::Append(const Sample& sample) {
  out_.append(name_).append(sample.suffix);
  if (!sample.labels.empty()) out_.append("{").append(FormatLabels(sample.labels)).append("}");
  out_ += ' ';
  AppendValue(out_, sample.value);
  out_ += '\n';
}

std::string Registry::RenderPrometheus(Show least) const {
  std::string out;
  out.reserve(impl_->rendered_bytes.load(std::memory_order_relaxed) * 9 / 8);
  Writer writer(out, least);
  Impl::Batch batch;
  batch.reserve(kBatch);
  const std::pair<const std::string, Family>* named = nullptr;
  const auto next = [&] {
    std::lock_guard lock(impl_->mutex);
    const auto it = named == nullptr ? impl_->families.begin() : impl_->families.upper_bound(named->first);
    named = it == impl_->families.end() ? nullptr : &*it;
    return named != nullptr;
  };
  while (next()) {
    const auto& [name, family] = *named;
    out.append("# HELP ").append(name).append(" ").append(EscapeHelp(family.help)).append("\n");
    out.append("# TYPE ").append(name).append(" ").append(family.kind).append("\n");
    SeriesMap::const_iterator it;
    std::vector<std::shared_ptr<const Collector>> collectors;
    std::map<std::string, double, std::less<>> lines;
    {
      std::lock_guard lock(impl_->mutex);
      it = family.series.begin();
      collectors = family.collectors;
      lines = family.lines;
    }
    do {
      impl_->Take(family, it, batch);
      for (const auto* series : batch) writer.Write(name, family, series->first, series->second);
    } while (batch.size() == kBatch);
    const size_t collected = out.size();
    Samples samples(out, name, least == Show::kAlways);
    for (const auto& collector : collectors) (*collector)(samples);
    if (!lines.empty()) CountOn(std::move(lines), collected, out);
  }
  impl_->rendered_bytes.store(out.size(), std::memory_order_relaxed);
  return out;
}

}  // namespace sluice::metrics
