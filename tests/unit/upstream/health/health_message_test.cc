// The messages of the health service: what is sent, and answers split at every byte, broken in every way.
#include "upstream/health/health_message.h"

#include <gtest/gtest.h>

#include <string>

#include "support/h2_frames.h"

namespace sluice::upstream {
namespace {

using namespace std::string_literals;

TEST(HealthMessageTest, ARequestNamesItsService) {
  EXPECT_EQ(EncodeHealthRequest(""), "\0\0\0\0\0"s);
  EXPECT_EQ(EncodeHealthRequest("a.B"), "\0\0\0\0\5\x0a\3"s + "a.B");
  const std::string name(300, 'x');
  const std::string long_one = EncodeHealthRequest(name);
  EXPECT_EQ(long_one.substr(0, 8), "\0\0\0\x01\x2f\x0a\xac\x02"s) << "its length is a varint of two bytes";
  EXPECT_EQ(long_one.substr(8), name);
}

TEST(HealthMessageTest, EachStatusIsReadAndALaterOneIsNotServing) {
  const std::pair<std::string, ServingStatus> cases[] = {{"", ServingStatus::kUnknown},
                                                         {"\x08\x00"s, ServingStatus::kUnknown},
                                                         {"\x08\x01", ServingStatus::kServing},
                                                         {"\x08\x02", ServingStatus::kNotServing},
                                                         {"\x08\x03", ServingStatus::kServiceUnknown},
                                                         {"\x08\x04", ServingStatus::kUnknown},
                                                         {"\x08\x81\x80\x80\x80\x10", ServingStatus::kUnknown}};
  for (const auto& [message, status] : cases) {
    HealthMessageReader reader;
    EXPECT_TRUE(reader.Feed(h2::Message(message))) << reader.problem();
    EXPECT_EQ(reader.messages(), 1u);
    EXPECT_EQ(reader.status(), status);
    EXPECT_FALSE(reader.in_message());
  }
}

TEST(HealthMessageTest, MessagesMayBeSplitAtEveryByte) {
  const std::string wire = h2::Message("\x08\x01") + h2::Message("") + h2::Message("\x08\x02");
  for (size_t first = 0; first <= wire.size(); ++first) {
    for (size_t second = first; second <= wire.size(); ++second) {
      HealthMessageReader reader;
      EXPECT_TRUE(reader.Feed(wire.substr(0, first)));
      EXPECT_TRUE(reader.Feed(wire.substr(first, second - first)));
      EXPECT_TRUE(reader.Feed(wire.substr(second)));
      ASSERT_EQ(reader.messages(), 3u) << first << ' ' << second;
      EXPECT_EQ(reader.status(), ServingStatus::kNotServing);
    }
  }
}

// protobuf: what is not known is skipped, whatever its type; the last value counts.
TEST(HealthMessageTest, UnknownFieldsAreSkipped) {
  const std::string message = "\x10\x96\x01"s + "\x19" + std::string(8, 'd') + "\x22\x03xyz" + "\x2d" +
                              std::string(4, 'f') + "\x08\x02\x08\x01";
  HealthMessageReader reader;
  EXPECT_TRUE(reader.Feed(h2::Message(message))) << reader.problem();
  EXPECT_EQ(reader.status(), ServingStatus::kServing);
}

TEST(HealthMessageTest, WhatIsNoResponseIsRefused) {
  const std::string cases[] = {
      "\1\0\0\0\2\x08\1"s,                                              // compressed
      "\0\0\0\x10\1"s,                                                  // 4097 bytes
      "\0\xff\0\0\0"s,                                                  // 4 GB
      h2::Message("\x08"),                                              // a tag without its value
      h2::Message("\x08\x81"),                                          // a varint that does not end
      h2::Message("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),  // of eleven bytes
      h2::Message("\x22\x09xyz"),                                       // a length beyond the message
      h2::Message("\x0b"),                                              // a group
      h2::Message("\x01\x01"),                                          // field 0
      h2::Message("\x19"
                  "1234567"),  // eight bytes, cut off
  };
  for (const std::string& wire : cases) {
    HealthMessageReader reader;
    EXPECT_FALSE(reader.Feed(wire)) << testing::PrintToString(wire);
    EXPECT_FALSE(reader.problem().empty());
    EXPECT_EQ(reader.messages(), 0u);
  }
}

TEST(HealthMessageTest, TheLongestMessageIsTaken) {
  std::string message = "\x22\xfb\x1f"s + std::string(4091, 'x') + "\x08\x01";
  ASSERT_EQ(message.size(), HealthMessageReader::kMessageBytesMax);
  HealthMessageReader reader;
  EXPECT_TRUE(reader.Feed(h2::Message(message))) << reader.problem();
  EXPECT_EQ(reader.status(), ServingStatus::kServing);
}

}  // namespace
}  // namespace sluice::upstream
