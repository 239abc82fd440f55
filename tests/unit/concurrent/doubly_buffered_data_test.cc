// DoublyBufferedData: the contract of one thread, failing writers, and readers beside a writer at full speed.
#include "concurrent/doubly_buffered_data.h"

#include <gtest/gtest.h>

#include <coroutine>
#include <deque>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sluice::concurrent {
namespace {

int Get(const DoublyBufferedData<int>& data, size_t slot = 0) {
  return data.Read(slot, [](const int& value) { return value; });
}

// A SystemSync that never uses membarrier: the fallback, on machines that would not need it.
struct FallbackSync : SystemSync {
  static bool Asymmetric() { return false; }
};

TEST(DoublyBufferedData, ReadSeesTheInitialValueInEverySlot) {
  DoublyBufferedData<int> data(3, 7);
  for (size_t slot = 0; slot <= data.shared_slot(); ++slot) EXPECT_EQ(Get(data, slot), 7);
  EXPECT_EQ(data.shared_slot(), 3u);
}

TEST(DoublyBufferedData, PublishReplacesBothInstances) {
  DoublyBufferedData<int> data(1, 0);
  for (int i = 1; i <= 5; ++i) {
    data.Publish(i);
    EXPECT_EQ(Get(data), i);
  }
}

TEST(DoublyBufferedData, ModifyRunsOncePerInstance) {
  DoublyBufferedData<int> data(1, 0);
  int runs = 0;
  for (int i = 1; i <= 4; ++i) {
    EXPECT_TRUE(data.Modify([&](int& value) {
      ++runs;
      ++value;
      return true;
    }));
    EXPECT_EQ(Get(data), i);
  }
  EXPECT_EQ(runs, 8);
}

TEST(DoublyBufferedData, ModifyThatRefusesLeavesValueAndAddressAlone) {
  DoublyBufferedData<int> data(1, 3);
  auto address = [](const int& value) { return reinterpret_cast<uintptr_t>(&value); };
  uintptr_t before = data.Read(0, address);
  EXPECT_FALSE(data.Modify([](int&) { return false; }));
  EXPECT_EQ(data.Read(0, address), before);
  EXPECT_EQ(Get(data), 3);
  data.Publish(4);
  EXPECT_NE(data.Read(0, address), before);
}

TEST(DoublyBufferedData, ModifyFromFrontRunsOnceAndSharesWhatItAllocates) {
  DoublyBufferedData<std::shared_ptr<int>> data(1, std::make_shared<int>(1));
  int runs = 0;
  EXPECT_TRUE(data.ModifyFromFront([&](std::shared_ptr<int>& back, const std::shared_ptr<int>& front) {
    ++runs;
    back = std::make_shared<int>(*front + 1);
    return true;
  }));
  EXPECT_EQ(runs, 1);
  auto copy = [](const std::shared_ptr<int>& value) { return value; };
  std::shared_ptr<int> first = data.Read(0, copy);
  EXPECT_EQ(*first, 2);
  EXPECT_EQ(first.use_count(), 3);  // ours and one in each instance
  EXPECT_FALSE(data.ModifyFromFront([](auto&, const auto&) { return false; }));
  EXPECT_EQ(data.Read(0, copy), first);
}

TEST(DoublyBufferedData, PublishLetsGoOfTheOldValueBeforeItReturns) {
  auto old = std::make_shared<int>(1);
  DoublyBufferedData<std::shared_ptr<int>> data(2, old);
  EXPECT_EQ(old.use_count(), 3);
  data.Publish(std::make_shared<int>(2));
  EXPECT_EQ(old.use_count(), 1);
}

TEST(DoublyBufferedData, ReadsNestInOneSlot) {
  DoublyBufferedData<int> data(1, 5);
  for (size_t slot : {size_t{0}, data.shared_slot()}) {
    int sum = data.Read(
        slot, [&](const int& outer) { return outer + data.Read(slot, [](const int& inner) { return inner; }); });
    EXPECT_EQ(sum, 10);
  }
  data.Publish(6);  // all counters are back at zero, or this would wait for ever
  EXPECT_EQ(Get(data), 6);
}

TEST(DoublyBufferedData, ReadThatThrowsLeavesItsSlot) {
  DoublyBufferedData<int> data(1, 5);
  for (size_t slot : {size_t{0}, data.shared_slot()}) {
    EXPECT_THROW(data.Read(slot, [](const int&) { throw std::runtime_error("read"); }), std::runtime_error);
  }
  data.Publish(6);
  EXPECT_EQ(Get(data), 6);
}

TEST(DoublyBufferedData, WritersMayReadInsideOfTheirFunction) {
  DoublyBufferedData<int> data(1, 5);
  EXPECT_TRUE(data.ModifyFromFront([&](int& back, const int& front) {
    back = front + data.Read(data.shared_slot(), [](const int& value) { return value; });
    return true;
  }));
  EXPECT_EQ(Get(data), 10);
}

using DoublyBufferedDataDeathTest = testing::Test;

TEST(DoublyBufferedDataDeathTest, WriteInsideOfAReadIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  DoublyBufferedData<int> data(2, 5);
  for (size_t slot : {size_t{1}, data.shared_slot()}) {
    EXPECT_DEATH(data.Read(slot, [&](const int&) { data.Publish(6); }), "CHECK failed");
    // An outer read is found below an inner one of other data.
    DoublyBufferedData<int> other(2, 1);
    EXPECT_DEATH(data.Read(slot, [&](const int&) { other.Read(slot, [&](const int&) { data.Publish(6); }); }), "CHECK");
  }
  data.Read(1, [](const int&) {});
  data.Publish(7);  // outside it is allowed
}

TEST(DoublyBufferedDataDeathTest, WriteInsideOfAWriteIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  DoublyBufferedData<int> data(1, 5);
  EXPECT_DEATH(data.Modify([&](int&) {
    data.Publish(6);
    return true;
  }),
               "CHECK failed");
}

TEST(DoublyBufferedData, WriteInsideOfAReadOfOtherDataIsAllowed) {
  DoublyBufferedData<int> data(1, 5), other(1, 1);
  data.Read(data.shared_slot(), [&](const int& value) { other.Publish(value); });
  data.Read(0, [&](const int& value) { other.Publish(value + 1); });
  EXPECT_EQ(Get(other), 6);
}

// What the compiler refuses, as values.
struct FakeTask {
  struct Awaiter {
    bool await_ready() { return true; }
    void await_suspend(std::coroutine_handle<>) {}
    void await_resume() {}
  };
  Awaiter operator co_await() { return {}; }
};
struct FreeTask {};
[[maybe_unused]] FakeTask::Awaiter operator co_await(FreeTask) { return {}; }
static_assert(dbd_internal::Awaitable<FakeTask>);
static_assert(dbd_internal::Awaitable<FakeTask::Awaiter>);
static_assert(dbd_internal::Awaitable<FreeTask>);
static_assert(!dbd_internal::Awaitable<int>);
static_assert(!dbd_internal::Awaitable<std::shared_ptr<int>>);
static_assert(dbd_internal::Borrowed<const int&>);
static_assert(dbd_internal::Borrowed<const int*>);
static_assert(dbd_internal::Borrowed<std::string_view>);
static_assert(dbd_internal::Borrowed<std::span<const int>>);
static_assert(!dbd_internal::Borrowed<std::string>);
static_assert(!dbd_internal::Borrowed<std::vector<int>>);
static_assert(!dbd_internal::Borrowed<std::shared_ptr<int>>);
static_assert(!dbd_internal::Borrowed<void>);

// A value whose copies can be told to throw.
struct Fragile {
  int a = 0, b = 0;
  static inline int throw_in = 0;  // the n-th copy assignment from now on throws; 0: none
  Fragile() = default;
  Fragile(int value) : a(value), b(value) {}
  Fragile(const Fragile&) = default;
  Fragile& operator=(const Fragile& other) {
    a = other.a;
    if (throw_in > 0 && --throw_in == 0) throw std::runtime_error("copy");  // a is changed, b is not
    b = other.b;
    return *this;
  }
};
void ExpectFragile(const DoublyBufferedData<Fragile>& data, int value) {
  data.Read(0, [&](const Fragile& fragile) {
    EXPECT_EQ(fragile.a, value);
    EXPECT_EQ(fragile.b, value);
  });
}
bool Increment(Fragile& value) {
  ++value.a;
  ++value.b;
  return true;
}

TEST(DoublyBufferedData, FirstRunThatThrowsPublishesNothing) {
  DoublyBufferedData<Fragile> data(1, 1);
  auto half = [](Fragile& value) -> bool {
    ++value.a;
    throw std::runtime_error("first");
  };
  EXPECT_THROW(data.Modify(half), std::runtime_error);
  ExpectFragile(data, 1);
  EXPECT_TRUE(data.Modify(Increment));  // the back was repaired: both instances go on from 1
  ExpectFragile(data, 2);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 3);
}

TEST(DoublyBufferedData, FirstRunThatThrowsWithAFailedRepairIsRepairedByTheNextWriter) {
  DoublyBufferedData<Fragile> data(1, 1);
  Fragile::throw_in = 1;  // the repair
  EXPECT_THROW(data.Modify([](Fragile& value) -> bool {
    value.a = 100;
    throw std::runtime_error("first");
  }),
               std::runtime_error);
  ExpectFragile(data, 1);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 2);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 3);
}

TEST(DoublyBufferedData, StaleBackThatCannotBeRepairedFailsTheNextWriterAndIsKept) {
  DoublyBufferedData<Fragile> data(1, 1);
  auto thrower = [](Fragile& value) -> bool {
    value.a = 100;
    throw std::runtime_error("first");
  };
  Fragile::throw_in = 1;
  EXPECT_THROW(data.Modify(thrower), std::runtime_error);
  Fragile::throw_in = 1;
  EXPECT_THROW(data.Modify(Increment), std::runtime_error);
  ExpectFragile(data, 1);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 2);
}

TEST(DoublyBufferedData, SecondRunThatThrowsIsASuccessAndBothInstancesAgree) {
  for (bool repair_fails : {false, true}) {
    DoublyBufferedData<Fragile> data(1, 1);
    int runs = 0;
    Fragile::throw_in = repair_fails ? 1 : 0;
    EXPECT_TRUE(data.Modify([&](Fragile& value) {
      ++value.a;
      if (++runs == 2) throw std::runtime_error("second");
      ++value.b;
      return true;
    }));
    ExpectFragile(data, 2);
    EXPECT_TRUE(data.Modify(Increment));
    ExpectFragile(data, 3);
    EXPECT_TRUE(data.Modify(Increment));
    ExpectFragile(data, 4);
  }
}

TEST(DoublyBufferedData, PublishWhoseCopyThrowsPublishesNothing) {
  DoublyBufferedData<Fragile> data(1, 1);
  Fragile::throw_in = 1;
  EXPECT_THROW(data.Publish(5), std::runtime_error);
  ExpectFragile(data, 1);
  data.Publish(6);
  ExpectFragile(data, 6);
  Fragile::throw_in = 2;  // the second instance
  data.Publish(7);
  ExpectFragile(data, 7);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 8);
  EXPECT_TRUE(data.Modify(Increment));
  ExpectFragile(data, 9);
}

// Two fields that are equal whenever no write is under way.
struct Pair {
  uint64_t a = 0, b = 0;
  bool operator==(const Pair&) const = default;
};

template <typename Sync>
void ReadBesideAWriter(uint64_t writes) {
  constexpr size_t kWorkers = 2, kOthers = 2;
  DoublyBufferedData<Pair, Sync> data(kWorkers);
  std::atomic<uint64_t> published{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (size_t r = 0; r < kWorkers + kOthers; ++r) {
    readers.emplace_back([&, slot = std::min(r, data.shared_slot())] {
      uint64_t last = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        uint64_t floor = published.load(std::memory_order_acquire);
        uint64_t seen = data.Read(slot, [&](const Pair& pair) {
          uint64_t a = pair.a;
          // Every now and then a nested or a long read.
          if (a % 16 == 0) data.Read(slot, [](const Pair& inner) { ASSERT_EQ(inner.a, inner.b); });
          if (a % 64 == 0) std::this_thread::yield();
          EXPECT_EQ(a, pair.b);
          return a;
        });
        EXPECT_GE(seen, floor);  // a read that starts after Modify returned sees its value
        EXPECT_GE(seen, last);
        last = seen;
      }
    });
  }
  for (uint64_t i = 1; i <= writes; ++i) {
    if (i % 3 == 0) {
      data.Publish({i, i});
    } else {
      data.Modify([](Pair& pair) {
        ++pair.a;
        ++pair.b;
        return true;
      });
    }
    published.store(i, std::memory_order_release);
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& reader : readers) reader.join();
}

#ifdef SLUICE_SANITIZED
constexpr uint64_t kWrites = 5000;
#else
constexpr uint64_t kWrites = 30000;
#endif

TEST(DoublyBufferedData, ReadersSeeWholeValuesBesideAWriterAtFullSpeed) { ReadBesideAWriter<SystemSync>(kWrites); }
TEST(DoublyBufferedData, ReadersSeeWholeValuesWithoutMembarrier) { ReadBesideAWriter<FallbackSync>(kWrites); }

TEST(DoublyBufferedData, WriterWaitsForAParkedReaderAndOtherReadersDoNot) {
  DoublyBufferedData<int> data(2, 1);
  std::atomic<int> stage{0};
  auto await_stage = [&](int wanted) {
    for (int now = stage.load(); now < wanted; now = stage.load()) stage.wait(now);
  };
  auto set_stage = [&](int to) {
    stage.store(to);
    stage.notify_all();
  };
  std::thread parked([&] {
    data.Read(0, [&](const int& value) {
      set_stage(1);
      await_stage(2);
      EXPECT_EQ(value, 1);  // the old front was not touched meanwhile
    });
  });
  await_stage(1);
  std::atomic<bool> returned{false};
  std::thread writer([&] {
    data.Publish(2);
    returned.store(true);
  });
  // The new value is visible while the writer still waits for the old one's reader; these reads wait for neither.
  while (Get(data, 1) != 2) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(Get(data, 1), 2);
    EXPECT_EQ(Get(data, data.shared_slot()), 2);
  }
  EXPECT_FALSE(returned.load());
  set_stage(2);
  writer.join();
  parked.join();
  EXPECT_TRUE(returned.load());
}

// Two readers relieve each other, so that one of them is inside at every moment. A writer that waited for a
// moment without readers would wait for ever.
TEST(DoublyBufferedData, ReadersWithoutEndDoNotHoldAWriter) {
  DoublyBufferedData<int> data(1, 0);
  std::atomic<uint64_t> entered[2] = {0, 0};
  std::atomic<bool> stop{false};
  std::thread readers[2];
  for (size_t r = 0; r < 2; ++r) {
    readers[r] = std::thread([&, r] {
      for (uint64_t round = 1; !stop.load(); ++round) {
        data.Read(data.shared_slot(), [&](const int&) {
          entered[r].store(round);
          // Stays until the other has entered after us: the first one in round n, the second one in round n
          // + 1.
          while (entered[1 - r].load() < round + r && !stop.load()) std::this_thread::yield();
        });
      }
    });
  }
  while (entered[1].load() == 0) std::this_thread::yield();
  for (int i = 1; i <= 20; ++i) data.Publish(i);
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(Get(data), 20);
}

// A writer that sleeps says so; it never spins.
struct TellingSync : SystemSync {
  static inline std::atomic<bool> asleep{false};
  static constexpr int kSpins = 0;
  static void Wait(const Atomic<uint32_t>& word, uint32_t seen) {
    asleep.store(true);
    SystemSync::Wait(word, seen);
  }
};

// The former reader of a slot is no reader any more: it may write, and waits for the thread that reads there now.
TEST(DoublyBufferedData, ASlotMayPassToAnotherThread) {
  DoublyBufferedData<int, TellingSync> data(1, 1);
  EXPECT_EQ(data.Read(0, [](const int& value) { return value; }), 1);
  std::atomic<bool> inside{false};
  std::thread next([&] {
    data.Read(0, [&](const int& value) {
      inside.store(true);
      while (!TellingSync::asleep.load()) std::this_thread::yield();
      EXPECT_EQ(value, 1);
    });
  });
  while (!inside.load()) std::this_thread::yield();
  data.Publish(2);
  next.join();
  EXPECT_EQ(data.Read(0, [](const int& value) { return value; }), 2);
}

TEST(DoublyBufferedDataDeathTest, AWriteInsideOfAReadOfASlotThatWasAnotherThreadsStopsTheProcess) {
  DoublyBufferedData<int> data(1, 5);
  std::thread([&] { data.Read(0, [](const int&) {}); }).join();
  EXPECT_DEATH(data.Read(0, [&](const int&) { data.Publish(6); }), "CHECK failed");
}

TEST(DoublyBufferedData, ThreadsComeAndGoDuringWrites) {
  DoublyBufferedData<Pair> data(1);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      std::thread([&] { data.Read(data.shared_slot(), [](const Pair& pair) { EXPECT_EQ(pair.a, pair.b); }); }).join();
    }
  });
  for (uint64_t i = 0; i < 500; ++i) {
    data.Publish({i, i});
    std::this_thread::yield();
  }
  stop.store(true, std::memory_order_relaxed);
  churn.join();
}

TEST(DoublyBufferedData, WritersOfSeveralThreadsTakeTurns) {
  DoublyBufferedData<int> data(1, 0);
  std::vector<std::thread> writers;
  for (int w = 0; w < 3; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < 500; ++i) data.Modify([](int& value) { return ++value, true; });
    });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Get(data), 1500);
}

TEST(DoublyBufferedData, ThousandsOfInstances) {
  std::deque<DoublyBufferedData<int>> all;
  for (int i = 0; i < 5000; ++i) all.emplace_back(4, i);
  for (auto& data : all) data.Publish(Get(data) + 1);
  for (int i = 0; i < 5000; ++i) EXPECT_EQ(Get(all[static_cast<size_t>(i)], 3), i + 1);
}

// 10,000 coroutines suspended around, not in, reads do not hold a writer.
TEST(DoublyBufferedData, CoroutinesSuspendBetweenReads) {
  struct Detached {
    struct promise_type {
      Detached get_return_object() { return {}; }
      std::suspend_never initial_suspend() { return {}; }
      std::suspend_never final_suspend() noexcept { return {}; }
      void return_void() {}
      void unhandled_exception() { std::terminate(); }
    };
  };
  struct Park {
    std::vector<std::coroutine_handle<>>& parked;
    bool await_ready() { return false; }
    void await_suspend(std::coroutine_handle<> handle) { parked.push_back(handle); }
    void await_resume() {}
  };
  DoublyBufferedData<int> data(1, 1);
  std::vector<std::coroutine_handle<>> parked;
  int sum = 0;
  auto body = [](DoublyBufferedData<int>& data, std::vector<std::coroutine_handle<>>& parked, int& sum) -> Detached {
    sum += data.Read(0, [](const int& value) { return value; });
    co_await Park{parked};
    sum += data.Read(0, [](const int& value) { return value; });
  };
  for (int i = 0; i < 10000; ++i) body(data, parked, sum);
  data.Publish(2);
  for (std::coroutine_handle<> handle : parked) handle.resume();
  EXPECT_EQ(sum, 30000);
}

}  // namespace
}  // namespace sluice::concurrent
