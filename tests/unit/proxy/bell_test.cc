// The bell of threads that poll: a ring that comes late does not keep it ringing.
#include "proxy/bell.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>

namespace sluice::proxy {
namespace {

bool Rings(const Bell& bell) {
  pollfd one{bell.fd(), POLLIN, 0};
  return ::poll(&one, 1, 0) == 1;
}

TEST(Bell, RingsUntilItIsHeard) {
  Bell bell;
  EXPECT_FALSE(Rings(bell));
  bell.Ring();
  bell.Ring();
  EXPECT_TRUE(Rings(bell));
  bell.Hear();
  EXPECT_FALSE(Rings(bell));
  bell.Ring();
  EXPECT_TRUE(Rings(bell));
}

// The thread that rings was held up between its word and the system call, and the other one has heard the word alone.
TEST(Bell, ALateRingIsHeardOnce) {
  Bell bell;
  bell.Ring();
  bell.Hear();
  ASSERT_EQ(::eventfd_write(bell.fd(), 1), 0);
  EXPECT_TRUE(Rings(bell));
  bell.Hear();
  EXPECT_FALSE(Rings(bell));
}

}  // namespace
}  // namespace sluice::proxy
