// The registry's tables and their rendering. Render copies the table under the mutex and reads cells and
// callbacks without it: a callback may take its owner's locks or add a metric.
#include "metrics/registry.h"

#include <cstdio>
#include <map>
#include <mutex>
#include <variant>

#include "base/check.h"
#include "metrics/arena.h"
#include "metrics/text.h"

namespace sluice::metrics {
namespace {

using Metric = std::variant<std::unique_ptr<Counter>, std::unique_ptr<Gauge>, std::unique_ptr<Histogram>>;
using Callback = std::function<std::vector<Sample>()>;

struct Family {
  std::string kind, help;
  double scale = 1;                                   // histograms only
  std::map<std::string, Metric, std::less<>> series;  // by FormatLabels; metrics never leave, so their addresses stay
  std::vector<std::shared_ptr<const Callback>> callbacks;
};

// What Render needs of a family, taken under the mutex; the pointers stay good without it.
struct View {
  std::string name, kind, help;
  double scale;
  std::vector<std::pair<std::string, const Metric*>> series;
  std::vector<std::shared_ptr<const Callback>> callbacks;
};

void AppendHistogram(std::string& out, const View& view, const std::string& labels, const Histogram& histogram) {
  const Histogram::Snapshot snapshot = histogram.Read();
  const std::string bucket_name = view.name + "_bucket";
  std::string bucket_labels = labels.empty() ? "le=\"" : labels + ",le=\"";
  const size_t bound_at = bucket_labels.size();
  uint64_t cumulative = 0;
  for (size_t i = 0; i < Histogram::kBuckets; ++i) {
    cumulative += snapshot.buckets[i];
    // Every second bound (1, 1.5, 2, 3, 4, 6, ...) is exported: half the lines, and still within 50%.
    const bool last = i + 1 == Histogram::kBuckets;
    if (!last && i % 2 != 0) continue;
    std::string bound = "+Inf";
    if (!last) {
      // The product may be one unit off in the last place; ten digits are exact enough and read well.
      char text[32];
      std::snprintf(text, sizeof(text), "%.10g", static_cast<double>(Histogram::UpperBound(i)) * view.scale);
      bound = text;
    }
    bucket_labels.replace(bound_at, std::string::npos, bound).push_back('"');
    AppendSample(out, bucket_name, bucket_labels, std::to_string(cumulative));
  }
  AppendSample(out, view.name + "_sum", labels, FormatValue(static_cast<double>(snapshot.sum) * view.scale));
  AppendSample(out, view.name + "_count", labels, std::to_string(snapshot.count));
}

void AppendMetric(std::string& out, const View& view, const std::string& labels, const Metric& metric) {
  if (const auto* counter = std::get_if<std::unique_ptr<Counter>>(&metric)) {
    AppendSample(out, view.name, labels, std::to_string((*counter)->Value()));
  } else if (const auto* gauge = std::get_if<std::unique_ptr<Gauge>>(&metric)) {
    AppendSample(out, view.name, labels, std::to_string((*gauge)->Value()));
  } else {
    AppendHistogram(out, view, labels, **std::get_if<std::unique_ptr<Histogram>>(&metric));
  }
}

}  // namespace

struct Registry::Impl {
  explicit Impl(size_t rows) : arena(rows) {}

  // Finds or makes the family; CHECKs that a name keeps its kind, help and scale. The mutex is held.
  Family& FamilyOf(std::string_view name, std::string_view help, std::string_view kind, double scale) {
    SLUICE_CHECK(IsMetricName(name));
    auto it = families.find(name);
    if (it == families.end()) {
      it = families.emplace(std::string(name), Family{std::string(kind), std::string(help), scale, {}, {}}).first;
    }
    SLUICE_CHECK(it->second.kind == kind);
    SLUICE_CHECK(it->second.help == help);
    SLUICE_CHECK(it->second.scale == scale);
    return it->second;
  }

  // Finds or makes (with `make`) the series of `labels`. The mutex is held.
  template <typename T, typename Make>
  T* SeriesOf(Family& family, Labels labels, Make make) {
    for (const auto& [name, value] : labels) SLUICE_CHECK(IsLabelName(name) && name != "le");
    std::string key = FormatLabels(labels);
    auto it = family.series.find(key);
    if (it == family.series.end() && family.series.size() >= kSeriesPerNameMax) {
      for (auto& [name, value] : labels) value = "overflow";
      key = FormatLabels(labels);
      it = family.series.find(key);
    }
    if (it == family.series.end()) it = family.series.emplace(std::move(key), std::make_unique<T>(make())).first;
    auto* metric = std::get_if<std::unique_ptr<T>>(&it->second);
    SLUICE_CHECK(metric != nullptr);
    return metric->get();
  }

  mutable std::mutex mutex;
  std::map<std::string, Family, std::less<>> families;  // guarded by mutex
  CellArena arena;                                      // guarded by mutex (allocation; the cells are not)
};

Registry::Registry(size_t slots) : slots_(slots), impl_(std::make_unique<Impl>(slots + 1)) {}
Registry::~Registry() = default;

Counter Registry::MakeCells(size_t cells) {
  Counter counter;
  counter.cells_ = impl_->arena.Allocate(cells);
  counter.stride_ = CellArena::kRowCells;
  counter.shared_slot_ = slots_;
  return counter;
}

Counter* Registry::AddCounter(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "counter", 1);
  return impl_->SeriesOf<Counter>(family, std::move(labels), [&] { return MakeCells(1); });
}

Gauge* Registry::AddGauge(std::string_view name, std::string_view help, Labels labels) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "gauge", 1);
  return impl_->SeriesOf<Gauge>(family, std::move(labels), [&] {
    Gauge gauge;
    gauge.counter_ = MakeCells(1);
    return gauge;
  });
}

Histogram* Registry::AddHistogram(std::string_view name, std::string_view help, double scale, Labels labels) {
  std::lock_guard lock(impl_->mutex);
  Family& family = impl_->FamilyOf(name, help, "histogram", scale);
  return impl_->SeriesOf<Histogram>(family, std::move(labels), [&] {
    Histogram histogram;
    histogram.cells_ = MakeCells(Histogram::kBuckets + 1);
    return histogram;
  });
}

void Registry::AddCallback(std::string_view name, std::string_view help, std::string_view kind,
                           std::function<std::vector<Sample>()> fn) {
  SLUICE_CHECK(kind == "counter" || kind == "gauge" || kind == "histogram");
  std::lock_guard lock(impl_->mutex);
  impl_->FamilyOf(name, help, kind, 1).callbacks.push_back(std::make_shared<const Callback>(std::move(fn)));
}

std::string Registry::RenderPrometheus() const {
  std::vector<View> views;
  {
    std::lock_guard lock(impl_->mutex);
    views.reserve(impl_->families.size());
    for (const auto& [name, family] : impl_->families) {
      View& view = views.emplace_back(View{name, family.kind, family.help, family.scale, {}, family.callbacks});
      view.series.reserve(family.series.size());
      for (const auto& [labels, metric] : family.series) view.series.emplace_back(labels, &metric);
    }
  }
  std::string out;
  for (const View& view : views) {
    out += "# HELP " + view.name + " " + EscapeHelp(view.help) + "\n";
    out += "# TYPE " + view.name + " " + view.kind + "\n";
    for (const auto& [labels, metric] : view.series) AppendMetric(out, view, labels, *metric);
    for (const auto& callback : view.callbacks) {
      for (const Sample& sample : (*callback)()) {
        AppendSample(out, view.name + std::string(sample.suffix), FormatLabels(sample.labels),
                     FormatValue(sample.value));
      }
    }
  }
  return out;
}

}  // namespace sluice::metrics
