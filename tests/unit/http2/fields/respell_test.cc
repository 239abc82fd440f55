// Fields in the one spelling that goes on: what is kept, what becomes of blanks and of values of bytes, what is left
// out.
#include "http2/fields/respell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http2/fields/validate.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Fields;

class RespellTest : public ::testing::Test {
 public:
  Respelled Of(const Fields& fields, size_t count_max = 256) {
    return Respell(interns, h2::List(interns, fields), count_max);
  }
  std::string Text(const Fields& fields) { return h2::Text(Of(fields).fields); }
  bool IsPlain(const std::string& name, const std::string& value) {
    return SpellingOf(h2::List(interns, {{name, value}})[0]) == Spelling::kPlain;
  }

  InternTable interns;
};

TEST_F(RespellTest, BlanksAtTheEndsGo) {
  EXPECT_EQ(Text({{"a", " b c\t"}, {"d", "\t "}, {"e", "f"}}), "a=b c, d=, e=f");
  EXPECT_EQ(Of({{"a", " b c\t"}, {"d", "\t "}, {"e", "f"}}).blanks, 2u);
}

// They are the message's text: gRPC's own encoding leaves a blank as it is.
TEST_F(RespellTest, BlanksOfAMessageAreEncoded) {
  EXPECT_EQ(Text({{"grpc-message", " no such user:  "}}), "grpc-message=%20no such user:%20%20");
  EXPECT_EQ(Text({{"grpc-message", "\tx"}}), "grpc-message=%09x");
  EXPECT_EQ(Text({{"grpc-message", "  "}}), "grpc-message=%20%20");
}

TEST_F(RespellTest, EachValueOfBytesIsAFieldOfItsOwnWithoutPadding) {
  Respelled out = Of({{"x-bin", "YQ=="}, {"y", "a,b"}, {"z-bin", "YWJj , ZGVm,"}, {"w-bin", "YWJj"}});
  EXPECT_EQ(h2::Text(out.fields), "x-bin=YQ, y=a,b, z-bin=YWJj, z-bin=ZGVm, z-bin=, w-bin=YWJj");
  EXPECT_EQ(out.bin, 2u);
  EXPECT_EQ(out.undecodable, 0u);
  EXPECT_EQ(Text({{"x-bin", " YQ== "}}), "x-bin=YQ");
}

TEST_F(RespellTest, WhatDoesNotDecodeIsLeftOutAndNamed) {
  for (const char* value : {"%%%", "_-8", "Y===", "\xff", "YWJj,%", "Y"}) {
    Respelled out = Of({{"a", "b"}, {"x-bin", value}, {"c", "d"}});
    EXPECT_EQ(h2::Text(out.fields), "a=b, c=d") << value;
    EXPECT_EQ(out.undecodable, 1u);
    EXPECT_EQ(out.first_undecodable, "x-bin");
  }
  // No application can have given such a name.
  EXPECT_EQ(Of({{"-bin", "YWJj"}}).undecodable, 1u);
  EXPECT_EQ(Of({{"a%b\"c-bin", "%"}}).first_undecodable, "a?b?c-bin");
  EXPECT_EQ(Of({{std::string(100, 'a') + "-bin", "%"}}).first_undecodable, std::string(64, 'a'));
}

// A comma of one byte must not become many fields without end.
TEST_F(RespellTest, AListOfValuesHasNoMoreFieldsThanTheLimit) {
  Respelled out = Of({{"x-bin", std::string(60000, ',')}}, 256);
  EXPECT_TRUE(out.too_many);
  EXPECT_LE(out.fields.size(), 256u);
  EXPECT_FALSE(Of({{"x-bin", std::string(255, ',')}}, 256).too_many);
}

TEST_F(RespellTest, FieldsStayInternedAndAsIndexedAsTheyCame) {
  HeaderList list(&interns);
  list.AddInterned(interns.Intern("x-bin", "YQ=="));
  list.Add("y-bin", "YQ==", Indexing::kNever);
  list.AddInterned(interns.Intern("z", "w"));
  Respelled out = Respell(interns, list, 256);
  ASSERT_EQ(out.fields.size(), 3u);
  EXPECT_EQ(out.fields[0].indexing, Indexing::kIndexed);
  EXPECT_TRUE(out.fields[0].interned());
  EXPECT_EQ(out.fields[1].indexing, Indexing::kNever);
  EXPECT_EQ(&out.fields[2], &list[2]);
}

TEST_F(RespellTest, PlainFieldsAreKnown) {
  EXPECT_TRUE(IsPlain("x-bin", "YWJj"));
  EXPECT_TRUE(IsPlain("x-bin", ""));
  EXPECT_TRUE(IsPlain("grpc-trace-bin", "YWJj"));
  EXPECT_TRUE(IsPlain("x", "%%%"));
  EXPECT_TRUE(IsPlain("x", ""));
  EXPECT_FALSE(IsPlain("grpc-trace-bin", "YQ=="));
  EXPECT_FALSE(IsPlain("x-bin", "a,b"));
  EXPECT_FALSE(IsPlain("-bin", "YWJj"));
  EXPECT_FALSE(IsPlain("x", " "));
  EXPECT_FALSE(IsPlain("x", "a\t"));
}

// The verdict on an interned field is found once.
TEST_F(RespellTest, ValidationRemembersTheVerdict) {
  const Field* odd = interns.Intern("x-bin", "YQ==");
  const Field* plain = interns.Intern("x-bin", "YQ");
  HeaderList list(&interns);
  list.AddInterned(odd);
  EXPECT_EQ(ValidateTrailers(list), kToRespell);
  EXPECT_TRUE(odd->respell);
  EXPECT_FALSE(odd->checked);
  EXPECT_EQ(ValidateTrailers(list), kToRespell);
  HeaderList again = Respell(interns, list, 256).fields;
  EXPECT_EQ(&again[0], plain);
  EXPECT_EQ(ValidateTrailers(again), nullptr);
  EXPECT_TRUE(plain->checked);
  interns.Unref(plain);
}

}  // namespace
}  // namespace sluice::http2
