// LastRecords: what is kept, and that no reader sees a record that is half one and half another (for TSan, too).
#include "concurrent/last_records.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace sluice::concurrent {
namespace {

std::vector<uint8_t> Record(uint64_t number, size_t words) {
  std::vector<uint64_t> content(words, number);
  const auto* bytes = reinterpret_cast<const uint8_t*>(content.data());
  return {bytes, bytes + words * sizeof(uint64_t)};
}

std::vector<uint64_t> Numbers(const LastRecords& records) {
  std::vector<uint64_t> out;
  records.Read([&](std::span<const uint8_t> record) {
    ASSERT_GE(record.size(), sizeof(uint64_t));
    out.push_back(*reinterpret_cast<const uint64_t*>(record.data()));
  });
  return out;
}

TEST(LastRecords, KeepsTheLastOnesInOrder) {
  LastRecords records(3, 64);
  EXPECT_TRUE(Numbers(records).empty());
  for (uint64_t number = 1; number <= 2; ++number) records.Write(Record(number, 2));
  EXPECT_EQ(Numbers(records), (std::vector<uint64_t>{1, 2}));
  for (uint64_t number = 3; number <= 8; ++number) records.Write(Record(number, 1 + number % 8));
  EXPECT_EQ(Numbers(records), (std::vector<uint64_t>{6, 7, 8}));
  EXPECT_EQ(records.written(), 8u);
}

TEST(LastRecords, ARecordIsWholeWhateverItsSize) {
  LastRecords records(1, 21);
  EXPECT_EQ(records.bytes_max(), 24u);
  for (size_t size = 0; size <= 24; ++size) {
    std::vector<uint8_t> written(size);
    for (size_t i = 0; i < size; ++i) written[i] = static_cast<uint8_t>(size * 31 + i);
    records.Write(written);
    std::vector<uint8_t> read(99);
    records.Read([&](std::span<const uint8_t> record) { read.assign(record.begin(), record.end()); });
    EXPECT_EQ(read, written) << size;
  }
}

TEST(LastRecords, NoneAreKeptWhereNoneAreWanted) {
  LastRecords records(0, 64);
  records.Write(Record(1, 1));
  EXPECT_EQ(records.written(), 0u);
  EXPECT_TRUE(Numbers(records).empty());
}

// All words of a record have its number, and its size follows from it.
TEST(LastRecords, AReaderSeesOnlyWholeRecordsWhileTheWriterGoesOn) {
  constexpr uint64_t kRecords = 60'000;
  constexpr size_t kWords = 40;
  const auto words_of = [](uint64_t number) { return 1 + number * 7 % kWords; };
  LastRecords records(4, kWords * sizeof(uint64_t));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  std::atomic<uint64_t> seen{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      bool last = false;
      while (!last) {
        last = done.load(std::memory_order_acquire);
        uint64_t before = 0;
        records.Read([&](std::span<const uint8_t> record) {
          const auto* content = reinterpret_cast<const uint64_t*>(record.data());
          ASSERT_EQ(record.size(), words_of(content[0]) * sizeof(uint64_t));
          for (size_t w = 0; w < record.size() / sizeof(uint64_t); ++w) ASSERT_EQ(content[w], content[0]);
          ASSERT_GT(content[0], before);
          before = content[0];
          seen.fetch_add(1, std::memory_order_relaxed);
        });
      }
    });
  }
  for (uint64_t number = 1; number <= kRecords; ++number) records.Write(Record(number, words_of(number)));
  done.store(true, std::memory_order_release);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(Numbers(records), (std::vector<uint64_t>{kRecords - 3, kRecords - 2, kRecords - 1, kRecords}));
  EXPECT_GE(seen.load(), 8u);  // each reader looked once more when all was written
}

}  // namespace
}  // namespace sluice::concurrent
