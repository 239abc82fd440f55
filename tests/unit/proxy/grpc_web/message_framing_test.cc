// Where messages end in a stream that is split anywhere.
#include "proxy/grpc_web/message_framing.h"

#include <gtest/gtest.h>

#include <string>

#include "support/h2_frames.h"

namespace sluice::proxy::grpc_web {
namespace {

TEST(MessageFraming, IsBetweenMessagesAfterEachOfThem) {
  MessageFraming framing;
  EXPECT_TRUE(framing.between());
  EXPECT_TRUE(framing.Advance(h2::Message("one") + h2::Message("")));
  EXPECT_TRUE(framing.between());
  EXPECT_TRUE(framing.Advance(h2::Message("two") + "\x01"));
  EXPECT_FALSE(framing.between());
}

TEST(MessageFraming, KnowsItByteByByte) {
  const std::string long_message(70'000, 'x');
  const std::string stream = h2::Message("abc") + h2::Message("") + h2::Message(long_message);
  MessageFraming framing;
  size_t ends = 0;
  for (size_t i = 0; i < stream.size(); ++i) {
    ASSERT_TRUE(framing.Advance(stream.substr(i, 1)));
    if (!framing.between()) continue;
    ++ends;
    EXPECT_TRUE(i + 1 == 8 || i + 1 == 13 || i + 1 == stream.size()) << i;
  }
  EXPECT_EQ(ends, 3u);
}

TEST(MessageFraming, AFrameOfTrailersIsNoMessage) {
  MessageFraming framing;
  EXPECT_FALSE(framing.Advance("\x80"));
  MessageFraming compressed;
  EXPECT_FALSE(compressed.Advance(h2::Message("a") + "\x81"));
  MessageFraming inside;  // in a message it is a byte as any
  EXPECT_TRUE(inside.Advance(h2::Message("\x80")));
}

}  // namespace
}  // namespace sluice::proxy::grpc_web
