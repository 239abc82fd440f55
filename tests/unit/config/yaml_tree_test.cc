// YamlTree: places are right, and no document, however hostile, costs more than its bounds.
#include "config/yaml_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::config {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(std::string_view yaml) {
  YamlTree tree;
  std::vector<ConfigError> errors;
  if (tree.Build(yaml, "f", &errors)) return "no error";
  EXPECT_EQ(errors.size(), 1u);
  return errors[0].ToString();
}

TEST(YamlTree, NodesKnowTheirLineAndColumnFromOne) {
  YamlTree tree;
  std::vector<ConfigError> errors;
  ASSERT_TRUE(tree.Build("# c\na: 1\nlist:\n  - x\n  - {k: v}\n", "f", &errors));
  const Node& root = tree.root();
  ASSERT_EQ(root.items.size(), 4u);
  EXPECT_EQ(root.items[0]->line, 2);
  EXPECT_EQ(root.items[0]->column, 1);
  EXPECT_EQ(root.items[1]->column, 4);
  const Node& map = *root.items[3]->items[1];
  EXPECT_EQ(map.items[1]->text, "v");
  EXPECT_EQ(map.items[1]->line, 5);
  EXPECT_EQ(map.items[1]->column, 9);
}

TEST(YamlTree, AnEmptyDocumentIsANullRoot) {
  for (std::string_view yaml : {"", "# only a comment\n", "---\n"}) {
    YamlTree tree;
    std::vector<ConfigError> errors;
    ASSERT_TRUE(tree.Build(yaml, "f", &errors)) << yaml;
    EXPECT_EQ(tree.root().kind, Node::Kind::kNull);
  }
}

TEST(YamlTree, ASyntaxErrorHasItsLine) {
  EXPECT_THAT(ErrorOf("a: 1\nb: [1, 2\nc: 3\n"), HasSubstr("f:3:"));
  EXPECT_THAT(ErrorOf("a: 1\n\tb: 2\n"), HasSubstr("f:2:"));
  EXPECT_THAT(ErrorOf("a: \"open\nb: 2\n"), HasSubstr("YAML: "));  // would swallow b
  EXPECT_THAT(ErrorOf("a: 'open"), HasSubstr("YAML: "));
  EXPECT_EQ(ErrorOf("a: 1\n...\n"), "no error");
  EXPECT_THAT(ErrorOf("a: *none\n"), HasSubstr("f:1:4: YAML: "));
}

TEST(YamlTree, ATabThatIndentsIsNamed) {
  constexpr char kTab[] = "; a tab indents this line, where only blanks are allowed";
  for (const auto& [yaml, place] : {std::pair("log:\n\tlevel: info\n", "f:2:1: YAML: "),
                                    {"log:\n  level: info\n\tformat: text\n", "f:3:1: YAML: "},
                                    {"a:\n- b:\n  - c\n \t- b:1\n", "f:4:2: YAML: "}}) {
    EXPECT_THAT(ErrorOf(yaml), HasSubstr(place)) << yaml;
    EXPECT_THAT(ErrorOf(yaml), HasSubstr(kTab)) << yaml;
  }
  EXPECT_THAT(ErrorOf("a: [1,\n\t2]\nc: 1\nb: ]\n"), Not(HasSubstr("tab")));  // far from the mistake
  EXPECT_THAT(ErrorOf("a: x\t\nb: [\n"), Not(HasSubstr("tab")));
}

TEST(YamlTree, AnAddressWithoutQuotesIsNamed) {
  constexpr char kQuotes[] = "; an IPv6 address is written in quotes: \"[::1]:7070\"";
  for (const auto& [yaml, place] : {std::pair("a:\n  - address: [::1]:7070\n", "f:2:14: YAML: "),
                                    {"a:\n  - {address: [fe80::1]:7070}\n", "f:2:15: YAML: "},
                                    {"b:\n  http: [::ffff:1.2.3.4]:7070\n", "f:2:9: YAML: "},
                                    {"a: 1\nc:\n  - [::1]:7070\n", "f:3:5: YAML: "}}) {
    EXPECT_THAT(ErrorOf(yaml), HasSubstr(place)) << yaml;
    EXPECT_THAT(ErrorOf(yaml), HasSubstr(kQuotes)) << yaml;
  }
  EXPECT_THAT(ErrorOf("a: \"[::1]:7070\"\nb: [\n"), Not(HasSubstr("IPv6")));
  EXPECT_EQ(ErrorOf("a: [\"[::1]:7070\"]\n"), "no error");
}

TEST(YamlTree, AnAliasIsItsAnchorsNode) {
  YamlTree tree;
  std::vector<ConfigError> errors;
  ASSERT_TRUE(tree.Build("a: &x {k: 1}\nb: *x\n", "f", &errors));
  EXPECT_EQ(tree.root().items[1], tree.root().items[3]);
  EXPECT_EQ(tree.root().nodes, 1u + 2u + 2u * 3u);  // the root, two keys, the map twice
}

TEST(YamlTree, AliasBombsAreRefusedAtTheAliasThatGoesTooFar) {
  std::string yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    yaml += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) yaml += ", " + before;
    yaml += "]\n";
  }
  EXPECT_THAT(ErrorOf(yaml), HasSubstr("more than 1000000 values, aliases written out"));
}

TEST(YamlTree, AnAliasInsideItsAnchorIsRefused) {
  EXPECT_THAT(ErrorOf("a: &a [1, *a]\n"), HasSubstr("f:1:11: an alias inside its own anchor"));
}

TEST(YamlTree, NestingIsBoundedAlsoThroughAliases) {
  EXPECT_EQ(ErrorOf(std::string(32, '[') + std::string(32, ']')), "no error");
  EXPECT_THAT(ErrorOf(std::string(33, '[') + std::string(33, ']')), HasSubstr("f:1:33: nested deeper than 32"));
  EXPECT_THAT(ErrorOf(std::string(1000000, '[')), HasSubstr("nested deeper than 32"));
  EXPECT_THAT(ErrorOf(std::string(1000000, '{')), HasSubstr("nested deeper than 32"));
  std::string dashes;
  for (int i = 0; i < 10000; ++i) dashes += "- ";
  EXPECT_THAT(ErrorOf(dashes), HasSubstr("nested deeper than 32"));
  const std::string half = std::string(20, '[') + "x" + std::string(20, ']');
  EXPECT_THAT(ErrorOf("a: &a " + half + "\nb: [[[[[[[[[[[[*a]]]]]]]]]]]]\n"), HasSubstr("f:2:16: nested deeper"));
  EXPECT_EQ(ErrorOf("a: &a " + half + "\nb: [[[[[[[[[[[*a]]]]]]]]]]]\n"), "no error");
}

TEST(YamlTree, TheNumberOfValuesIsBounded) {
  std::string yaml = "[";
  for (int i = 0; i < 1000001; ++i) yaml += "1,\n ";
  EXPECT_THAT(ErrorOf(yaml + "]"), HasSubstr("more than 1000000 values"));
}

TEST(YamlTree, FilesAboveTheLimitAreRefusedUnread) {
  EXPECT_EQ(ErrorOf(std::string(kFileBytesMax + 1, '[')), "f: 16777217 bytes; at most 16MiB are allowed");
}

TEST(YamlTree, LinesAreBounded) {
  EXPECT_EQ(ErrorOf("a: 1\nb: " + std::string(kLineBytesMax - 3, 'x') + "\n"), "no error");
  EXPECT_EQ(ErrorOf("a: 1\nb: " + std::string(kLineBytesMax - 2, 'x') + "\n"), "f:2:1: the line is longer than 1MiB");
}

// The parser below us takes 0x04 for the end of the file: the rest would be dropped in silence.
TEST(YamlTree, ControlCharactersAreRefusedNotTakenForTheEnd) {
  EXPECT_EQ(ErrorOf("a: 1\nb: \x04\nc: 2\n"), "f:2:4: a control character; only UTF-8 text is allowed");
  EXPECT_THAT(ErrorOf(std::string_view("a\0b", 3)), HasSubstr("f:1:2: a control character"));
}

TEST(YamlTree, SecondDocumentsAndTagsAreRefused) {
  EXPECT_THAT(ErrorOf("a: 1\n---\nb: 2\n"), HasSubstr("a second document"));
  EXPECT_THAT(ErrorOf("a: !!binary aGk=\n"), HasSubstr("f:1:4: tags are not supported"));
  EXPECT_THAT(ErrorOf("a: !x {}\n"), HasSubstr("tags are not supported"));
}

}  // namespace
}  // namespace sluice::config
