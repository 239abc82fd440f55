// The one spelling of values of bytes: what decodes, what it becomes, and what is refused.
#include "http2/fields/bin_value.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

TEST(BinValue, PaddedAndUnpaddedAreTheSameBytes) {
  for (const char* text : {"YQ", "YQ=="}) {
    EXPECT_EQ(DecodeBin(text), "a") << text;
    EXPECT_EQ(CanonicalBin(text), "YQ") << text;
  }
  EXPECT_EQ(CanonicalBin("YWI="), "YWI");
  EXPECT_EQ(CanonicalBin("YWJj"), "YWJj");
  EXPECT_EQ(CanonicalBin(""), "");
  EXPECT_EQ(DecodeBin("+/8"), "\xfb\xff");
}

// A lenient sender may leave bits behind the last byte; strict receivers end the connection at them.
TEST(BinValue, UnusedBitsAreCleared) {
  EXPECT_EQ(DecodeBin("YR"), "a");
  EXPECT_EQ(CanonicalBin("YR"), "YQ");
  EXPECT_EQ(CanonicalBin("YR=="), "YQ");
  EXPECT_EQ(CanonicalBin("YWJ"), "YWI");
}

TEST(BinValue, OthersDoNotDecode) {
  for (const char* text : {"%%%", "_-8", "Y===", "Y", "=", "==", "====", "YQ=", "YWJj=", "YWJj====", "YQ==YQ==", "Y Q",
                           "YQ\n", "YWJj,ZGVm", "\xff", "YQ==="}) {
    EXPECT_EQ(DecodeBin(text), std::nullopt) << text;
    EXPECT_EQ(CanonicalBin(text), std::nullopt) << text;
    EXPECT_FALSE(CanonicalBin(std::string(text) + "*")) << text;
  }
}

TEST(BinValue, EveryByteComesBack) {
  std::string bytes;
  for (int c = 0; c < 256; ++c) {
    bytes += static_cast<char>(c);
    const std::string text = EncodeBin(bytes);
    EXPECT_EQ(FormOfBin(text), BinForm::kCanonical);
    EXPECT_EQ(DecodeBin(text), bytes);
    EXPECT_EQ(CanonicalBin(text), text);
  }
}

TEST(BinValue, AListIsJudgedByEachOfItsValues) {
  EXPECT_EQ(FormOfBin("YWJj"), BinForm::kCanonical);
  EXPECT_EQ(FormOfBin(""), BinForm::kCanonical);
  for (const char* text : {"YQ==", "YR", "YWJj,ZGVm", "YWJj, ZGVm", "YWJj\t,ZGVm", ",", "YWJj,", " YWJj"}) {
    EXPECT_EQ(FormOfBin(text), BinForm::kOther) << text;
  }
  for (const char* text : {"Y", "%", "YWJj,%", "%,YWJj", "YWJj ZGVm", ",,Y"}) {
    EXPECT_EQ(FormOfBin(text), BinForm::kBroken) << text;
  }
}

TEST(BinValue, MembersAreTakenInOrder) {
  std::string_view list = "YWJj , ,\tZGVm";
  bool more = true;
  EXPECT_EQ(TakeBinMember(&list, &more), "YWJj");
  EXPECT_TRUE(more);
  EXPECT_EQ(TakeBinMember(&list, &more), "");
  EXPECT_TRUE(more);
  EXPECT_EQ(TakeBinMember(&list, &more), "ZGVm");
  EXPECT_FALSE(more);
}

TEST(BinValue, ANameIsOneByItsEnd) {
  EXPECT_TRUE(IsBinName("x-bin"));
  EXPECT_TRUE(IsBinName("-bin"));
  EXPECT_FALSE(IsBinName("bin"));
  EXPECT_FALSE(IsBinName("x-bin-y"));
}

}  // namespace
}  // namespace sluice::http2
