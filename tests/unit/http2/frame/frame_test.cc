#include "http2/frame/frame.h"

#include <gtest/gtest.h>

#include <string>

#include "support/h2_frames.h"

namespace sluice::http2 {
namespace {

TEST(FrameHeader, IsReadAsTheRfcDrawsIt) {
  std::string wire = h2::RawFrame(h2::kHeaders, h2::kEndHeaders | h2::kPadded, 0x7abbccdd, std::string(0x010203, 'x'));
  FrameHeader frame = ReadFrameHeader(reinterpret_cast<const uint8_t*>(wire.data()));
  EXPECT_EQ(frame.length, 0x010203u);
  EXPECT_EQ(frame.type, FrameType::kHeaders);
  EXPECT_TRUE(frame.has(kFlagEndHeaders));
  EXPECT_TRUE(frame.has(kFlagPadded));
  EXPECT_FALSE(frame.has(kFlagEndStream));
  EXPECT_EQ(frame.stream_id, 0x7abbccddu);
}

TEST(FrameHeader, IgnoresTheReservedBit) {
  std::string wire = h2::RawFrame(h2::kPing, 0, 0x80000005, "");
  EXPECT_EQ(ReadFrameHeader(reinterpret_cast<const uint8_t*>(wire.data())).stream_id, 5u);
}

TEST(FrameHeader, IsWrittenAsItIsRead) {
  uint8_t bytes[kFrameHeaderBytes];
  WriteFrameHeader(bytes, 0xfedcba, FrameType::kContinuation, 0xa5, 0x12345678);
  std::string expected = h2::Big(0xfedcba, 3) + h2::Big(9, 1) + h2::Big(0xa5, 1) + h2::Big(0x12345678, 4);
  EXPECT_EQ(std::string(reinterpret_cast<char*>(bytes), sizeof(bytes)), expected);
}

TEST(Numbers, KeepTheirValue) {
  uint8_t bytes[8];
  Write16(bytes, 0xfedc);
  EXPECT_EQ(Read16(bytes), 0xfedcu);
  Write32(bytes, 0xfedcba98);
  EXPECT_EQ(Read32(bytes), 0xfedcba98u);
  Write64(bytes, 0xfedcba9876543210);
  EXPECT_EQ(Read64(bytes), 0xfedcba9876543210u);
}

}  // namespace
}  // namespace sluice::http2
