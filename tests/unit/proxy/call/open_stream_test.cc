// What a call that waits for its upstream takes of the heap, counted: docs/performance.md, row "open streams".
#include <gtest/gtest.h>

#include <cstdio>
#include <thread>

#include "support/malloc_counter.h"
#include "support/path_rig.h"

namespace sluice::proxy {
namespace {

using test::PathRig;

struct Variant {
  const char* name;
  test::PathOptions options;
  double bytes_max;  // of a call
};
constexpr Variant kVariants[] = {
    {"unary", {}, 1490},
    {"headers in no table", {.literals = true}, 1920},
    {"full limits", {.full_limits = true}, 2040},
};

TEST(OpenStream, TakesNoMoreThanThis) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "sanitizers bring their own malloc";
#endif
  constexpr size_t kConnections = 16, kCalls = 450;
  for (const Variant& variant : kVariants) {
    // On a thread of its own: no pool has memory of the variant before.
    std::thread([&variant] {
      auto [name, options, bytes_max] = variant;
      options.connections = kConnections;
      PathRig rig(options);
      const uint64_t answered = rig.answered(), finished = rig.finished();
      rig.OpenCalls(kCalls);  // these take what the calls before them have left in the pools, and leave what those keep
      const int64_t before = test::HeapBytesForTest();
      rig.OpenCalls(kCalls);
      const double each = static_cast<double>(test::HeapBytesForTest() - before) / (kConnections * kCalls);
      std::printf("%s: %.0f bytes for each open call\n", name, each);
      EXPECT_LE(each, bytes_max) << name;
      EXPECT_EQ(rig.finished(), finished);
      rig.FinishCalls();
      EXPECT_EQ(rig.finished() - finished, kConnections * 2 * kCalls);  // they were open indeed
      EXPECT_EQ(rig.answered() - answered, kConnections * 2 * kCalls);
    }).join();
  }
}

}  // namespace
}  // namespace sluice::proxy
