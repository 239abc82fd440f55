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
  const CanonicalRequest canonical = Canonicalize(std::move(request), PathRule::kGrpc);
  const auto key = MetadataKey(canonical, "x-key", repeated, scratch);
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

TEST(MetadataKey, AListInOneFieldIsTheSameAsSeveralFields) {
  for (const char* list : {"a,b", "a, b", "a ,\tb"}) {
    EXPECT_EQ(KeyOf({list}, Repeated::kJoined), "a,b");
    EXPECT_EQ(KeyOf({list}, Repeated::kFirst), "a");
    EXPECT_EQ(KeyOf({list}, Repeated::kLast), "b");
    EXPECT_EQ(KeyOf({list, "c"}, Repeated::kJoined), "a,b,c");
  }
}

// Padded or not, in one field or in two: the bytes are the key.
TEST(MetadataKey, AValueOfBytesIsItsBytes) {
  const auto key = [](const Values& values) {
    http2::HeaderList request;
    for (const std::string& value : values) request.Add("x-user-bin", value);
    const CanonicalRequest canonical = Canonicalize(std::move(request), PathRule::kGrpc);
    std::string scratch;
    return std::string(*MetadataKey(canonical, "x-user-bin", Repeated::kJoined, scratch));
  };
  EXPECT_EQ(key({"YWRtaW4="}), "admin");
  EXPECT_EQ(key({"YWRtaW4"}), "admin");
  EXPECT_EQ(key({"YWRtaW4,YQ"}), "admin,a");
  EXPECT_EQ(key({"YWRtaW4=", "YQ=="}), "admin,a");
  EXPECT_EQ(key({"%%%"}), "%%%");
}

TEST(MetadataKey, EmptyValuesAreJoinedToo) {
  EXPECT_EQ(KeyOf({"", "b"}, Repeated::kJoined), ",b");
  EXPECT_EQ(KeyOf({"", "", ""}, Repeated::kJoined), ",,");
  EXPECT_EQ(KeyOf({"a", ""}, Repeated::kJoined), "a,");
}

}  // namespace
}  // namespace sluice::proxy
