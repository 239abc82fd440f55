#include "concurrent/record_ring.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace sluice::concurrent {
namespace {

bool Write(RecordRing& ring, std::string_view text) {
  uint8_t* room = ring.Begin(text.size());
  if (room == nullptr) return false;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(room) % RecordRing::kAlign, 0u);
  std::memcpy(room, text.data(), text.size());
  ring.End();
  return true;
}

std::string TakeOne(RecordRing& ring) {
  std::string out = "(none)";
  ring.Take([&](std::span<const uint8_t> record) { out.assign(record.begin(), record.end()); });
  return out;
}

TEST(RecordRing, RecordsComeOutWholeAndInOrder) {
  RecordRing ring(256);
  EXPECT_EQ(TakeOne(ring), "(none)");
  for (const char* text : {"one", "", "three is longer than a word"}) EXPECT_TRUE(Write(ring, text));
  EXPECT_EQ(TakeOne(ring), "one");
  EXPECT_EQ(TakeOne(ring), "");
  EXPECT_EQ(TakeOne(ring), "three is longer than a word");
  EXPECT_EQ(TakeOne(ring), "(none)");
}

TEST(RecordRing, ARecordIsNotThereBeforeItsEnd) {
  RecordRing ring(256);
  ASSERT_NE(ring.Begin(8), nullptr);
  EXPECT_TRUE(ring.Empty());
  EXPECT_EQ(TakeOne(ring), "(none)");
  ASSERT_NE(ring.Begin(3), nullptr);  // instead of the first
  ring.End();
  EXPECT_FALSE(ring.Empty());
  EXPECT_EQ(TakeOne(ring).size(), 3u);
}

TEST(RecordRing, WhatHasNoRoomIsCountedAndRoomIsThereOnceFreed) {
  RecordRing ring(64);
  EXPECT_TRUE(Write(ring, "12345678"));  // 16 bytes each, with its size
  EXPECT_TRUE(Write(ring, "2"));
  EXPECT_TRUE(Write(ring, "3"));
  EXPECT_TRUE(Write(ring, "4"));
  EXPECT_FALSE(Write(ring, ""));
  EXPECT_FALSE(Write(ring, "lost"));
  EXPECT_EQ(ring.dropped(), 2u);
  EXPECT_EQ(TakeOne(ring), "12345678");
  EXPECT_FALSE(Write(ring, "not freed"));
  EXPECT_EQ(ring.dropped(), 3u);
  ring.Free();
  EXPECT_TRUE(Write(ring, "5"));
  for (const char* text : {"2", "3", "4", "5", "(none)"}) EXPECT_EQ(TakeOne(ring), text);
  EXPECT_EQ(ring.dropped(), 3u);
}

TEST(RecordRing, TheLargestRecordHasRoomWhereverItFalls) {
  for (size_t first = 0; first <= 56; ++first) {
    RecordRing ring(128);
    const std::string largest(ring.record_bytes_max(), 'x');
    ASSERT_TRUE(Write(ring, std::string(first, 'a')));
    EXPECT_EQ(TakeOne(ring).size(), first);
    ring.Free();
    ASSERT_TRUE(Write(ring, largest)) << first;
    EXPECT_EQ(TakeOne(ring), largest);
    ring.Free();
  }
}

TEST(RecordRing, TheReaderIsToBeWokenFromTheFillItHasAskedFor) {
  RecordRing ring(1024);
  ring.WakeAfter(32);
  auto end = [&] {
    EXPECT_NE(ring.Begin(8), nullptr);
    return ring.End();
  };
  EXPECT_FALSE(end());
  EXPECT_TRUE(end());
  EXPECT_TRUE(end());  // until it has been heard
  while (TakeOne(ring) != "(none)") {
  }
  ring.Free();
  ring.WakeAfter(1);
  EXPECT_TRUE(end());
}

// Beside a queue of strings that counts bytes as the ring does.
TEST(RecordRing, ARandomRunIsThatOfTheModel) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const size_t capacity = size_t{64} << (random() % 5);
    RecordRing ring(capacity);
    std::deque<std::string> model;
    uint64_t tail = 0, head = 0, read = 0, dropped = 0;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2 == 0) {
        std::string text(random() % (capacity / 2), static_cast<char>('a' + step % 26));
        const uint64_t need = 8 + (text.size() + 7) / 8 * 8;
        const uint64_t to_end = capacity - tail % capacity;
        const uint64_t whole = need > to_end ? to_end + need : need;
        const bool fits = tail + whole - head <= capacity;
        ASSERT_EQ(Write(ring, text), fits) << "seed " << seed << " step " << step;
        if (fits) {
          tail += whole;
          model.push_back(std::move(text));
        } else {
          ++dropped;
        }
      } else if (random() % 3 != 0) {
        const std::string expected = model.empty() ? "(none)" : model.front();
        ASSERT_EQ(TakeOne(ring), expected) << "seed " << seed << " step " << step;
        if (model.empty()) continue;
        model.pop_front();
        const uint64_t need = 8 + (expected.size() + 7) / 8 * 8;
        if (need > capacity - read % capacity) read += capacity - read % capacity;
        read += need;
      } else {
        ring.Free();
        head = read;
      }
      ASSERT_EQ(ring.dropped(), dropped);
      ASSERT_EQ(ring.Empty(), model.empty());
    }
  }
}

}  // namespace
}  // namespace sluice::concurrent
