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

TEST(MetadataKey, EmptyValuesAreJoinedToo) {
  EXPECT_EQ(KeyOf({"", "b"}, Repeated::kJoined), ",b");
  EXPECT_EQ(KeyOf({"", "", ""}, Repeated::kJoined), ",,");
  EXPECT_EQ(KeyOf({"a", ""}, Repeated::kJoined), "a,");
}

}  // namespace
}  // namespace sluice::proxy
