#include "net/listen_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <vector>

#include "integration/support/temp_dir.h"
#include "listening.h"
#include "net/unix_socket_claim.h"

namespace sluice::net {
namespace {

using base::ErrorKind;

TEST(ListenSocket, PortZeroBecomesThePortInForce) {
  auto socket = Listen("127.0.0.1:0");
  ASSERT_TRUE(socket.ok());
  EXPECT_NE(socket->address().port(), 0);
  int client = Connect(socket->address());
  EXPECT_GE(client, 0);
  ::close(client);
}

TEST(ListenSocket, AnAddressInUseIsAnErrorThatNamesIt) {
  auto first = Listen("127.0.0.1:0");
  auto second = ListenSocket::Open(first->address(), {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::kConflict);
  EXPECT_NE(second.error().detail.find(first->address().ToString()), std::string::npos);
  EXPECT_NE(second.error().detail.find("Address already in use"), std::string::npos) << second.error().detail;
}

TEST(ListenSocket, ANameIsNotAnAddressToListenOn) {
  EXPECT_EQ(Listen("localhost:80").error().kind, ErrorKind::kInvalidArgument);
}

TEST(ListenSocket, TakesAPathUnderTheLockOfItsDirectory) {
  integration::TempDir dir;
  auto other = UnixSocketClaim::Claim(Parse("unix:" + dir.File("other")));
  ASSERT_TRUE(other.ok());
  auto socket = Listen("unix:" + dir.File("s"));
  ASSERT_FALSE(socket.ok());
  EXPECT_NE(socket.error().detail.find("cannot lock"), std::string::npos);
}

TEST_F(UnixPath, HasTheModeAskedFor) {
  const mode_t mask = ::umask(077);
  auto socket = Listen(address, {16, 0622});
  EXPECT_EQ(::umask(mask), 077u);
  ASSERT_TRUE(socket.ok());
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777u, 0622u);
}

TEST_F(UnixPath, AStaleSocketIsReplaced) {
  {
    auto dead = Listen(address);
    ASSERT_TRUE(dead.ok());
    ASSERT_EQ(::link(path.c_str(), (path + ".kept").c_str()), 0);
  }
  ASSERT_EQ(::rename((path + ".kept").c_str(), path.c_str()), 0);  // as if its process had been killed
  auto socket = Listen(address);
  ASSERT_TRUE(socket.ok()) << socket.error().detail;
  int client = Connect(socket->address());
  EXPECT_GE(client, 0);
  ::close(client);
}

TEST_F(UnixPath, AClosedSocketLeavesNoFileOfItsOwn) {
  { auto unused = Listen(address); }
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  {
    auto unused = Listen(address);
    ::unlink(path.c_str());
    std::ofstream(path) << "another's";
  }
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
}

TEST_F(UnixPath, ALiveSocketIsLeftAlone) {
  auto live = Listen(address);
  ASSERT_TRUE(live.ok());
  EXPECT_EQ(Listen(address).error().kind, ErrorKind::kConflict);
  int client = Connect(live->address());
  EXPECT_GE(client, 0);
  ::close(client);
}

TEST_F(UnixPath, ALiveSocketWhoseQueueIsFullIsLeftAloneWithoutWaitingForIt) {
  auto live = Listen(address, {0, 0666});
  std::vector<int> clients;
  while (int fd = Connect(live->address(), SOCK_NONBLOCK)) {
    if (fd < 0) break;
    clients.push_back(fd);
  }
  EXPECT_EQ(errno, EAGAIN);
  EXPECT_EQ(Listen(address).error().kind, ErrorKind::kConflict);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  for (int fd : clients) ::close(fd);
}

TEST_F(UnixPath, AFileThatIsNoSocketIsLeftAlone) {
  std::ofstream(path) << "precious";
  EXPECT_EQ(Listen(address).error().kind, ErrorKind::kInvalidArgument);
  std::string text;
  std::ifstream(path) >> text;
  EXPECT_EQ(text, "precious");
}

}  // namespace
}  // namespace sluice::net
