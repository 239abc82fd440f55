// LocalPeers: the process behind a connection, by what gRPC says of it.
#include "admin/local_peers.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace sluice::admin {
namespace {

TEST(LocalPeers, NamesTheProcessBehindADescriptor) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const std::string peer = "fd:" + std::to_string(ends[0]);
  LocalPeers peers;
  EXPECT_EQ(peers.NameOf(peer), peer);
  peers.Remember(ends[0]);
  EXPECT_EQ(peers.NameOf(peer), "unix: uid=" + std::to_string(::getuid()) + " pid=" + std::to_string(::getpid()));
  for (const char* other : {"fd:", "fd:x", "fd:99999", "ipv4:127.0.0.1:1", "unix:", ""}) {
    EXPECT_EQ(peers.NameOf(other), other);
  }
  // The number stands for something else now. Not closed: another thread of the test program may take it.
  const int other = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::dup2(other, ends[0]), ends[0]);
  peers.Remember(ends[0]);
  EXPECT_EQ(peers.NameOf(peer), peer);
  ::close(other);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace sluice::admin
