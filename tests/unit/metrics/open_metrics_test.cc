// The text in OpenMetrics' format: names, units, quotes, and exemplars behind the bucket that has counted them.
#include "metrics/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "metrics/registry.h"

namespace sluice::metrics {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr uint64_t kMs = 1'000'000;
constexpr int64_t kDay = int64_t{1'764'075'600} * 1'000'000'000;

Exemplar At(uint64_t nanos, int64_t after = 0) { return {0xa, 0xb, 0xc, nanos, kDay + after}; }

// The value and what stands behind it, of each line of that series that has an exemplar.
std::vector<std::string> WithExemplars(const std::string& text) {
  std::vector<std::string> out;
  for (size_t at = 0; (at = text.find(" # {", at)) != text.npos; ++at) {
    const size_t begin = text.rfind('\n', at) + 1;
    out.push_back(text.substr(begin, text.find('\n', at) - begin));
  }
  return out;
}

class OpenMetricsTest : public testing::Test {
 public:
  std::string Text() const { return ToOpenMetrics(registry.RenderPrometheus(), exemplars); }
  Registry registry{1};
  Exemplars exemplars{"d_seconds", "route"};
};

TEST_F(OpenMetricsTest, NamesUnitsAndTheEndAreAsTheFormatHasThem) {
  registry.AddCounter("a_total", "Says \"a\\b\"\nand more.")->Add(0, 3);
  registry.AddCounter("b_bytes_total", "B.");
  registry.AddGauge("c_seconds", "C.", {{"x", "\"\n"}})->Add(0, -2);
  registry.AddCounter("odd", "O.")->Add(0);
  registry.AddGauge("seconds", "No unit of anything.");
  EXPECT_EQ(Text(),
            "# TYPE a counter\n# HELP a Says \\\"a\\\\b\\\"\\nand more.\na_total 3\n"
            "# TYPE b_bytes counter\n# UNIT b_bytes bytes\n# HELP b_bytes B.\nb_bytes_total 0\n"
            "# TYPE c_seconds gauge\n# UNIT c_seconds seconds\n# HELP c_seconds C.\nc_seconds{x=\"\\\"\\n\"} -2\n"
            "# TYPE odd unknown\n# HELP odd O.\nodd 1\n"
            "# TYPE seconds gauge\n# HELP seconds No unit of anything.\nseconds 0\n"
            "# EOF\n");
}

// Both would be the family "a".
TEST_F(OpenMetricsTest, ACounterWithTheNameOfAGaugeHasNoKnownType) {
  registry.AddGauge("a", "G.")->Add(0, 1);
  registry.AddGauge("a_between", "G.");
  registry.AddCounter("a_total", "C.")->Add(0, 2);
  EXPECT_EQ(Text(),
            "# TYPE a gauge\n# HELP a G.\na 1\n# TYPE a_between gauge\n# HELP a_between G.\na_between 0\n"
            "# TYPE a_total unknown\n# HELP a_total C.\na_total 2\n# EOF\n");
}

TEST_F(OpenMetricsTest, OfNothingItIsTheEnd) { EXPECT_EQ(Text(), "# EOF\n"); }

TEST_F(OpenMetricsTest, AnExemplarStandsBehindTheBucketThatHasCountedIt) {
  Histogram* one = registry.AddHistogram("d_seconds", "D.", 1e-9, {{"route", "a"}});
  Histogram* two = registry.AddHistogram("d_seconds", "D.", 1e-9, {{"route", "b\",le=\"1"}});
  registry.AddHistogram("d_seconds", "D.", 1e-9, {{"route", "c"}})->Observe(0, 5 * kMs);
  registry.AddHistogram("e_seconds", "E.", 1e-9, {{"route", "a"}})->Observe(0, 5 * kMs);
  for (const uint64_t nanos : {uint64_t{1}, 5 * kMs, 6 * kMs, 3'000'000 * kMs}) one->Observe(0, nanos);
  two->Observe(0, 5 * kMs);
  exemplars.Put("a", At(6 * kMs));
  exemplars.Put("a", At(5 * kMs, 1'234'000'000));  // the same bucket
  exemplars.Put("a", At(1));
  exemplars.Put("a", At(3'000'000 * kMs));  // beyond the last bound
  exemplars.Put("b\",le=\"1", At(5 * kMs));
  exemplars.Put("unknown", At(5 * kMs));
  const std::string id = " # {trace_id=\"000000000000000a000000000000000b\",span_id=\"000000000000000c\"} ";
  EXPECT_THAT(
      WithExemplars(Text()),
      ElementsAre("d_seconds_bucket{route=\"a\",le=\"1.024e-06\"} 1" + id + "1e-09 1764075600.000",
                  "d_seconds_bucket{route=\"a\",le=\"0.006291456\"} 3" + id + "0.005 1764075601.234",
                  "d_seconds_bucket{route=\"a\",le=\"+Inf\"} 4" + id + "3000 1764075600.000",
                  "d_seconds_bucket{route=\"b\\\",le=\\\"1\",le=\"0.006291456\"} 1" + id + "0.005 1764075600.000"));
  EXPECT_THAT(registry.RenderPrometheus(), Not(HasSubstr("trace_id")));
}

// Whatever is observed, the exemplar is not above its bucket's bound and not below the one before.
TEST_F(OpenMetricsTest, ExemplarsLieWithinTheirBuckets) {
  Histogram* histogram = registry.AddHistogram("d_seconds", "D.", 1e-9, {{"route", "a"}});
  for (size_t bucket = 0; bucket + 1 < Histogram::kBuckets; ++bucket) {
    for (const int off : {-1, 0, 1}) {
      const uint64_t nanos = Histogram::UpperBound(bucket) + static_cast<uint64_t>(off);
      Exemplars one("d_seconds", "route");
      histogram->Observe(0, nanos);
      one.Put("a", At(nanos));
      const std::string text = ToOpenMetrics(registry.RenderPrometheus(), one);
      const auto lines = WithExemplars(text);
      ASSERT_EQ(lines.size(), 1u) << nanos;
      const size_t le = lines[0].find(",le=\"") + 5;
      const double seconds = static_cast<double>(nanos) / 1e9;
      if (lines[0].compare(le, 4, "+Inf") != 0) {
        EXPECT_LE(seconds, std::stod(lines[0].substr(le)));
      }
      const size_t begin = text.find(lines[0]), before = text.rfind("le=\"", begin);
      if (before != text.npos) {
        EXPECT_GT(seconds, std::stod(text.substr(before + 4)));
      }
    }
  }
}

TEST(Exemplars, AreBounded) {
  Exemplars exemplars("d_seconds", "route");
  for (uint64_t i = 0; i < 2 * Exemplars::kPerSeriesMax; ++i)
    exemplars.Put("a", At(uint64_t{2048} << i % 30, static_cast<int64_t>(i)));
  const auto kept = exemplars.Of("a");
  ASSERT_EQ(kept.size(), Exemplars::kPerSeriesMax);
  for (size_t i = 1; i < kept.size(); ++i) EXPECT_LT(kept[i - 1].nanos, kept[i].nanos);
  for (const Exemplar& exemplar : kept)
    EXPECT_GE(exemplar.wall_nanos, kDay + static_cast<int64_t>(Exemplars::kPerSeriesMax)) << "the oldest go";
  for (size_t i = 0; i < Exemplars::kSeriesMax + 10; ++i) exemplars.Put("r" + std::to_string(i), At(1));
  EXPECT_EQ(exemplars.Of("r0").size(), 1u);
  EXPECT_TRUE(exemplars.Of("r" + std::to_string(Exemplars::kSeriesMax + 9)).empty());
}

}  // namespace
}  // namespace sluice::metrics
