// A path is taken from the dead and never from the living.
#include "net/unix_socket_claim.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>

#include "integration/support/temp_dir.h"

namespace sluice::net {
namespace {

using integration::TempDir;
using testing::HasSubstr;

base::Result<UnixSocketClaim> Claim(const std::string& path) {
  return UnixSocketClaim::Claim(*Address::Parse("unix:" + path));
}

int Listen(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(listen(fd, 1), 0);
  return fd;
}

TEST(UnixSocketClaim, RemovesTheSocketOfADeadProcess) {
  TempDir dir;
  close(Listen(dir.File("s")));  // the file stays behind
  base::Result<UnixSocketClaim> claim = Claim(dir.File("s"));
  ASSERT_TRUE(claim.ok()) << claim.error().detail;
  EXPECT_NE(access(dir.File("s").c_str(), F_OK), 0);
}

TEST(UnixSocketClaim, LeavesALivingOneAlone) {
  TempDir dir;
  const int fd = Listen(dir.File("s"));
  base::Result<UnixSocketClaim> claim = Claim(dir.File("s"));
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kConflict);
  EXPECT_THAT(claim.error().detail, HasSubstr("another process listens"));
  EXPECT_EQ(access(dir.File("s").c_str(), F_OK), 0);
  // Nor when its backlog is full: the attempts above and here are never accepted.
  for (int i = 0; i < 5; ++i) {
    base::Result<UnixSocketClaim> again = Claim(dir.File("s"));
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().kind, base::ErrorKind::kConflict);
  }
  close(fd);
}

TEST(UnixSocketClaim, LeavesAFileThatIsNoSocketAlone) {
  TempDir dir;
  std::ofstream(dir.File("file")) << "precious";
  base::Result<UnixSocketClaim> claim = Claim(dir.File("file"));
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kInvalidArgument);
  EXPECT_THAT(claim.error().detail, HasSubstr("is not a socket"));
  EXPECT_EQ(access(dir.File("file").c_str(), F_OK), 0);
}

TEST(UnixSocketClaim, OnlyOneAtATimeHoldsADirectory) {
  TempDir dir;
  base::Result<UnixSocketClaim> first = Claim(dir.File("s"));
  ASSERT_TRUE(first.ok());
  base::Result<UnixSocketClaim> second = Claim(dir.File("s"));
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().detail, HasSubstr("cannot lock"));
}

TEST(UnixSocketClaim, NamesAMissingDirectory) {
  base::Result<UnixSocketClaim> claim = Claim("/tmp/sluice-no-such-directory/s");
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kIo);
  EXPECT_THAT(claim.error().detail, HasSubstr("/tmp/sluice-no-such-directory"));
}

}  // namespace
}  // namespace sluice::net
