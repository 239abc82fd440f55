#include "proxy/identity/strict_json.h"

#include <gtest/gtest.h>

#include <string>

#include "proxy/identity/base64url.h"
#include "support/jwt_maker.h"

namespace sluice::proxy {
namespace {

TEST(StrictJson, ReadsEachKindOfValue) {
  const auto json = ParseStrictJson(R"( {"s":"a\u00e9\n","i":-3,"u":18446744073709551615,"d":1.50,"t":true,"n":null,)"
                                    R"("a":["x",{"y":1}]} )");
  ASSERT_TRUE(json);
  EXPECT_EQ(json->Find("s")->text, "a\xc3\xa9\n");
  EXPECT_EQ(json->Find("i")->text, "-3");
  EXPECT_EQ(json->Find("u")->text, "18446744073709551615");
  EXPECT_EQ(json->Find("d")->text, "1.50");
  EXPECT_EQ(json->Find("d")->number, 1.5);
  EXPECT_TRUE(json->Find("t")->truth);
  EXPECT_EQ(json->Find("n")->kind, JsonValue::Kind::kNull);
  ASSERT_EQ(json->Find("a")->items.size(), 2u);
  EXPECT_EQ(json->Find("a")->items[1].Find("y")->text, "1");
  EXPECT_EQ(json->Find("z"), nullptr);
}

TEST(StrictJson, RefusesWhatParsersReadInTwoWays) {
  using namespace std::string_literals;
  const std::string wrong[] = {"",
                               "{",
                               "{\"a\":1,\"a\":2}",
                               "{\"x\":{\"a\":1,\"\\u0061\":2}}",
                               "{\"a\":1}x",
                               "{} {}",
                               "{\"a\":1,}",
                               "{'a':1}",
                               "{a:1}",
                               "{\"a\":01}",
                               "{\"a\":NaN}",
                               "{\"a\":1e999}",
                               "\xef\xbb\xbf{}",
                               "{}\0{}"s,
                               "{}\0"s,
                               "{\"a\":\"\xff\"}",
                               "{\"a\":\"\xed\xa0\x80\"}",
                               "{\"a\":\"\n\"}",
                               "/**/{}",
                               "[1,]",
                               "{\"a\":\"\\ud800\"}"};
  for (const std::string& text : wrong) EXPECT_FALSE(ParseStrictJson(text)) << text;
}

TEST(StrictJson, HasBounds) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(ParseStrictJson(nested(kJsonDepthMax)));
  EXPECT_FALSE(ParseStrictJson(nested(kJsonDepthMax + 1)));
  const auto many = [](size_t count) {
    std::string out = "[0";
    for (size_t i = 1; i < count; ++i) out += ",0";
    return out + "]";
  };
  EXPECT_TRUE(ParseStrictJson(many(kJsonValuesMax - 1)));  // the array is one
  EXPECT_FALSE(ParseStrictJson(many(kJsonValuesMax)));
  const auto members = [](size_t count) {
    std::string out = "{";
    for (size_t i = 0; i < count; ++i) out += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":0";
    return out + "}";
  };
  EXPECT_TRUE(ParseStrictJson(members(kJsonValuesMax - 1)));
  EXPECT_FALSE(ParseStrictJson(members(kJsonValuesMax)));
  bool beyond = false;
  EXPECT_FALSE(ParseStrictJson("{\"a\":", &beyond));
  EXPECT_FALSE(beyond);
  EXPECT_FALSE(ParseStrictJson(nested(kJsonDepthMax + 1), &beyond));
  EXPECT_TRUE(beyond);
  beyond = false;
  EXPECT_FALSE(ParseStrictJson(many(kJsonValuesMax), &beyond));
  EXPECT_TRUE(beyond);
}

// Deep JSON: the parser does not call itself for each level, and stops at the bound.
TEST(StrictJson, TenThousandBracketsAreRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text;
    for (int i = 0; i < 10000; ++i) text += open;
    bool beyond = false;
    EXPECT_FALSE(ParseStrictJson(text, &beyond));
    EXPECT_TRUE(beyond);
  }
}

TEST(Base64Url, ReadsWhatItIsMadeOf) {
  for (size_t size = 0; size < 70; ++size) {
    std::string bytes;
    for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(i * 37 + size * 11);
    EXPECT_EQ(DecodeBase64Url(test::Base64Url(bytes)), bytes);
  }
}

TEST(Base64Url, HasOneSpellingForEachText) {
  EXPECT_EQ(DecodeBase64Url("_w"), "\xff");
  for (const char* wrong : {"_x", "_w=", "_w==", "/w", "+w", "_", "_ w", "_w\n", "AAAAA", "AB", "AAB"})
    EXPECT_FALSE(DecodeBase64Url(wrong)) << wrong;
}

}  // namespace
}  // namespace sluice::proxy
