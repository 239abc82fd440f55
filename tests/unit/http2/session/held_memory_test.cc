// What a peer makes a session hold stands in the process's sum (base/memory_budget.h), and leaves it again.
#include <gtest/gtest.h>

#include "base/memory_budget.h"
#include "http2/hpack/decoder.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using base::MemoryBudget;
using h2::SessionHarness;

constexpr size_t kSessions = 64;

void TrimSpares() {
  base::Block::TrimSpares();
  HeaderList::TrimSpares();
  StreamPool::TrimSpares();
}

// What `frames`, sent to each of kSessions servers, adds to the sum; and that it goes with them. The sum may lack
// kStepBytes of each kind of memory.
int64_t HeldFor(const std::string& frames) {
  TrimSpares();
  const int64_t before = MemoryBudget::held();
  int64_t held = 0;
  {
    std::vector<std::unique_ptr<SessionHarness>> sessions;
    for (size_t i = 0; i < kSessions; ++i) {
      sessions.push_back(std::make_unique<SessionHarness>(Role::kServer));
      sessions.back()->Handshake();
      EXPECT_TRUE(sessions.back()->Feed(frames));
    }
    held = MemoryBudget::held() - before;
  }
  TrimSpares();
  EXPECT_LT(MemoryBudget::held() - before, 3 * MemoryBudget::kStepBytes);
  return held;
}

TEST(HeldMemory, AFrameThatHasNotComeWhole) {
  EXPECT_GT(HeldFor(h2::RawFrame(h2::kHeaders, 0, 1, std::string(16384, 'h')).substr(0, 10)),
            int64_t{kSessions * 16384 * 9 / 10});
}

TEST(HeldMemory, AHeaderBlockThatHasNotComeWhole) {
  std::string frames = h2::RawFrame(h2::kHeaders, 0, 1, std::string(16384, 'h'));
  for (int i = 0; i < 5; ++i) frames += h2::RawFrame(h2::kContinuation, 0, 1, std::string(16384, 'h'));
  EXPECT_GT(HeldFor(frames), int64_t{kSessions * 6 * 16384 * 9 / 10});
}

// They count as what they take, not as what RFC 7541 4.1 says of them.
TEST(HeldMemory, FieldsInHpackTables) {
  constexpr int kDecoders = 500, kFields = 20;
  const int64_t before = MemoryBudget::held();
  {
    InternTable interns;
    {
      std::vector<std::unique_ptr<HpackDecoder>> decoders;
      for (int i = 0; i < kDecoders; ++i) {
        std::string block;
        for (int k = 0; k < kFields; ++k) {
          const std::string value =
              std::string(84, 'v') + std::to_string(10'000'000 + i) + std::to_string(10'000'000 + k);
          block += std::string("\x40\x03x-a") + static_cast<char>(value.size()) +
                   value;  // a new field for the table (6.2.1)
        }
        decoders.push_back(std::make_unique<HpackDecoder>(interns));
        HeaderList list(&interns);
        ASSERT_EQ(decoders.back()->Decode(block, {}, list), DecodeResult::kOk);
      }
      EXPECT_GT(MemoryBudget::held() - before, kDecoders * kFields * (100 + static_cast<int64_t>(sizeof(Field))));
    }
    EXPECT_LT(MemoryBudget::held() - before, 4 * MemoryBudget::kStepBytes);  // and what it keeps for later
  }
  EXPECT_LT(MemoryBudget::held() - before, 2 * MemoryBudget::kStepBytes);
}

TEST(HeldMemory, Streams) {
  std::string frames;
  for (uint32_t i = 0; i < 1000; ++i) frames += h2::Headers(2 * i + 1, h2::Block(h2::GrpcRequest()));
  EXPECT_GT(HeldFor(frames), int64_t{kSessions * 1000 * sizeof(Stream)} - MemoryBudget::kStepBytes);
}

}  // namespace
}  // namespace sluice::http2
