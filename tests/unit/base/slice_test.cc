// Block and Slice: sharing, cutting, life and accounting, across threads.
#include "base/slice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace sluice::base {
namespace {

TEST(Slice, CopyHoldsTheBytesAndAloneItsBlock) {
  size_t before = Block::LiveBytes();
  std::string text = "some bytes";
  {
    Slice slice = Slice::Copy(text);
    text[0] = 'X';
    EXPECT_EQ(slice.view(), "some bytes");
    EXPECT_GT(Block::LiveBytes(), before);
  }
  EXPECT_EQ(Block::LiveBytes(), before);
  EXPECT_TRUE(Slice::Copy("").empty());
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(Slice, StaticHasNoBlock) {
  size_t before = Block::LiveBytes();
  Slice slice = Slice::Static("literal");
  Slice part = slice.Sub(2, 3);
  EXPECT_EQ(part.view(), "ter");
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(Slice, PartsKeepTheBlockAliveAndNothingElseDoes) {
  size_t before = Block::LiveBytes();
  Slice part;
  {
    Slice whole = Slice::Copy("0123456789");
    part = whole.Sub(3, 4);
    EXPECT_EQ(part.data(), whole.data() + 3);  // no byte was copied
  }
  EXPECT_GT(Block::LiveBytes(), before);
  EXPECT_EQ(part.view(), "3456");
  part = Slice();
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(Slice, UniqueTellsWhetherTheLastReferenceIsOurs) {
  Block* block = Block::New(100);
  EXPECT_TRUE(block->Unique());
  {
    Slice slice(block, block->data(), 10);
    EXPECT_FALSE(block->Unique());
    Slice moved = std::move(slice);
    EXPECT_FALSE(block->Unique());
    EXPECT_TRUE(slice.empty());  // NOLINT: a moved-from slice is empty, by contract
  }
  EXPECT_TRUE(block->Unique());
  block->Unref();
}

TEST(Slice, TakeFrontCutsWithoutCopying) {
  Slice slice = Slice::Copy("headtail");
  const uint8_t* start = slice.data();
  Slice head = slice.TakeFront(4);
  EXPECT_EQ(head.view(), "head");
  EXPECT_EQ(head.data(), start);
  EXPECT_EQ(slice.view(), "tail");
  Slice rest = slice.TakeFront(4);
  EXPECT_TRUE(slice.empty());
  EXPECT_TRUE(slice.TakeFront(0).empty());
  EXPECT_EQ(rest.view(), "tail");
}

TEST(Slice, AssignmentToItselfAndOverOthersCountsRight) {
  size_t before = Block::LiveBytes();
  {
    Slice a = Slice::Copy("a"), b = Slice::Copy("b");
    Slice& alias = a;
    a = alias;
    EXPECT_EQ(a.view(), "a");
    a = std::move(alias);
    EXPECT_EQ(a.view(), "a");
    a = b;
    EXPECT_EQ(a.data(), b.data());
    b = Slice();
    EXPECT_EQ(a.view(), "b");
  }
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(Block, HasAtLeastTheCapacityAskedForAndWastesLessThanHalf) {
  for (size_t capacity :
       {size_t{1}, size_t{100}, size_t{2048}, size_t{2049}, size_t{4096}, size_t{4097}, size_t{16384}, size_t{16385},
        size_t{40000}, size_t{65536}, size_t{65537}, size_t{262144}, size_t{262145}, size_t{1} << 20}) {
    size_t before = Block::LiveBytes();
    Block* block = Block::New(capacity);
    EXPECT_GE(block->capacity(), capacity);
    EXPECT_LT(block->capacity(), 2 * capacity + 1);
    EXPECT_EQ(Block::LiveBytes() - before, block->capacity() + sizeof(Block));
    std::memset(block->data(), 0xab, block->capacity());  // all of it is ours; ASan agrees
    block->Unref();
    EXPECT_EQ(Block::LiveBytes(), before);
  }
}

TEST(Block, FreeListGivesTheSameMemoryBack) {
  Block* first = Block::New(16384);
  void* memory = first;
  first->Unref();
  Block* second = Block::New(10000);  // the same class
  EXPECT_EQ(static_cast<void*>(second), memory);
  EXPECT_TRUE(second->Unique());
  second->Unref();
}

TEST(Block, FreeListsAreBounded) {
  size_t before = Block::LiveBytes();
  std::vector<Block*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(Block::New(4096));
  for (Block* block : blocks) block->Unref();  // those beyond the list go back to malloc; LSan sees what does not
  EXPECT_EQ(Block::LiveBytes(), before);
}

TEST(Block, LiveBytesCountsOverThreadsThatComeAndGo) {
  size_t before = Block::LiveBytes();
  Slice from_other;
  Slice to_other = Slice::Copy(std::string(5000, 'x'));
  std::thread([&] {
    from_other = Slice::Copy(std::string(20000, 'y'));
    to_other = Slice();  // allocated there, freed here
  }).join();
  EXPECT_EQ(Block::LiveBytes() - before, 20000 + sizeof(Block));
  from_other = Slice();
  EXPECT_EQ(Block::LiveBytes(), before);
}

// Slices of one block are dropped on several threads while the first holder asks whether it is alone again and writes.
TEST(Block, ReuseAfterUniqueIsOrderedAfterTheReadsOfOthers) {
  Block* block = Block::New(64);
  for (int round = 0; round < 300; ++round) {
    std::memset(block->data(), round & 0xff, 64);
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([slice = Slice(block, block->data(), 64), round]() mutable {
        for (uint8_t byte : std::vector<uint8_t>(slice.data(), slice.data() + slice.size()))
          ASSERT_EQ(byte, round & 0xff);
        slice = Slice();
      });
    }
    while (!block->Unique()) std::this_thread::yield();
    std::memset(block->data(), 0xee, 64);  // a race here is what TSan looks for
    for (std::thread& reader : readers) reader.join();
  }
  block->Unref();
}

TEST(SliceDeathTest, CutsBeyondTheEndAreOurBugInDebugBuilds) {
#ifndef NDEBUG
  Slice slice = Slice::Copy("abc");
  EXPECT_DEATH(slice.Sub(2, 2), "CHECK failed");
  EXPECT_DEATH(slice.RemovePrefix(4), "CHECK failed");
#else
  GTEST_SKIP() << "DCHECK is off";
#endif
}

TEST(Slice, UnpinnedCopiesASliceThatIsSmallAgainstItsBlock) {
  Block* block = Block::New(65536);
  Slice small(block, block->data(), 300);
  Slice large(block, block->data(), 8192);
  block->Unref();
  Slice kept = std::move(small).Unpinned();
  EXPECT_NE(kept.data(), large.data());
  EXPECT_EQ(kept.size(), 300u);
  const uint8_t* at = large.data();
  EXPECT_EQ(std::move(large).Unpinned().data(), at);
  Slice own = Slice::Copy("its own block");
  at = own.data();
  EXPECT_EQ(std::move(own).Unpinned().data(), at);
}

}  // namespace
}  // namespace sluice::base
