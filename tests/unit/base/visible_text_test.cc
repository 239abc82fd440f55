// Text from outside: what shows stays, all else is spelled.
#include "base/visible_text.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(VisibleTextTest, CharactersThatShowStayAsTheyAre) {
  const std::string text = "plain, \xc3\xa4, \xe2\x82\xac, \xf0\x9f\x98\x80";
  EXPECT_EQ(VisibleText(text), text);
  EXPECT_EQ(VisibleText(""), "");
}

TEST(VisibleTextTest, WhatDoesNotShowIsSpelled) {
  EXPECT_EQ(VisibleText("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  EXPECT_EQ(VisibleText(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(VisibleText("\x7f\xc2\x85"), "\\x7f\\xc2\\x85") << "controls above ASCII";
  EXPECT_EQ(VisibleText("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "U+202E, from right to left";
  EXPECT_EQ(VisibleText("\xe2\x81\xa6"), "\\xe2\\x81\\xa6") << "U+2066, an isolate";
  EXPECT_EQ(VisibleText("\xef\xbf\xbf"), "\\xef\\xbf\\xbf") << "U+FFFF, no character";
}

TEST(VisibleTextTest, BytesThatAreNoUtf8AreSpelledOneByOne) {
  EXPECT_EQ(VisibleText("\xff-"), "\\xff-");
  EXPECT_EQ(VisibleText("\xc3"), "\\xc3") << "cut off";
  EXPECT_EQ(VisibleText("\xc3("), "\\xc3(");
  EXPECT_EQ(VisibleText("\xc0\xaf"), "\\xc0\\xaf") << "a longer form";
  EXPECT_EQ(VisibleText("\xe0\x80\xaf"), "\\xe0\\x80\\xaf") << "a longer form";
  EXPECT_EQ(VisibleText("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of UTF-16";
  EXPECT_EQ(VisibleText("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

}  // namespace
}  // namespace sluice::base
