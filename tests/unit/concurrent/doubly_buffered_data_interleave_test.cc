// DoublyBufferedData: every interleaving of enter, flip and drain for a few small threads (sequential
// consistency only).
//
// Writers sleep without spinning here, so the sleep and its wake are explored too: a lost wake-up leaves the
// writer in Wait for ever, and the explorer stops the test.
#include <gtest/gtest.h>

#include "concurrent/doubly_buffered_data.h"
#include "support/interleave.h"

namespace sluice::concurrent {
namespace {

struct StepSync {
  // The 64-bit fields only tell a thread whether it would wait for itself; stepping there would multiply the schedules.
  template <typename V>
  using Atomic = std::conditional_t<std::is_same_v<V, uint64_t>, std::atomic<V>, interleave::Atomic<V>>;
  using Mutex = std::mutex;
  static bool Asymmetric() { return false; }
  static void LightBarrier() {}
  static void HeavyBarrier() {}
  static constexpr int kSpins = 0;
  static void Wait(const Atomic<uint32_t>& word, uint32_t seen) {
    while (word.load() == seen) interleave::Yield();
  }
  static void Wake(const Atomic<uint32_t>&) {}
};

// Plain fields: one thread runs at a time, so an overlap shows as fields that differ or change.
struct Pair {
  int a = 0, b = 0;
};

struct State {
  explicit State(size_t slots) : data(slots) {}
  DoublyBufferedData<Pair, StepSync> data;
  int published = 0;  // what the last Modify that returned has written

  void Write(int times) {
    for (int i = 0; i < times; ++i) {
      data.Modify([](Pair& pair) {
        ++pair.a;
        interleave::Point();
        ++pair.b;
        return true;
      });
      ++published;
    }
  }
  void Read(size_t slot, int times) const {
    for (int i = 0; i < times; ++i) {
      int floor = published;
      int seen = data.Read(slot, [](const Pair& pair) {
        int a = pair.a;
        interleave::Point();
        EXPECT_EQ(pair.a, a);  // the writer is elsewhere
        EXPECT_EQ(pair.b, a);
        return a;
      });
      EXPECT_GE(seen, floor);  // a read that starts after Modify returned sees its value
    }
  }
};

using Setup = std::function<void(interleave::Run&, std::shared_ptr<State>)>;
uint64_t ExploreAll(size_t slots, int preemptions, int writes, const Setup& setup) {
  auto result = interleave::Explore(
      [&](interleave::Run& run) {
        auto state = std::make_shared<State>(slots);
        run.Thread([=] { state->Write(writes); });
        setup(run, state);
        run.AtEnd([=] {
          state->Read(0, 1);
          EXPECT_EQ(state->published, writes);
        });
      },
      {.preemptions_max = preemptions});
  return result.schedules;
}

// Two writes: a reader that loaded the parity before the first may raise its counter during the second.
TEST(DoublyBufferedDataInterleave, OneReaderAndTwoWrites) {
  EXPECT_GT(ExploreAll(1, 3, 2, [](auto& run, auto state) { run.Thread([=] { state->Read(0, 1); }); }), 1000u);
}

TEST(DoublyBufferedDataInterleave, TwoReadsAndOneWrite) {
  EXPECT_GT(ExploreAll(1, 3, 1, [](auto& run, auto state) { run.Thread([=] { state->Read(0, 2); }); }), 1000u);
}

TEST(DoublyBufferedDataInterleave, TwoReadersInTheirSlots) {
  EXPECT_GT(ExploreAll(2, 2, 1,
                       [](auto& run, auto state) {
                         run.Thread([=] { state->Read(0, 1); });
                         run.Thread([=] { state->Read(1, 1); });
                       }),
            1000u);
}

TEST(DoublyBufferedDataInterleave, TwoReadersInTheSharedSlot) {
  EXPECT_GT(ExploreAll(0, 2, 1,
                       [](auto& run, auto state) {
                         run.Thread([=] { state->Read(0, 1); });
                         run.Thread([=] { state->Read(0, 1); });
                       }),
            1000u);
}

TEST(DoublyBufferedDataInterleave, NestedReads) {
  EXPECT_GT(ExploreAll(1, 3, 1,
                       [](auto& run, auto state) {
                         run.Thread([=] {
                           state->data.Read(0, [&](const Pair& outer) {
                             int a = outer.a;
                             state->Read(0, 1);
                             EXPECT_EQ(outer.a, a);
                             EXPECT_EQ(outer.b, a);
                           });
                         });
                       }),
            1000u);
}

}  // namespace
}  // namespace sluice::concurrent
