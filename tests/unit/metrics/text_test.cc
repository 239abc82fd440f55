// What Prometheus reads: text format 0.0.4, byte for byte.
#include "metrics/text.h"

#include <gtest/gtest.h>

#include <limits>

#include "metrics/registry.h"

namespace sluice::metrics {
namespace {

TEST(Text, RendersEachFamilyOnceWithEscapedTexts) {
  Registry registry(2);
  registry.AddCounter("b_total", "Back\\slash and\nline.", {{"path", "C:\\x"}, {"a", "say \"hi\"\n"}})->Add(1, 3);
  registry.AddCounter("b_total", "Back\\slash and\nline.", {{"path", "y"}, {"a", ""}})->Add(2, 4);
  registry.AddGauge("a_gauge", "Plain \"quotes\" stay.")->Add(0, 12);
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP a_gauge Plain \"quotes\" stay.\n"
            "# TYPE a_gauge gauge\n"
            "a_gauge 12\n"
            "# HELP b_total Back\\\\slash and\\nline.\n"
            "# TYPE b_total counter\n"
            "b_total{a=\"\",path=\"y\"} 4\n"
            "b_total{a=\"say \\\"hi\\\"\\n\",path=\"C:\\\\x\"} 3\n");
}

TEST(Text, RendersHistogramsCumulativelyInTheExportedUnit) {
  Registry registry(1);
  Histogram* histogram = registry.AddHistogram("d_seconds", "D.", 1e-9, {{"route", "r"}});
  histogram->Observe(0, 1'000);
  histogram->Observe(0, 1'500);
  histogram->Observe(1, 3'000'000);
  histogram->Observe(0, uint64_t{1} << 41);
  const std::string text = registry.RenderPrometheus();
  EXPECT_TRUE(
      text.starts_with("# HELP d_seconds D.\n# TYPE d_seconds histogram\n"
                       "d_seconds_bucket{route=\"r\",le=\"1.024e-06\"} 1\n"
                       "d_seconds_bucket{route=\"r\",le=\"1.536e-06\"} 2\n"
                       "d_seconds_bucket{route=\"r\",le=\"2.048e-06\"} 2\n"))
      << text;
  EXPECT_NE(text.find("d_seconds_bucket{route=\"r\",le=\"0.002097152\"} 2\n"
                      "d_seconds_bucket{route=\"r\",le=\"0.003145728\"} 3\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(
      text.ends_with("d_seconds_bucket{route=\"r\",le=\"1099.511628\"} 3\n"
                     "d_seconds_bucket{route=\"r\",le=\"+Inf\"} 4\n"
                     "d_seconds_sum{route=\"r\"} 2199.0262580520002\n"
                     "d_seconds_count{route=\"r\"} 4\n"))
      << text;
}

TEST(Text, AsksCallbacksWithoutALock) {
  Registry registry(1);
  registry.AddCallback("version", "V.", "gauge", [&] {
    registry.AddCounter("made_meanwhile_total", "M.")->Add(0);  // would deadlock under the registry's mutex
    return std::vector<Sample>{{{{"cluster", "users"}}, 7}, {{{"cluster", "a\"b"}}, 0.5}};
  });
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP version V.\n# TYPE version gauge\n"
            "version{cluster=\"users\"} 7\n"
            "version{cluster=\"a\\\"b\"} 0.5\n");
}

TEST(Text, ACallbackMayGiveAHistogramsLines) {
  Registry registry(1);
  registry.AddCallback("d_seconds", "D.", "histogram", [] {
    return std::vector<Sample>{{{{"le", "+Inf"}}, 3, "_bucket"}, {{}, 1.5, "_sum"}, {{}, 3, "_count"}};
  });
  EXPECT_EQ(registry.RenderPrometheus(),
            "# HELP d_seconds D.\n# TYPE d_seconds histogram\n"
            "d_seconds_bucket{le=\"+Inf\"} 3\n"
            "d_seconds_sum 1.5\n"
            "d_seconds_count 3\n");
}

TEST(Text, ACollectorsSamplesAreEscapedAndKeepTheirOrder) {
  Registry registry(1);
  registry.AddCollector("d", "D.", "gauge", [](Samples& out) {
    out.Add({}, 1.5);
    out.Add({{"b", "x\"\\\n"}, {"a", ""}}, 3, "_sum");
    if (out.all()) out.Add({{"a", "hidden"}}, 0);
  });
  const std::string head = "# HELP d D.\n# TYPE d gauge\n", lines = "d 1.5\nd_sum{b=\"x\\\"\\\\\\n\",a=\"\"} 3\n";
  EXPECT_EQ(registry.RenderPrometheus(), head + lines);
  EXPECT_EQ(registry.RenderPrometheus(Show::kAlways), head + lines + "d{a=\"hidden\"} 0\n");
}

TEST(Text, FormatsNumbersSoThatTheyReadBack) {
  EXPECT_EQ(FormatValue(0), "0");
  EXPECT_EQ(FormatValue(-3), "-3");
  EXPECT_EQ(FormatValue(9007199254740992.0), "9007199254740992");
  EXPECT_EQ(FormatValue(0.1), "0.1");
  EXPECT_EQ(FormatValue(1e300), "1e+300");
  EXPECT_EQ(FormatValue(std::numeric_limits<double>::infinity()), "+Inf");
  EXPECT_EQ(FormatValue(-std::numeric_limits<double>::infinity()), "-Inf");
  EXPECT_EQ(FormatValue(std::numeric_limits<double>::quiet_NaN()), "NaN");
}

TEST(Text, KnowsNames) {
  EXPECT_TRUE(IsMetricName("sluice_calls_total"));
  EXPECT_TRUE(IsMetricName("a:b"));
  for (const char* bad : {"", "9a", "a-b", "a b", "\xC3\xA9"}) EXPECT_FALSE(IsMetricName(bad)) << bad;
  EXPECT_TRUE(IsLabelName("grpc_status"));
  for (const char* bad : {"", "a:b", "__name__", "1"}) EXPECT_FALSE(IsLabelName(bad)) << bad;
}

}  // namespace
}  // namespace sluice::metrics
