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
  void GroupV1(const std::string& controllers, const std::string& path, const char* quota, const char* period) {
    const std::string group = folder_ + "/fs/" + controllers + path;
    std::filesystem::create_directories(group);
    std::ofstream(group + "/cpu.cfs_quota_us") << quota << "\n";
    std::ofstream(group + "/cpu.cfs_period_us") << period << "\n";
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

TEST_F(CpuQuotaTest, OfCgroupV1TheTwoFilesCount) {
  GroupV1("cpu,cpuacct", "", "-1", "100000");
  GroupV1("cpu,cpuacct", "/pod", "250000", "100000");
  GroupV1("cpu,cpuacct", "/pod/app", "-1", "100000");
  EXPECT_EQ(QuotaIn("5:memory:/pod/app\n4:cpu,cpuacct:/pod/app\n"), 2.5);
  EXPECT_EQ(QuotaIn("4:cpu,cpuacct:/\n"), std::nullopt);
  EXPECT_EQ(QuotaIn("4:cpuset:/pod\n"), std::nullopt) << "another controller's group";
  Group("/both", "150000 100000");
  EXPECT_EQ(QuotaIn("4:cpu,cpuacct:/pod\n0::/both\n"), 1.5);
}

TEST_F(CpuQuotaTest, OfCgroupV1TheControllerMayBeMountedByItsOwnName) {
  GroupV1("cpu", "", "50000", "100000");
  EXPECT_EQ(QuotaIn("4:cpu,cpuacct:/of/the/host\n"), 0.5) << "a container sees its own group as the root";
  for (const char* broken : {"", "x", "0", "-5"}) {
    GroupV1("cpu", "", broken, "100000");
    EXPECT_EQ(QuotaIn("4:cpu:/\n"), std::nullopt) << broken;
  }
  for (const char* line : {"4:cpu\n", "4\n", "4:cpu:\n", "::\n", "4:cpu:relative\n"})
    EXPECT_EQ(QuotaIn(line), std::nullopt) << line;
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
