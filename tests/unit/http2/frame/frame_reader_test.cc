#include "http2/frame/frame_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/h2_frames.h"

namespace sluice::http2 {
namespace {

using ::testing::ElementsAre;

// Writes down what it is handed.
struct Handler {
  FrameReader& reader;
  std::vector<std::string> log = {};
  std::string data = {};
  uint32_t largest = 1000;
  bool ended = false;

  bool done() const { return ended; }
  void OnBadPreface() {
    ended = true;
    log.push_back("bad preface");
  }
  bool CheckFrameHeader(const FrameHeader& frame) {
    if (frame.length <= largest) return true;
    ended = true;
    log.push_back("too large");
    return false;
  }
  void HandleFrame(const FrameHeader& frame, const uint8_t* payload) {
    log.push_back(std::to_string(static_cast<int>(frame.type)) + " " +
                  std::string(reinterpret_cast<const char*>(payload), frame.length));
  }
  void BeginData(const FrameHeader& frame, uint32_t padding) {
    const uint32_t overhead = frame.has(kFlagPadded) ? 1 : 0;
    log.push_back("data " + std::to_string(frame.length) + " padding " + std::to_string(padding));
    reader.ExpectData(frame.length - overhead - padding, padding);
  }
  void HandleData(const base::Slice& read, size_t at, uint32_t bytes) { data.append(read.view().substr(at, bytes)); }
  void AfterStep() {}
};

const std::string kFrames = h2::Settings() + h2::PaddedData(1, "hello", 3) + h2::Goaway(0, 0, "why") + h2::Data(1, "!");

TEST(FrameReader, HandsOnTheSameWhereverReadsCut) {
  for (size_t cut = 0; cut <= kFrames.size(); ++cut) {
    FrameReader reader(/*preface=*/false);
    Handler handler{reader};
    reader.Feed(base::Slice::Copy(kFrames.substr(0, cut)), handler);
    reader.Feed(base::Slice::Copy(kFrames.substr(cut)), handler);
    EXPECT_THAT(handler.log, ElementsAre("4 ", "data 9 padding 3", "7 " + h2::Big(0, 8) + "why", "data 1 padding 0"))
        << cut;
    EXPECT_EQ(handler.data, "hello!") << cut;
    EXPECT_FALSE(reader.holds_part());
  }
}

TEST(FrameReader, SaysWhetherItHoldsAPartOfAFrame) {
  FrameReader reader(/*preface=*/false);
  Handler handler{reader};
  const std::string frame = h2::Data(1, "hello");
  reader.Feed(base::Slice::Copy(frame.substr(0, 5)), handler);
  EXPECT_TRUE(reader.holds_part());
  reader.Feed(base::Slice::Copy(frame.substr(5, 5)), handler);
  EXPECT_FALSE(reader.holds_part());  // of DATA only the head is kept
  EXPECT_EQ(reader.data_left(), 4u);
}

TEST(FrameReader, TakesThePrefaceByteByByteAndNoOther) {
  const std::string preface = h2::Preface();
  FrameReader reader(/*preface=*/true);
  Handler handler{reader};
  for (char c : preface) {
    EXPECT_TRUE(reader.awaits_preface());
    reader.Feed(base::Slice::Copy(std::string(1, c)), handler);
  }
  EXPECT_FALSE(reader.awaits_preface());
  reader.Feed(base::Slice::Copy(h2::Settings()), handler);
  EXPECT_THAT(handler.log, ElementsAre("4 "));

  FrameReader other(/*preface=*/true);
  Handler refuses{other};
  other.Feed(base::Slice::Copy("GET / HTTP/1.1\r\n"), refuses);
  EXPECT_THAT(refuses.log, ElementsAre("bad preface"));
}

TEST(FrameReader, ReadsNothingBehindTheFrameThatEndsItAll) {
  FrameReader reader(/*preface=*/false);
  Handler handler{reader};
  handler.largest = 4;
  reader.Feed(base::Slice::Copy(h2::Data(1, "four") + h2::Data(1, "fives") + h2::Data(1, "x")), handler);
  EXPECT_THAT(handler.log, ElementsAre("data 4 padding 0", "too large"));
  EXPECT_EQ(handler.data, "four");
}

}  // namespace
}  // namespace sluice::http2
