// RecordRing: every interleaving of a writer and a reader that sleeps (sequential consistency only), and two real
// threads (for TSan, and for the orders on real memory).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "concurrent/record_ring.h"
#include "support/interleave.h"

namespace sluice::concurrent {
namespace {

struct StepSync {
  template <typename T>
  using Atomic = interleave::Atomic<T>;
  static bool Asymmetric() { return false; }
  static void LightBarrier() {}
  static void HeavyBarrier() {}
};
using StepRing = BasicRecordRing<StepSync>;

struct Party {
  StepRing ring{64};
  interleave::Atomic<uint32_t> bell{0};
  interleave::Atomic<uint32_t> done{0};
  std::vector<uint64_t> taken;
  uint64_t written = 0;

  void Write(uint64_t first, int count) {
    for (int i = 0; i < count; ++i) {
      uint8_t* room = ring.Begin(24);  // two of 32 bytes fill it
      if (room == nullptr) continue;
      const uint64_t words[3] = {first + i, first + i, first + i};
      std::memcpy(room, words, 8);
      interleave::Point();  // a reader that looks now must not see it
      std::memcpy(room + 8, words + 1, 16);
      ++written;
      if (ring.End()) bell.store(1);
    }
  }
  bool Drain() {
    bool any = false;
    while (ring.Take([&](std::span<const uint8_t> record) {
      uint64_t words[3];
      ASSERT_EQ(record.size(), sizeof(words));
      std::memcpy(words, record.data(), 8);
      interleave::Point();  // the writer must not write over it
      std::memcpy(words + 1, record.data() + 8, 16);
      EXPECT_EQ(words[0], words[1]);
      EXPECT_EQ(words[0], words[2]);
      taken.push_back(words[0]);
    })) {
      any = true;
    }
    ring.Free();
    return any;
  }
  // Until `count` were taken, asleep whenever there is nothing: a wake that is lost leaves it in the loop for ever,
  // which the explorer reports.
  void Read(size_t count) {
    while (taken.size() < count) {
      bell.store(0);
      if (Drain()) continue;
      ring.WakeAfter(1);
      if (!ring.Empty()) continue;
      while (bell.load() == 0) interleave::Yield();
    }
  }
};

TEST(RecordRingThreads, EveryInterleavingOfAWriterAndAReaderThatSleeps) {
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto party = std::make_shared<Party>();
        run.Thread([=] { party->Write(1, 2); });
        run.Thread([=] { party->Read(2); });
        run.AtEnd([=] {
          EXPECT_EQ(party->taken, (std::vector<uint64_t>{1, 2}));
          EXPECT_EQ(party->ring.dropped(), 0u);
        });
      },
      {.preemptions_max = 3});
  EXPECT_GT(result.schedules, 500u);
}

TEST(RecordRingThreads, EveryInterleavingOfAWriterThatLapsTheReader) {
  const auto result = interleave::Explore(
      [](interleave::Run& run) {
        auto party = std::make_shared<Party>();
        run.Thread([=] { party->Write(1, 4); });
        run.Thread([=] {
          party->Drain();
          party->Drain();
        });
        run.AtEnd([=] {
          party->Drain();
          EXPECT_EQ(party->taken.size(), party->written);
          EXPECT_EQ(party->written + party->ring.dropped(), 4u);
          EXPECT_TRUE(std::is_sorted(party->taken.begin(), party->taken.end()));
        });
      },
      {.preemptions_max = 3});
  EXPECT_GT(result.schedules, 500u);
}

TEST(RecordRingThreads, WhatTwoThreadsPassIsWholeInOrderAndCounted) {
  constexpr uint64_t kRecords = 300'000;
  RecordRing ring(4096);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 1; i <= kRecords; ++i) {
      const size_t words = 1 + i % 13;
      uint8_t* room = ring.Begin(words * 8);
      if (room == nullptr) continue;
      for (size_t w = 0; w < words; ++w) std::memcpy(room + 8 * w, &i, 8);
      ring.End();
    }
    done.store(true, std::memory_order_release);
  });
  uint64_t last = 0, taken = 0;
  for (bool end = false; !end;) {
    end = done.load(std::memory_order_acquire);
    while (ring.Take([&](std::span<const uint8_t> record) {
      uint64_t first = 0;
      std::memcpy(&first, record.data(), 8);
      ASSERT_GT(first, last);
      ASSERT_EQ(record.size(), (1 + first % 13) * 8);
      for (size_t at = 8; at < record.size(); at += 8) ASSERT_EQ(std::memcmp(record.data(), record.data() + at, 8), 0);
      last = first;
      if (++taken % 7 == 0) ring.Free();
    })) {
    }
    ring.Free();
  }
  writer.join();
  EXPECT_EQ(taken + ring.dropped(), kRecords);
  EXPECT_GT(taken, 0u);
}

// The reader sleeps without a bound after each record it finds: a wake that is lost would leave it asleep.
TEST(RecordRingThreads, NoWakeIsLost) {
  constexpr uint64_t kRecords = 50'000;
  RecordRing ring(1 << 16);
  std::atomic<uint32_t> bell{0};
  std::atomic<uint64_t> taken{0};
  std::thread reader([&] {
    while (taken.load(std::memory_order_relaxed) < kRecords) {
      bell.store(0, std::memory_order_seq_cst);
      bool any = false;
      while (ring.Take([&](std::span<const uint8_t>) { taken.fetch_add(1, std::memory_order_relaxed); })) any = true;
      ring.Free();
      if (any) continue;
      ring.WakeAfter(1);
      RecordRingSync::HeavyBarrier();
      if (ring.Empty()) bell.wait(0, std::memory_order_seq_cst);
    }
  });
  for (uint64_t i = 0; i < kRecords; ++i) {
    while (i - taken.load(std::memory_order_relaxed) > 3) std::this_thread::yield();
    ASSERT_NE(ring.Begin(8), nullptr);
    if (ring.End() && bell.load(std::memory_order_seq_cst) == 0 && bell.exchange(1, std::memory_order_seq_cst) == 0)
      bell.notify_one();
  }
  reader.join();
  EXPECT_EQ(taken.load(), kRecords);
}

}  // namespace
}  // namespace sluice::concurrent
