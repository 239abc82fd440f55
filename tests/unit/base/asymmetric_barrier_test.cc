// AsymmetricBarrier: store-buffering, the one outcome that it must exclude.
#include "base/asymmetric_barrier.h"

#include <gtest/gtest.h>

#include <barrier>
#include <cstdint>
#include <thread>

namespace sluice::base {
namespace {

TEST(AsymmetricBarrier, AnswerDoesNotChange) {
  EXPECT_EQ(AsymmetricBarrier::Available(), AsymmetricBarrier::Available());
  EXPECT_TRUE(!SLUICE_TSAN || !AsymmetricBarrier::Available());
}

TEST(AsymmetricBarrier, OneSideSeesTheOther) {
  if (!AsymmetricBarrier::Available()) GTEST_SKIP() << "membarrier is not available";
  struct alignas(128) Cell {
    std::atomic<uint32_t> value{0};
  };
  Cell x, y;
  uint32_t seen_x = 0, seen_y = 0;
  constexpr int kRounds = 20000;
  std::barrier start(2), end(2);
  std::thread light([&] {
    for (uint32_t i = 1; i <= kRounds; ++i) {
      start.arrive_and_wait();
      x.value.store(i, std::memory_order_relaxed);
      AsymmetricBarrier::Light();
      seen_y = y.value.load(std::memory_order_relaxed);
      end.arrive_and_wait();
    }
  });
  int both_missed = 0;
  for (uint32_t i = 1; i <= kRounds; ++i) {
    start.arrive_and_wait();
    y.value.store(i, std::memory_order_relaxed);
    AsymmetricBarrier::Heavy();
    seen_x = x.value.load(std::memory_order_relaxed);
    end.arrive_and_wait();
    if (seen_x != i && seen_y != i) ++both_missed;
  }
  light.join();
  EXPECT_EQ(both_missed, 0);
}

}  // namespace
}  // namespace sluice::base
