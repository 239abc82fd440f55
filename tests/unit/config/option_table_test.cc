// The option tables and what people read agree: each option stands in config/reference.yaml with its default and its
// range, and in docs/configuration.md with a line of its own.
#include "config/option_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>

#include "config/parsers.h"
#include "config/text.h"
#include "config/values.h"
#include "discovery/option_table.h"
#include "limits/option_table.h"
#include "net/tls/option_table.h"
#include "proxy/option_table.h"
#include "runtime/option_table.h"
#include "upstream/health/option_table.h"
#include "upstream/option_table.h"

namespace sluice::config {
namespace {

// One option of one table, without its type.
struct Entry {
  std::string path;  // "clusters[].ring_points"
  std::string fallback;
  base::OptionRange range;
  bool restart = false;
};

template <typename S, size_t N>
void Add(std::string_view map, const base::Option<S> (&table)[N], std::vector<Entry>* out, const S& defaults = S()) {
  for (const base::Option<S>& option : table) {
    out->push_back(
        {Cat(map, option.key), FormatValue(option.Get(defaults), option.range.kind), option.range, option.restart});
  }
}

// Every table where the reference says most of it: keys that a cluster has "as of a listener" stand here once.
std::vector<Entry> Entries() {
  std::vector<Entry> out;
  Add("", runtime::kRuntimeOptions, &out);
  Add("", kProcessOptions, &out);
  Add("drain.", kDrainOptions, &out);
  Add("memory.", kMemoryOptions, &out);
  Add("cache.", proxy::kCacheOptions, &out);
  Add("access_log.", proxy::kAccessLogOptions, &out);
  Add("tracing.", proxy::kTracingOptions, &out);
  Add("tracing.sample.", proxy::kTraceSampleOptions, &out);
  Add("forwarding.", proxy::kForwardingOptions, &out);
  Add("insight.", proxy::kInsightOptions, &out);
  Add("jwt[].", proxy::kJwtProviderOptions, &out);
  Add("routes[].jwt.", proxy::kJwtRuleOptions, &out);
  Add("listeners[].", proxy::kListenerOptions, &out);
  Add("listeners[].", http2::kLifeOptions, &out);
  Add("listeners[].", http2::kListenerLifeOptions, &out);
  Add("listeners[].keepalive.", http2::kKeepaliveOptions, &out);
  Add("listeners[].http2.", http2::kSessionOptions, &out);
  Add("listeners[].tls.", net::kListenerTlsOptions, &out);
  Add("clusters[].", upstream::kClusterOptions, &out);
  Add("clusters[].rate_limit.", limits::kRateOptions, &out);
  Add("clusters[].concurrency.", limits::kConcurrencyOptions, &out);
  Add("clusters[].retry_budget.", upstream::kRetryBudgetOptions, &out);
  Add("clusters[].ejection.", upstream::kEjectionOptions, &out);
  Add("clusters[].ejection.slow.", upstream::kSlowOptions, &out);
  Add("clusters[].slow_start.", upstream::kSlowStartOptions, &out);
  Add("clusters[].spill.", upstream::kSpillOptions, &out);
  Add("clusters[].health.", upstream::kHealthOptions, &out);
  Add("clusters[].discovery.", discovery::kDiscoveryOptions, &out);
  Add("announce[].", discovery::kAnnounceOptions, &out);
  Add("clusters[].endpoints[].", upstream::kEndpointOptions, &out);
  Add("routes[].", proxy::kRouteOptions, &out);
  Add("routes[].retry.", proxy::kRetryOptions, &out);
  Add("routes[].retry.backoff.", proxy::kRetryBackoffOptions, &out);
  Add("routes[].hash_by.", proxy::kHashByOptions, &out);
  Add("routes[].client_rate_limit.", proxy::kClientRateOptions, &out);
  Add("routes[].cache.", proxy::kCacheRuleOptions, &out);
  Add("routes[].mirror.", proxy::kMirrorOptions, &out);
  return out;
}

std::string Bounds(const base::OptionRange& range) {
  if (range.kind == base::OptionKind::kBool) return "";
  return Cat(range.kind == base::OptionKind::kDecimalOrZero ? "0 or [" : "[", FormatValue(range.min, range.kind), ", ",
             FormatValue(range.max, range.kind), "]");
}

std::string Read(const std::string& name) {
  std::ifstream in(std::string(SLUICE_SOURCE_DIR) + "/" + name);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The first value at each path.
void Collect(const Node& node, const std::string& path, std::map<std::string, const Node*>* out) {
  out->emplace(path, &node);
  if (node.kind == Node::Kind::kList) {
    for (const Node* item : node.items) Collect(*item, path + "[]", out);
  } else if (node.kind == Node::Kind::kMap) {
    for (size_t i = 0; i < node.items.size(); i += 2) {
      Collect(*node.items[i + 1], (path.empty() ? "" : path + ".") + node.items[i]->text, out);
    }
  }
}

// The comment of a line: behind its value, and in the lines above it that are only comment.
std::string CommentOf(const std::vector<std::string>& lines, size_t line) {
  std::string comment = lines[line].substr(std::min(lines[line].find(" # "), lines[line].size()));
  while (line-- > 0) {
    const size_t begin = lines[line].find_first_not_of(' ');
    if (begin == std::string::npos || lines[line][begin] != '#') break;
    comment = lines[line] + comment;
  }
  return comment;
}

TEST(OptionTable, ReferenceHasEachDefaultAndRange) {
  const std::string yaml = Read("config/reference.yaml");
  const std::vector<std::string> lines = Lines(yaml);
  YamlTree tree;
  std::vector<ConfigError> errors;
  ASSERT_TRUE(tree.Build(yaml, "reference.yaml", &errors));
  std::map<std::string, const Node*> values;
  Collect(tree.root(), "", &values);
  for (const Entry& entry : Entries()) {
    ASSERT_TRUE(values.contains(entry.path)) << entry.path;
    const Node& node = *values.at(entry.path);
    const std::optional<double> value = ParseValue(node.text, entry.range);
    ASSERT_TRUE(value.has_value()) << entry.path << ": " << node.text;
    EXPECT_EQ(FormatValue(*value, entry.range.kind), entry.fallback) << entry.path;
    const std::string comment = CommentOf(lines, static_cast<size_t>(node.line) - 1);
    EXPECT_NE(comment.find(Bounds(entry.range)), std::string::npos)
        << "reference.yaml:" << node.line << ": " << entry.path << " should say " << Bounds(entry.range);
    EXPECT_EQ(comment.find("Restart") != std::string::npos, entry.restart) << "reference.yaml:" << node.line;
  }
}

TEST(OptionTable, DocumentationHasALineOfEach) {
  std::set<std::string> lines;
  for (const std::string& line : Lines(Read("docs/configuration.md"))) lines.insert(line);
  std::string missing;
  for (const Entry& entry : Entries()) {
    const std::string bounds = entry.range.kind == base::OptionKind::kBool ? "true, false" : Bounds(entry.range);
    const std::string line =
        Cat("| `", entry.path, "` | ", entry.fallback, " | ", bounds, entry.restart ? "; restart |" : " |");
    if (!lines.contains(line)) missing += line + "\n";
  }
  EXPECT_EQ(missing, "") << "docs/configuration.md lacks these lines";
}

// Else a hole in this test would look like agreement.
TEST(OptionTable, AllTablesAreLookedAt) {
  std::set<std::string> paths;
  for (const Entry& entry : Entries()) EXPECT_TRUE(paths.insert(entry.path).second) << entry.path;
  EXPECT_EQ(paths.size(), 126u);
}

// An option at and beyond both ends of its range.
TEST(OptionTable, RangesAreKept) {
  for (const Entry& entry : Entries()) {
    if (entry.range.kind == base::OptionKind::kBool) continue;
    const double ends[] = {entry.range.min, entry.range.max};
    for (const double end : ends) EXPECT_EQ(ParseValue(FormatValue(end, entry.range.kind), entry.range), end);
    EXPECT_FALSE(ParseValue(FormatValue(entry.range.max + 1, entry.range.kind), entry.range)) << entry.path;
    if (entry.range.min >= 1) {
      const std::optional<double> below = ParseValue(FormatValue(entry.range.min - 1, entry.range.kind), entry.range);
      EXPECT_FALSE(below) << entry.path;
    }
    EXPECT_TRUE(ParseValue(entry.fallback, entry.range)) << entry.path << " has a default that is not allowed";
  }
}

}  // namespace
}  // namespace sluice::config
