// Ids. With streams: session_lifecycle_test.cc and session_release_test.cc, through a session.
#include "http2/session/streams.h"

#include <gtest/gtest.h>

namespace sluice::http2 {
namespace {

// RFC 9113 5.1.1.
TEST(Streams, OurIdsAreOddAndRise) {
  Streams streams;
  EXPECT_EQ(streams.TakeId(), 1u);
  EXPECT_EQ(streams.TakeId(), 3u);
  EXPECT_TRUE(streams.ids_left());
}

TEST(Streams, IdleIsWhatItsSideHasNotUsed) {
  Streams ours;
  ours.TakeId();
  EXPECT_FALSE(ours.IsIdle(1, /*by_us=*/true));
  EXPECT_TRUE(ours.IsIdle(3, /*by_us=*/true));
  EXPECT_TRUE(ours.IsIdle(2, /*by_us=*/true));  // a server opens none

  Streams theirs;
  EXPECT_TRUE(theirs.IsIdle(1, /*by_us=*/false));
  theirs.NotePeerId(7);
  for (uint32_t id : {1u, 3u, 5u, 7u})
    EXPECT_FALSE(theirs.IsIdle(id, /*by_us=*/false)) << id;  // skipped ones are closed
  EXPECT_TRUE(theirs.IsIdle(9, /*by_us=*/false));
  EXPECT_TRUE(theirs.IsIdle(6, /*by_us=*/false));
}

}  // namespace
}  // namespace sluice::http2
