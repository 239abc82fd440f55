// Included files: how they become one configuration, and every way in which that can be wrong, with its place.
#include "config/config_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/config.h"
#include "config/text.h"

namespace sluice::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The files of a folder, in memory.
class ConfigTreeTest : public ::testing::Test {
 protected:
  ParseResult Run(const std::string& path = "/etc/s/main.yaml") {
    reads_ = 0;
    const auto read = [this](const std::string& name) -> base::Result<std::string> {
      ++reads_;
      if (!files_.contains(name)) return base::MakeError(base::ErrorKind::kIo, name + ": cannot be read: none");
      return files_[name];
    };
    const auto variable = [](const std::string& name) {
      return name == "FOLDER" ? std::optional<std::string>("sub") : std::nullopt;
    };
    return Parse(files_[path], path, {variable, read});
  }
  std::string Errors() {
    std::string out;
    for (const ConfigError& error : Run().errors) out += error.ToString() + "\n";
    return out;
  }
  std::string& operator[](const std::string& name) { return files_["/etc/s/" + name]; }

  std::map<std::string, std::string> files_;
  int reads_ = 0;
};

constexpr char kListener[] = "listeners: [{address: 127.0.0.1:1}]\n";

std::string Cluster(const std::string& name) {
  return Cat("clusters:\n  - name: ", name, "\n    endpoints: [h:1]\nroutes:\n  - {service: ", name,
             ", cluster: ", name, "}\n");
}

TEST_F(ConfigTreeTest, ListsAreJoinedAsIfTheIncludedStoodFirst) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml, \"${FOLDER}/b.yaml\"]\n" + Cluster("own");
  (*this)["a.yaml"] = "workers: 3\n" + Cluster("a");
  (*this)["sub/b.yaml"] = "include: [c.yaml]\n" + Cluster("b");
  (*this)["sub/c.yaml"] = "log: {level: warn}\n" + Cluster("c");
  const ParseResult result = Run();
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  std::vector<std::string> clusters, routes;
  for (const auto& cluster : result.config.clusters) clusters.push_back(cluster.name);
  for (const auto& route : result.config.routes) routes.push_back(route.service);
  EXPECT_THAT(clusters, ElementsAre("a", "c", "b", "own"));
  EXPECT_THAT(routes, ElementsAre("a", "c", "b", "own"));
  EXPECT_EQ(result.config.runtime.workers, 3u);
  EXPECT_EQ(result.config.log.level, LogLevel::kWarn);
  EXPECT_THAT(result.files, ElementsAre("/etc/s/main.yaml", "/etc/s/a.yaml", "/etc/s/sub/b.yaml", "/etc/s/sub/c.yaml"));
  EXPECT_EQ(reads_, 3);
}

TEST_F(ConfigTreeTest, AListIsInAFileOnceAlsoWhereItIsJoined) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml]\nlog: {}\nclusters: []\nroutes: []\nroutes: []\n";
  (*this)["a.yaml"] = Cluster("a");
  EXPECT_THAT(Errors(), HasSubstr(": routes: stands in /etc/s/main.yaml:"));
}

TEST_F(ConfigTreeTest, NamesOfFilesAreBesideTheFileThatSaysThem) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [sub/b.yaml]\n";
  (*this)["sub/b.yaml"] = "clusters: [{name: a, discovery: {file: {path: list.yaml}}}]\n";
  const ParseResult result = Run();
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.discovery.at("a").file.path, "/etc/s/sub/list.yaml");
}

TEST_F(ConfigTreeTest, AFileMayBeWholeInItsParts) {
  (*this)["main.yaml"] = "include: [a.yaml]\n";
  (*this)["a.yaml"] = kListener + Cluster("a");
  EXPECT_TRUE(Run().ok());
  (*this)["main.yaml"] = "include:\nlisteners:\n" + Cluster("b");  // nothing at both keys
  EXPECT_EQ(Errors(), "/etc/s/main.yaml:3:1: listeners: is empty; at least one listener is needed\n");
}

TEST_F(ConfigTreeTest, ASectionInTwoFilesNamesBothPlaces) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml, b.yaml]\n" + Cluster("own") + "workers: 1\n";
  (*this)["a.yaml"] = "# a\nlog: {level: info}\nworkers: 2\n";
  (*this)["b.yaml"] = "log: {level: warn}\n";
  EXPECT_EQ(Errors(),
            "/etc/s/main.yaml:8:1: workers: stands in /etc/s/a.yaml:3:1 too; only one file may have it\n"
            "/etc/s/b.yaml:1:1: log: stands in /etc/s/a.yaml:2:1 too; only one file may have it\n");
}

TEST_F(ConfigTreeTest, NamesAndRoutesAreComparedOverAllFiles) {
  (*this)["main.yaml"] =
      std::string(kListener) + "include: [a.yaml]\n" + Cluster("own") + "  - {service: a, cluster: a}\n";
  (*this)["a.yaml"] = Cluster("a") + "";
  EXPECT_EQ(Errors(),
            "/etc/s/main.yaml:8:5: routes[2]: never takes a call: routes[0] (/etc/s/a.yaml:5:5) before it takes them "
            "all\n");
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml]\n" + "clusters: [{name: a, endpoints: [h:1]}]\n";
  EXPECT_EQ(Errors(),
            "/etc/s/main.yaml:3:12: clusters[1]: name \"a\" is also that of clusters[0] "
            "(/etc/s/a.yaml:2:5)\n");
}

TEST_F(ConfigTreeTest, ErrorsHaveTheirOwnFileInTheOrderOfTheFiles) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml, b.yaml]\n" + Cluster("own") + "worker: 1\n";
  (*this)["a.yaml"] = "hash_seed: ${NONE}\nclusters: [{name: x, endpoints: [h]}]\n";
  (*this)["b.yaml"] = "log:\n  level: loud\n";
  const ParseResult result = Run();
  ASSERT_EQ(result.errors.size(), 4u);
  EXPECT_THAT(result.errors[0].ToString(), HasSubstr("/etc/s/main.yaml:8:1: worker: unknown key"));
  EXPECT_THAT(result.errors[1].ToString(), HasSubstr("/etc/s/a.yaml:1:12: the environment has no variable NONE"));
  EXPECT_THAT(result.errors[2].ToString(), HasSubstr("/etc/s/a.yaml:2:34: clusters[0].endpoints[0]: \"h\": no port"));
  EXPECT_THAT(result.errors[3].ToString(), HasSubstr("/etc/s/b.yaml:2:10: log.level: \"loud\" is not one of"));
}

TEST_F(ConfigTreeTest, WhatCannotBeReadIsReportedAloneButAllOfIt) {
  (*this)["main.yaml"] = "include: [none.yaml, a.yaml, b.yaml, \"${NONE}\"]\n";
  (*this)["a.yaml"] = "log: [\n";
  (*this)["b.yaml"] = "- a list\n";
  const ParseResult result = Run();
  ASSERT_EQ(result.errors.size(), 4u);
  EXPECT_EQ(result.errors[0].ToString(), "/etc/s/main.yaml:1:11: include[0]: /etc/s/none.yaml: cannot be read: none");
  EXPECT_THAT(result.errors[1].ToString(), HasSubstr("/etc/s/main.yaml:1:38: the environment has no variable NONE"));
  EXPECT_THAT(result.errors[2].ToString(), HasSubstr("/etc/s/a.yaml:3:1: YAML: "));
  EXPECT_EQ(result.errors[3].ToString(), "/etc/s/b.yaml:1:1: a list; a map (key: value) is allowed");
}

TEST_F(ConfigTreeTest, ACircleNamesItsFiles) {
  (*this)["main.yaml"] = "include: [sub/a.yaml]\n";
  (*this)["sub/a.yaml"] = "include: [b.yaml]\n";
  (*this)["sub/b.yaml"] = "\ninclude: [../sub/./a.yaml]\n";
  EXPECT_EQ(Errors(),
            "/etc/s/sub/b.yaml:2:11: include[0]: a circle of files: /etc/s/main.yaml -> /etc/s/sub/a.yaml -> "
            "/etc/s/sub/b.yaml -> /etc/s/sub/../sub/./a.yaml\n");
  (*this)["sub/b.yaml"] = "include: [/etc/s/main.yaml]\n";
  EXPECT_THAT(Errors(), HasSubstr("a circle of files: /etc/s/main.yaml -> "));
}

TEST_F(ConfigTreeTest, AFileIsIncludedOnce) {
  (*this)["main.yaml"] = std::string(kListener) + "include: [a.yaml, ./a.yaml]\n";
  (*this)["a.yaml"] = Cluster("a");
  EXPECT_EQ(Errors(),
            "/etc/s/main.yaml:2:19: include[1]: \"./a.yaml\" is included already, at /etc/s/main.yaml:2:11\n");
}

TEST_F(ConfigTreeTest, DepthAndNumberAreBounded) {
  for (int i = 0; i < 12; ++i) files_[Cat("/etc/s/", i)] = Cat("include: [", i + 1, "]\n");
  (*this)["main.yaml"] = "include: [\"0\"]\n";
  EXPECT_EQ(Errors(), "/etc/s/7:1:10: include: files inside files deeper than 8\n");
  files_.clear();
  (*this)["main.yaml"] = std::string(kListener) + "include:\n";
  for (int i = 0; i < 300; ++i) {
    (*this)["main.yaml"] += Cat("  - f", i, "\n");
    (*this)[Cat("f", i)] = "# nothing\n";
  }
  EXPECT_THAT(Errors(), HasSubstr("/etc/s/main.yaml:258:5: include[255]: more than 256 files"));
  EXPECT_EQ(reads_, 255);
}

TEST_F(ConfigTreeTest, BytesAndValuesAreBoundedOverAllFiles) {
  (*this)["main.yaml"] = "include: [a, b, c, d, e]\n";
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    (*this)[name] = std::string(15 * 1024 * 1024, '\n');
  }
  EXPECT_THAT(Errors(), HasSubstr("include[4]: with this file more than 64MiB are included"));
  for (const char* name : {"a", "b", "c"}) {
    (*this)[name] = Cat("clusters: &", name, " [[");
    for (int i = 0; i < 1000; ++i) (*this)[name] += "1,";
    (*this)[name] += "]]\n";
    std::string anchors = "x: [&a [";
    for (int i = 0; i < 999; ++i) anchors += "1,";
    anchors += "]";
    for (int i = 0; i < 399; ++i) anchors += ", *a";
    (*this)[name] = anchors + "]\n";
  }
  EXPECT_THAT(Errors(), HasSubstr("/etc/s/c:1:1: with this file more than 1000000 values, aliases written out"));
}

TEST_F(ConfigTreeTest, WhatIsNoListOfFiles) {
  for (const auto& [text, error] :
       std::map<std::string, std::string>{{"include: a.yaml\n", "include: a single value; a list of files is allowed"},
                                          {"include: {a: b}\n", "include: a map; a list of files is allowed"},
                                          {"include: [{a: b}]\n", "include[0]: a map; the name of a file is allowed"},
                                          {"include: [\"\"]\n", "include[0]: \"\" is not the name of a file"}}) {
    (*this)["main.yaml"] = text;
    EXPECT_THAT(Errors(), HasSubstr(error)) << text;
  }
  // A list here, none there.
  (*this)["main.yaml"] = "include: [a.yaml]\nclusters: 1\n";
  (*this)["a.yaml"] = kListener + Cluster("a");
  EXPECT_EQ(Errors(), "/etc/s/main.yaml:2:11: clusters: a single value; a list is allowed\n");
}

TEST(ConfigTree, WithoutAReaderNoFileIsIncluded) {
  const ParseResult result = Parse("include: [a.yaml]\n", "f");
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].ToString(), "f:1:10: include: no other files are read here");
}

}  // namespace
}  // namespace sluice::config
