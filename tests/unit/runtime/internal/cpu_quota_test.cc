#include "runtime/internal/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice::runtime {
namespace {

class CpuQuotaTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice-quota-test-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Of the group `path`, "" being the root.
  void Group(const std::string& path, const std::string& max) {
    std::filesystem::create_directories(folder_ + "/fs" + path);
    std::ofstream(folder_ + "/fs" + path + "/cpu.max") << max << "\n";
  }
  std::optional<double> QuotaIn(const std::string& lines) {
    std::ofstream(folder_ + "/own") << lines;
    return CpuQuota(folder_ + "/own", folder_ + "/fs");
  }

  std::string folder_;
};

TEST_F(CpuQuotaTest, TheLeastOfAllGroupsAboveIsTheQuota) {
  Group("/pod/app", "max 100000");
  Group("/pod", "150000 100000");
  Group("", "800000 100000");
  EXPECT_EQ(QuotaIn("0::/pod/app\n"), 1.5);
  EXPECT_EQ(QuotaIn("12:cpu:/other\n0::/pod\n"), 1.5);
  EXPECT_EQ(QuotaIn("0::/\n"), 8);
  EXPECT_EQ(QuotaIn("0::/gone/group\n"), 8) << "of another namespace: what can be read counts";
}

TEST_F(CpuQuotaTest, WithoutABoundThereIsNone) {
  EXPECT_EQ(QuotaIn("0::/app\n"), std::nullopt);
  Group("/app", "max 100000");
  EXPECT_EQ(QuotaIn("0::/app\n"), std::nullopt);
  EXPECT_EQ(QuotaIn(""), std::nullopt);
  for (const char* broken : {"", "x y", "100000", "-1 100000", "100000 0"}) {
    Group("/app", broken);
    EXPECT_EQ(QuotaIn("0::/app\n"), std::nullopt) << broken;
  }
  EXPECT_EQ(CpuQuota(folder_ + "/none", folder_ + "/none"), std::nullopt);
}

TEST(WorkersFor, APartOfACoreNeedsAWorkerToo) {
  EXPECT_EQ(WorkersFor(8, std::nullopt), 8u);
  EXPECT_EQ(WorkersFor(8, 0.1), 1u);
  EXPECT_EQ(WorkersFor(8, 1.0), 1u);
  EXPECT_EQ(WorkersFor(8, 1.5), 2u);
  EXPECT_EQ(WorkersFor(8, 16), 8u);
  EXPECT_EQ(WorkersFor(0, std::nullopt), 1u);
}

}  // namespace
}  // namespace sluice::runtime
