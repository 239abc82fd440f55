// Variables of the environment: which text stands for them, where they may stand, and that no value of one changes what
// a file is made of.
#include "config/expand.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "config/config.h"

namespace sluice::config {
namespace {

using ::testing::HasSubstr;

const std::map<std::string, std::string> kSet = {
    {"PORT", "7070"},   {"EMPTY", ""},        {"TIME", "3s"},    {"SECRET", "s3cret"}, {"TRAP", "${PORT}"},
    {"LIST", "[a, b]"}, {"LINES", "a\nb: c"}, {"HASH", "a # b"}, {"NULL", "null"},     {"LONG", std::string(4000, 'x')},
    {"_x9", "lower"}};

std::optional<std::string> Lookup(const std::string& name) {
  const auto it = kSet.find(name);
  return it == kSet.end() ? std::nullopt : std::optional(it->second);
}

std::string Of(std::string_view text) {
  auto value = Expand(text, Lookup);
  return value.ok() ? *value : "error: " + value.error().detail;
}

TEST(Expand, AVariableItsDefaultAndWhatIsNone) {
  EXPECT_EQ(Of("127.0.0.1:${PORT}"), "127.0.0.1:7070");
  EXPECT_EQ(Of("${PORT}${PORT}"), "70707070");
  EXPECT_EQ(Of("${PORT:-1}${NONE:-2}${EMPTY:-3}${NONE:-}"), "707023");
  EXPECT_EQ(Of("${EMPTY}"), "");
  EXPECT_EQ(Of("${NONE:-a:-b c$}"), "a:-b c$");
  EXPECT_EQ(Of("${_x9}"), "lower");
  for (const char* text : {"", "$", "$$", "$PORT", "a$b$$c", "{PORT}", "$ {PORT}", "}"}) EXPECT_EQ(Of(text), text);
}

TEST(Expand, TwoDollarsBeforeABraceAreOne) {
  EXPECT_EQ(Of("$${PORT}"), "${PORT}");
  EXPECT_EQ(Of("$$${PORT}"), "$7070");
  EXPECT_EQ(Of("$$$${PORT}"), "$${PORT}");
  EXPECT_EQ(Of("$${"), "${");
  for (const char* text : {"${PORT}", "$${PORT}", "$$${x", "a$", "$$", "{", "${", "a${b}$$${c"}) {
    EXPECT_EQ(Of(EscapeVariables(text)), text);
  }
}

TEST(Expand, WhatAVariableIsReplacedWithIsNotLookedAtAgain) { EXPECT_EQ(Of("${TRAP}"), "${PORT}"); }

TEST(Expand, ErrorsNameTheVariableAndNoValue) {
  EXPECT_EQ(Of("${SECRET}${NONE}"),
            "error: the environment has no variable NONE; allowed: set it, or write ${NONE:-default}");
  for (const char* text : {"${}", "${1A}", "${A-b}", "${A:+b}", "${A b}", "${A", "${PORT:-${SECRET}}", "${LINES}"}) {
    EXPECT_THAT(Of(text), HasSubstr("error: ")) << text;
    EXPECT_THAT(Of(text), HasSubstr("allowed")) << text;
  }
  EXPECT_THAT(Of("${" + std::string(129, 'A') + "}"), HasSubstr("names no variable"));
  EXPECT_THAT(Of("${LONG}${LONG}"), HasSubstr("more than 4096 bytes"));
  EXPECT_LT(Of("${" + std::string(100000, 'A')).size(), 300u);
}

ParseResult ParseWith(const std::string& yaml) { return Parse(yaml, "f", {Lookup, nullptr}); }

std::string ErrorsOf(const std::string& yaml) {
  std::string out;
  for (const ConfigError& error : ParseWith(yaml).errors) out += error.ToString() + "\n";
  return out;
}

constexpr char kListeners[] = "listeners: [{address: \"127.0.0.1:${PORT}\"}]\n";
constexpr char kClusters[] = "clusters: [{name: a, endpoints: [b:1]}]\n";

TEST(Expand, NumbersTimesAndTextsComeFromVariablesQuotedOrNot) {
  const ParseResult result = ParseWith(std::string(kListeners) + kClusters +
                                       "connections_max: ${PORT}\ndrain_timeout: \"${TIME}\"\n"
                                       "hash_seed: '${SECRET} # $${PORT}'\nlocality: ${NONE:-eu 1}\n");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.listeners[0].address.ToString(), "127.0.0.1:7070");
  EXPECT_EQ(result.config.connections_max, 7070u);
  EXPECT_EQ(result.config.drain_timeout, std::chrono::seconds(3));
  EXPECT_EQ(result.config.hash_seed, "s3cret # ${PORT}");
  EXPECT_EQ(result.config.clusters[0].locality, "eu 1");
}

// The tree is made before: what would be a list, a comment, nothing or another variable in the file is a text here.
TEST(Expand, NoValueChangesTheStructure) {
  const auto seed = [](const char* variable) {
    return ParseWith(std::string(kListeners) + kClusters + "hash_seed: " + variable + "\n").config.hash_seed;
  };
  EXPECT_EQ(seed("${LIST}"), "[a, b]");
  EXPECT_EQ(seed("${HASH}"), "a # b");
  EXPECT_EQ(seed("${NULL}"), "null");
  EXPECT_EQ(seed("${TRAP}"), "${PORT}");
  EXPECT_EQ(ErrorsOf(std::string(kListeners) + "clusters: ${LIST}\n"),
            "f:2:11: clusters: a single value; a list is allowed (the file says \"${LIST}\")\n");
  EXPECT_THAT(ErrorsOf(std::string(kListeners) + kClusters + "log: {\"${PORT}\": 1}\n"),
              HasSubstr("f:3:7: a variable in a key; only values may have one"));
}

TEST(Expand, ErrorsHaveTheirPlaceAllAtOnce) {
  EXPECT_EQ(ErrorsOf("listeners: [{address: \"127.0.0.1:${NONE}\"}]\nclusters:\n  - name: ${ALSO_NONE}\n"
                     "    endpoints: [b:1]\n    connect_timeout: ${PORT}\n"),
            "f:1:23: the environment has no variable NONE; allowed: set it, or write ${NONE:-default}\n"
            "f:3:11: the environment has no variable ALSO_NONE; allowed: set it, or write ${ALSO_NONE:-default}\n"
            "f:5:22: clusters[0].connect_timeout: \"7070\" is not a time in [1ms, 10m] (with a unit: ms, s, m, h) "
            "(the file says \"${PORT}\")\n");
}

TEST(Expand, AllVariablesOfAFileAreBounded) {
  std::string yaml = std::string(kListeners) + kClusters + "log: {path: [";
  for (int i = 0; i < 5000; ++i) yaml += "\"${LONG}\", ";
  EXPECT_THAT(ErrorsOf(yaml + "]}\n"), HasSubstr("come to more than 16MiB"));
}

// An alias is its anchor's value: replaced once.
TEST(Expand, AnAliasedValueIsReplacedOnce) {
  const ParseResult result =
      ParseWith(std::string(kListeners) + kClusters + "hash_seed: &x ${TRAP}\nlog: {path: *x}\n");
  ASSERT_TRUE(result.ok()) << result.errors[0].ToString();
  EXPECT_EQ(result.config.hash_seed, "${PORT}");
  EXPECT_EQ(result.config.log.path, "${PORT}");
}

}  // namespace
}  // namespace sluice::config
