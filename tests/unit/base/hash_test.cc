// Hash and Random: values that other files and other proxies depend on, and enough mixing for what they are used for.
#include "base/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace sluice::base {
namespace {

// Never edit: rings, digests and key hashes of a fleet depend on them.
TEST(Hash, KnownValuesNeverChange) {
  EXPECT_EQ(Hash64(""), 0x2d06800538d394c2u);
  EXPECT_EQ(Hash64("a"), 0xe6c632b61e964e1fu);
  EXPECT_EQ(Hash64("10.0.0.1:50051"), 0x6833d4a80e0b9814u);
  EXPECT_EQ(Hash64("10.0.0.1:50051", 1), 0x7e398a28bf86915au);
  EXPECT_EQ(Hash64(std::string(100, 'x')), 0xc90984ffdf50ce42u);
  EXPECT_EQ(Hash64(std::string(1000, 'x'), 42), 0xcb10f5998c4773ffu);
  EXPECT_EQ(Hash64(uint64_t{0}, 0), 0xc77b3abb6f87acd9u);
  EXPECT_EQ(Hash64(uint64_t{1}, 0), 0x2fbc593564db792eu);
  EXPECT_EQ(Hash64(UINT64_MAX, 7), 0x3ea937a3184e65c1u);
}

// XXH64 as its authors publish it, and as Envoy and gRPC expect it.
TEST(Hash, XxHash64IsTheOneOfOthers) {
  EXPECT_EQ(XxHash64(""), 0xef46db3751d8e999u);
  EXPECT_EQ(XxHash64("a"), 0xd24ec4f1a98c6e5bu);
  EXPECT_EQ(XxHash64("abc"), 0x44bc2cf5ad770999u);
  EXPECT_EQ(XxHash64(std::string(100, 'x')), 0x92f0de5a88a3c094u);
}

TEST(Hash, EveryLengthAndSeedGivesAnotherValue) {
  std::set<uint64_t> seen;
  std::string bytes;
  for (int length = 0; length < 300; ++length, bytes += 'a') {
    EXPECT_TRUE(seen.insert(Hash64(bytes)).second);
    EXPECT_TRUE(seen.insert(Hash64(bytes, 1)).second);
  }
}

TEST(Hash, ASecretHashIsAFunctionOfItsBytesAndOfItsOwnSecret) {
  const SecretHash hash, other;
  std::set<std::pair<uint64_t, uint64_t>> seen;
  std::string bytes;
  for (int length = 0; length < 300; ++length, bytes += 'a') {
    const Hash128 value = hash(bytes);
    EXPECT_EQ(value, hash(std::string(bytes)));
    EXPECT_TRUE(seen.insert({value.hi, value.lo}).second);
    EXPECT_NE(value, other(bytes));
  }
}

TEST(Hash, OneBitChangesAboutHalfOfTheBits) {
  for (int bit = 0; bit < 64; ++bit) {
    int changed = 0;
    for (uint64_t i = 0; i < 100; ++i) changed += std::popcount(Hash64(i, 7) ^ Hash64(i ^ uint64_t{1} << bit, 7));
    EXPECT_GT(changed, 2900) << bit;
    EXPECT_LT(changed, 3500) << bit;
  }
}

TEST(Random, KnownSequenceNeverChanges) {
  Random random(42);
  EXPECT_EQ(random.Next(), 0xbdd732262feb6e95u);
  EXPECT_EQ(random.Next(), 0x28efe333b266f103u);
  EXPECT_EQ(random.Next(), 0x47526757130f9f52u);
}

TEST(Random, BelowStaysBelowAndReachesAll) {
  Random random(3);
  EXPECT_EQ(random.Below(0), 0u);
  EXPECT_EQ(random.Below(1), 0u);
  std::vector<int> counts(10, 0);
  for (int i = 0; i < 10000; ++i) ++counts[random.Below(10)];
  for (int count : counts) EXPECT_NEAR(count, 1000, 150);
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.Below((uint64_t{1} << 63) + 1), (uint64_t{1} << 63) + 1);
}

TEST(Random, UnitIsBelowOneAndEven) {
  Random random(4);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    double unit = random.Unit();
    ASSERT_GE(unit, 0.0);
    ASSERT_LT(unit, 1.0);
    sum += unit;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.02);
}

}  // namespace
}  // namespace sluice::base
