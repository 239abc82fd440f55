// What a steady call costs in things that can be counted exactly on any machine: heap allocations, system calls, atomic
// read-modify-writes on memory that workers share.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>

#include "support/malloc_counter.h"
#include "support/path_rig.h"
#include "support/single_step.h"
#include "support/system_calls.h"

namespace sluice::proxy {
namespace {

using test::PathOptions;
using test::PathRig;
using test::PathWorld;

struct Variant {
  const char* name;
  PathOptions options;
  double allocations_max = 0;  // per call
};
constexpr Variant kVariants[] = {
    {"unary", {}},
    {"4 connections", {.connections = 4, .streams = 32}},
    {"full limits", {.full_limits = true}},
    {"cache hits", {.cache = true}},
    {"messages of 4 KiB", {.message_bytes = 4096}, 2},  // the request's copy for a retry, and lists of slices
};

TEST(PathCost, EveryVariantCarriesItsCallsAsTheyWere) {
  for (auto [name, options, allocations_max] : kVariants) {
    SCOPED_TRACE(name);
    options.verify = true;  // the peers check
    PathRig rig(options);
    const uint64_t before = rig.answered();
    const size_t calls = rig.Batch();
    EXPECT_EQ(calls, options.connections * options.streams);
    EXPECT_EQ(rig.answered() - before, options.cache ? 0u : calls);
  }
}

TEST(PathCost, ASteadyCallAllocatesNothing) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  for (const auto& [name, options, allocations_max] : kVariants) {
    PathRig rig(options);
    uint64_t before = 0, sum = 0, calls = 0;
    rig.before_turn = [&] { before = test::MallocsForTest(); };
    rig.after_turn = [&] { sum += test::MallocsForTest() - before; };
    for (int i = 0; i < 50; ++i) calls += rig.Batch();
    rig.before_turn = rig.after_turn = nullptr;
    std::printf("%s: %llu allocations in %llu calls\n", name, static_cast<unsigned long long>(sum),
                static_cast<unsigned long long>(calls));
    EXPECT_LE(static_cast<double>(sum), allocations_max * static_cast<double>(calls)) << name;
  }
}

TEST(PathCost, AHundredCallsOnOneConnectionShareTheirSystemCalls) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "a sanitizer's process has helpers of its own";
#endif
  constexpr int kBatches = 20;
  constexpr double kSystemCallsMax = 0.1;
  for (bool cache : {false, true}) {
    // Told by the child through this page.
    auto shared =
        static_cast<uint64_t*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(shared, MAP_FAILED);
    auto counted = test::CountSystemCalls([&](const std::function<void()>& toggle) {
      PathRig rig({.cache = cache, .sockets = true});
      rig.before_turn = rig.after_turn = toggle;
      const uint64_t turns = rig.turns();
      for (int i = 0; i < kBatches; ++i) shared[0] += rig.Batch();
      rig.before_turn = rig.after_turn = nullptr;
      shared[1] = rig.turns() - turns;
    });
    const uint64_t calls = shared[0], turns = shared[1];
    munmap(shared, 4096);
    if (!counted) GTEST_SKIP() << "this process may not trace a child";
    ASSERT_EQ(calls, kBatches * 100u);
    uint64_t sum = 0;
    for (const auto& [number, times] : *counted) {
      std::printf("system call %ld: %.3f per call\n", number, static_cast<double>(times) / static_cast<double>(calls));
      sum += times;
    }
    // A worker turned by hand asks epoll once more, finds nothing and returns; a daemon's waits there for the next
    // turn's events. So one epoll_wait of each ProxyTurn is the test's own.
    EXPECT_GT((*counted)[SYS_epoll_wait] + (*counted)[SYS_epoll_pwait], turns);
    sum -= turns;
    std::printf("%s: %.3f system calls per call\n", cache ? "cache hits" : "unary",
                static_cast<double>(sum) / static_cast<double>(calls));
    EXPECT_LE(static_cast<double>(sum), kSystemCallsMax * static_cast<double>(calls));
  }
}

#ifdef SLUICE_SINGLE_STEP  // x86-64 only, and not under sanitizers

// Cache lines that atomic read-modify-writes of one worker's steady calls hit, with how often they did.
std::map<uintptr_t, size_t> LinesOf(PathRig& rig, size_t* calls) {
  test::SingleStep step;
  rig.before_turn = [&step] { step.Start(); };
  rig.after_turn = [&step] { step.Stop(); };
  *calls = rig.Batch();
  rig.before_turn = rig.after_turn = nullptr;
  EXPECT_TRUE(step.complete());
  std::map<uintptr_t, size_t> lines;
  for (const test::SingleStep::Rmw& rmw : step.rmws()) ++lines[rmw.memory / 64];
  return lines;
}

// Two workers of one proxy, each on a thread of its own, one after the other: a line that both hit is one that their
// cores would take from each other.
double SharedRmwsPerCall(PathOptions options) {
  options.streams = 5;  // a step costs microseconds
  auto world = std::make_shared<PathWorld>(options, 2);
  PathRig first(options, world, 0);
  std::map<uintptr_t, size_t> theirs, ours;
  size_t calls = 0;
  std::thread other([&] {
    PathRig second(options, world, 1);
    theirs = LinesOf(second, &calls);
  });
  other.join();
  ours = LinesOf(first, &calls);
  size_t all = 0, shared = 0;
  for (const auto& [line, times] : ours) {
    all += times;
    if (theirs.contains(line)) shared += times;
  }
  std::printf("atomic read-modify-writes per call: %.1f, on lines that workers share: %.1f\n",
              static_cast<double>(all) / static_cast<double>(calls),
              static_cast<double>(shared) / static_cast<double>(calls));
  return static_cast<double>(shared) / static_cast<double>(calls);
}

TEST(PathCost, WithoutAdmissionNoSharedLineIsTaken) { EXPECT_EQ(SharedRmwsPerCall({}), 0.0); }

// What admission must share: a word for each limit, taken and given back, and no more. It also shows that the method
// sees.
TEST(PathCost, AdmissionTakesTheWordsOfItsLimits) {
  const double shared = SharedRmwsPerCall({.full_limits = true});
  EXPECT_GE(shared, 7.0);  // 3 permits, each taken and returned; a token
  EXPECT_LE(shared, 9.0);  // the token's return, and the time once a turn; no count on a limiter
}

#endif  // SLUICE_SINGLE_STEP

}  // namespace
}  // namespace sluice::proxy
