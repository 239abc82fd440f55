// Sources of lists, in a configuration, and lists in files of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/config.h"
#include "integration/support/temp_dir.h"

namespace sluice::config {
namespace {

using discovery::DiscoveryOptions;
using discovery::RpcRule;
using discovery::SourceKind;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

ParseResult ParseWith(const std::string& discovery, const std::string& file = "dir/f") {
  return Parse(
      "listeners: [{address: 127.0.0.1:1}]\nclusters: [{name: users" + discovery + "}]\nroutes: [{cluster: users}]\n",
      file);
}

TEST(DiscoveryOptionsTest, WithoutItThereIsNoneAndEndpointsAreNeeded) {
  EXPECT_TRUE(ParseWith(", endpoints: [a:1]").config.discovery.empty());
  const ParseResult result = ParseWith("");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_THAT(result.errors[0].ToString(), HasSubstr("clusters[0].endpoints: is missing"));
}

TEST(DiscoveryOptionsTest, EveryKeyReachesItsField) {
  const ParseResult result = ParseWith(
      ", discovery: {file: {path: l.yaml}, empty_after: 2s, moved_max: 0.25, ready_timeout: 3s, changes_by_rpc: "
      "override}");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  const DiscoveryOptions expected{SourceKind::kFile, {"dir/l.yaml"}, 2s, 0.25, 3s, RpcRule::kOverride};
  EXPECT_EQ(result.config.discovery.at("users"), expected);
  EXPECT_EQ(expected.Name(), "file dir/l.yaml");
  EXPECT_TRUE(result.config.clusters[0].endpoints.empty());
}

TEST(DiscoveryOptionsTest, WrongValuesAreNamed) {
  const std::pair<std::string, const char*> cases[] = {
      {"{}", "clusters[0].discovery.file: is missing: discovery names no source; allowed: file"},
      {"{empty_after: 2s}", "clusters[0].discovery.file: is missing"},
      {"{file: {}}", "clusters[0].discovery.file.path: is missing"},
      {"{file: {path: \"\"}}", "clusters[0].discovery.file.path: is empty; a file is needed"},
      {"{file: {path: a, pat: b}}", "clusters[0].discovery.file.pat: unknown key; did you mean \"path\"?"},
      {"{file: {path: a}, empty_after: 25h}", "clusters[0].discovery.empty_after"},
      {"{file: {path: a}, moved_max: 1.1}", "clusters[0].discovery.moved_max"},
      {"{file: {path: a}, ready_timeout: 2h}", "clusters[0].discovery.ready_timeout"},
      {"{file: {path: a}, changes_by_rpc: allow}", "clusters[0].discovery.changes_by_rpc"}};
  for (const auto& [text, message] : cases) {
    const ParseResult result = ParseWith(", discovery: " + text);
    ASSERT_EQ(result.errors.size(), 1u) << text;
    EXPECT_THAT(result.errors[0].ToString(), HasSubstr(message));
  }
}

class LoadEndpointsTest : public ::testing::Test {
 protected:
  std::string ErrorOf(const std::string& text) {
    const auto list = LoadEndpoints(dir.Write("l.yaml", text));
    return list.ok() ? "none" : list.error().detail;
  }
  integration::TempDir dir;
};

TEST_F(LoadEndpointsTest, EntriesAreThoseOfACluster) {
  const auto list = LoadEndpoints(
      dir.Write("l.yaml", "endpoints:\n  - b:2\n  - {address: a:1, name: n, weight: 3, priority: 1, locality: eu}\n"));
  ASSERT_TRUE(list.ok()) << list.error().detail;
  ASSERT_EQ(list->size(), 2u);
  EXPECT_EQ((*list)[0], (upstream::EndpointOptions{"b:2", *net::Address::Parse("b:2")}));
  EXPECT_EQ((*list)[1], (upstream::EndpointOptions{"n", *net::Address::Parse("a:1"), 3, 1, "eu"}));
  EXPECT_TRUE(LoadEndpoints(dir.Write("l.yaml", "endpoints: []"))->empty());
}

TEST_F(LoadEndpointsTest, MistakesAreNamed) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("endpoints: is missing"));
  EXPECT_THAT(ErrorOf("[a:1]"), HasSubstr("l.yaml:1:1"));
  EXPECT_THAT(ErrorOf("endpoints: ["), HasSubstr("l.yaml:2:1: YAML: end of sequence flow not found"));
  EXPECT_THAT(ErrorOf("endpoints: [a:1, a:1]"), HasSubstr("is also that of endpoints[0]"));
  EXPECT_THAT(ErrorOf("endpoints: [\"a:0\"]"), HasSubstr("port 0 cannot be connected to"));
  EXPECT_THAT(ErrorOf("endpoints: [a]\nmore: 1\n"), HasSubstr("more: unknown key"));
  EXPECT_THAT(ErrorOf("endpoints: [{address: a:1, weight: -1}]"), HasSubstr("endpoints[0].weight"));
  const std::string many = ErrorOf("endpoints: [a, b, c, d, e, f, g]");
  EXPECT_THAT(many, HasSubstr("endpoints[4]"));
  EXPECT_THAT(many, HasSubstr("; and 2 more"));
  const auto none = LoadEndpoints(dir.File("none"));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().detail, dir.File("none") + ": cannot be read: No such file or directory");
}

}  // namespace
}  // namespace sluice::config
