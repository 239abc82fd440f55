#include "proxy/metadata_key.h"

#include <gtest/gtest.h>

namespace sluice::proxy {
namespace {

using Values = std::vector<std::string>;

std::string KeyOf(const Values& values, Repeated repeated) {
  http2::HeaderList request;
  request.Add("x-other", "o");
  for (const std::string& value : values) {
    request.Add("x-key", value);
    request.Add("x-key-2", "not this");
  }
  std::string scratch;
  const auto key = MetadataKey(request, "x-key", repeated, scratch);
  return key ? std::string(*key) : "none";
}

TEST(MetadataKey, OneValueIsTheKeyWhateverIsSaidOfMore) {
  for (Repeated repeated : {Repeated::kJoined, Repeated::kFirst, Repeated::kLast}) {
    EXPECT_EQ(KeyOf({"a"}, repeated), "a");
    EXPECT_EQ(KeyOf({""}, repeated), "");
    EXPECT_EQ(KeyOf({}, repeated), "none");
  }
}

TEST(MetadataKey, OfSeveralItIsOneOrAllOfThem) {
  EXPECT_EQ(KeyOf({"a", "b", "c"}, Repeated::kJoined), "a,b,c");
  EXPECT_EQ(KeyOf({"a", "b", "c"}, Repeated::kFirst), "a");
  EXPECT_EQ(KeyOf({"a", "b", "c"}, Repeated::kLast), "c");
}

// What a client's requests have in common is passed over where it cannot have the name: of each length of name, with
// the key there, behind it, at both places and at none.
TEST(MetadataKey, TheFieldsInCommonAreLookedAtWhereTheyMayHaveIt) {
  http2::InternTable interns;
  for (size_t length : {1, 4, 5, 63, 64, 65, 69, 200}) {
    const std::string name(length, 'k');
    for (const bool before : {false, true}) {
      for (const bool behind : {false, true}) {
        SCOPED_TRACE(testing::Message() << length << " before " << before << " behind " << behind);
        http2::HeaderList common(&interns), request(&interns);
        common.Add(":path", "/p.S/M");
        common.Add("x-abc", "as long as :path");
        if (before) common.Add(name, "a");
        http2::FieldRun* run = interns.MakeRun(common.begin(), common.size());
        ASSERT_NE(run, nullptr);
        request.AddRun(*run);
        if (behind) request.Add(name, "b");
        ASSERT_EQ(request.run(), run);
        std::string scratch;
        const auto key = MetadataKey(request, name, Repeated::kJoined, scratch);
        EXPECT_EQ(key.value_or("none"), before && behind ? "a,b" : before ? "a" : behind ? "b" : "none");
        interns.UnrefRun(run);
      }
    }
  }
}

TEST(MetadataKey, EmptyValuesAreJoinedToo) {
  EXPECT_EQ(KeyOf({"", "b"}, Repeated::kJoined), ",b");
  EXPECT_EQ(KeyOf({"", "", ""}, Repeated::kJoined), ",,");
  EXPECT_EQ(KeyOf({"a", ""}, Repeated::kJoined), "a,");
}

}  // namespace
}  // namespace sluice::proxy
