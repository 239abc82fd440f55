// BufferChain: against a string over random operations, and the life of its blocks.
#include "base/buffer_chain.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace sluice::base {
namespace {

std::string Bytes(Random& random, size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>('a' + random.Below(26));
  return out;
}

std::string Gathered(const BufferChain& chain, size_t count, size_t max_bytes = SIZE_MAX) {
  std::vector<iovec> iov(count + 1, iovec{nullptr, 12345});
  size_t filled = chain.Gather(iov.data(), count, max_bytes);
  EXPECT_LE(filled, count);
  EXPECT_EQ(iov[filled].iov_len, 12345u);  // nothing is written beyond what is reported
  std::string out;
  for (size_t i = 0; i < filled; ++i) {
    EXPECT_GT(iov[i].iov_len, 0u);  // an empty entry would end a writev's progress
    out.append(static_cast<const char*>(iov[i].iov_base), iov[i].iov_len);
  }
  return out;
}

TEST(BufferChain, StartsEmpty) {
  BufferChain chain;
  EXPECT_TRUE(chain.empty());
  EXPECT_EQ(Gathered(chain, 4), "");
  chain.Consume(0);
  chain.Clear();
}

TEST(BufferChain, SmallWritesShareOneEntry) {
  BufferChain chain;
  for (int i = 0; i < 100; ++i) chain.Append("0123456789", 10);
  iovec iov[4];
  EXPECT_EQ(chain.Gather(iov, 4), 1u);
  EXPECT_EQ(iov[0].iov_len, 1000u);
}

TEST(BufferChain, LargeSlicesAreLinkedAndSmallOnesCopied) {
  BufferChain chain;
  Slice large = Slice::Copy(std::string(BufferChain::kCopyBelow, 'L'));
  Slice small = Slice::Copy(std::string(BufferChain::kCopyBelow - 1, 's'));
  chain.Append(large);
  chain.Append(small);
  iovec iov[4];
  ASSERT_EQ(chain.Gather(iov, 4), 2u);
  EXPECT_EQ(iov[0].iov_base, large.data());
  EXPECT_NE(iov[1].iov_base, small.data());
}

TEST(BufferChain, WritesAfterALinkedSliceKeepTheOrder) {
  BufferChain chain;
  chain.Append("head", 4);
  chain.Append(Slice::Copy(std::string(2000, 'x')));
  chain.Append("tail", 4);
  EXPECT_EQ(chain.ToString(), "head" + std::string(2000, 'x') + "tail");
}

TEST(BufferChain, ReserveOffersWholeRoomAndCommitTakesPart) {
  BufferChain chain;
  for (size_t bytes : {size_t{1}, size_t{9}, size_t{16000}, BufferChain::kTailBytes, size_t{500}}) {
    uint8_t* at = chain.Reserve(bytes);
    std::memset(at, 'r', bytes);
    chain.Commit(bytes / 2);
  }
  chain.Reserve(100);
  chain.Commit(0);
  EXPECT_EQ(chain.ToString(), std::string(0 + 4 + 8000 + 8192 + 250, 'r'));
}

TEST(BufferChain, LongAppendFillsBlocksUp) {
  BufferChain chain;
  chain.Append("x", 1);
  chain.Append(std::string(3 * BufferChain::kTailBytes - 1, 'y').data(), 3 * BufferChain::kTailBytes - 1);
  iovec iov[8];
  EXPECT_EQ(chain.Gather(iov, 8), 3u);
}

TEST(BufferChain, DrainedChainHoldsNoBlock) {
  size_t before = Block::LiveBytes();
  BufferChain chain;
  for (int i = 0; i < 500; ++i) {
    chain.Append("abc", 3);
    chain.Append(Slice::Copy(std::string(1500, 'b')));
  }
  EXPECT_GT(Block::LiveBytes(), before);
  chain.Consume(chain.size());
  EXPECT_EQ(Block::LiveBytes(), before);
  chain.Append("again", 5);
  EXPECT_EQ(chain.ToString(), "again");
  chain.Clear();
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(BufferChain, ConsumeLetsBlocksGoAsTheyAreWritten) {
  size_t before = Block::LiveBytes();
  BufferChain chain;
  for (int i = 0; i < 200; ++i) chain.Append(Slice::Copy(std::string(4096, 'b')));
  size_t full = Block::LiveBytes() - before;
  chain.Consume(100 * 4096);
  EXPECT_LE(Block::LiveBytes() - before, full / 2);
}

TEST(BufferChain, GatherStopsAtEntriesAndBytes) {
  BufferChain chain;
  for (char c : {'a', 'b', 'c'}) chain.Append(Slice::Copy(std::string(2000, c)));
  EXPECT_EQ(Gathered(chain, 0), "");
  EXPECT_EQ(Gathered(chain, 2).size(), 4000u);
  EXPECT_EQ(Gathered(chain, 9, 0), "");
  EXPECT_EQ(Gathered(chain, 9, 1), "a");
  EXPECT_EQ(Gathered(chain, 9, 2000).size(), 2000u);
  EXPECT_EQ(Gathered(chain, 9, 2001).back(), 'b');
  EXPECT_EQ(Gathered(chain, 9).size(), 6000u);
}

TEST(BufferChainDeathTest, ConsumeBeyondTheEndIsOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  BufferChain chain;
  chain.Append("abc", 3);
  EXPECT_DEATH(chain.Consume(4), "CHECK failed");
}

// Two chains, which share slices with each other and with the test, against strings.
void RunModel(uint64_t seed, int steps) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  size_t before = Block::LiveBytes();
  {
    Random random(seed);
    BufferChain chains[2];
    std::string models[2];
    std::vector<std::pair<Slice, std::string>> shared;
    for (int step = 0; step < steps; ++step) {
      size_t w = random.Below(2);
      BufferChain& chain = chains[w];
      std::string& model = models[w];
      size_t some = random.Below(8) == 0 ? random.Below(40000) : random.Below(1500);
      switch (random.Below(8)) {
        case 0: {
          size_t room = std::min(some, BufferChain::kTailBytes);
          std::string bytes = Bytes(random, random.Below(room + 1));
          uint8_t* at = chain.Reserve(room);
          std::memcpy(at, bytes.data(), bytes.size());
          chain.Commit(bytes.size());
          model += bytes;
          break;
        }
        case 1: {
          std::string bytes = Bytes(random, some);
          chain.Append(bytes.data(), bytes.size());
          model += bytes;
          break;
        }
        case 2: {
          std::string bytes = Bytes(random, some);
          chain.Append(Slice::Copy(bytes));
          model += bytes;
          break;
        }
        case 3:
        case 4: {
          size_t bytes = random.Below(3) == 0 ? model.size() : random.Below(model.size() + 1);
          chain.Consume(bytes);
          model.erase(0, bytes);
          break;
        }
        case 5: {
          std::string bytes = Bytes(random, some);
          shared.emplace_back(Slice::Copy(bytes), bytes);
          chain.Append(shared.back().first);
          model += bytes;
          break;
        }
        case 6: {
          if (shared.empty()) break;
          size_t which = random.Below(shared.size());
          if (random.Below(2) == 0) {
            chain.Append(shared[which].first);
            model += shared[which].second;
          }
          shared.erase(shared.begin() + static_cast<ptrdiff_t>(which));
          break;
        }
        case 7: {
          if (random.Below(20) != 0) break;
          chain.Clear();
          model.clear();
          break;
        }
      }
      ASSERT_EQ(chain.size(), model.size());
      ASSERT_EQ(chain.empty(), model.empty());
      if (step % 16 == 0) {
        ASSERT_EQ(chain.ToString(), model);
        size_t max_bytes = random.Below(model.size() + 10);
        ASSERT_EQ(Gathered(chain, 100000, max_bytes), model.substr(0, max_bytes));
        size_t count = random.Below(5);
        ASSERT_TRUE(model.starts_with(Gathered(chain, count)));
        for (const auto& [slice, bytes] : shared) ASSERT_EQ(slice.view(), bytes);
      }
      if (models[0].size() + models[1].size() > 1000000) {
        for (int i : {0, 1}) {
          chains[i].Consume(models[i].size());
          models[i].clear();
        }
      }
    }
  }
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(BufferChain, BehavesAsAStringOverRandomOperations) {
  for (uint64_t seed = 1; seed <= 10; ++seed) RunModel(seed, 2000);
}

}  // namespace
}  // namespace sluice::base
