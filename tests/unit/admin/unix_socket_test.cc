// A path is taken from the dead and never from the living.
#include "admin/unix_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <fstream>

#include "fake_backend.h"

namespace sluice::admin {
namespace {

using testing::HasSubstr;

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
  close(Listen(dir / "s"));  // the file stays behind
  base::Result<UnixSocketClaim> claim = UnixSocketClaim::Claim(dir / "s");
  ASSERT_TRUE(claim.ok()) << claim.error().detail;
  EXPECT_NE(access((dir / "s").c_str(), F_OK), 0);
}

TEST(UnixSocketClaim, LeavesALivingOneAlone) {
  TempDir dir;
  const int fd = Listen(dir / "s");
  base::Result<UnixSocketClaim> claim = UnixSocketClaim::Claim(dir / "s");
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kConflict);
  EXPECT_THAT(claim.error().detail, HasSubstr("another process listens"));
  EXPECT_EQ(access((dir / "s").c_str(), F_OK), 0);
  // Nor when its backlog is full: the attempts above and here are never accepted.
  for (int i = 0; i < 5; ++i) {
    base::Result<UnixSocketClaim> again = UnixSocketClaim::Claim(dir / "s");
    ASSERT_FALSE(again.ok());
    EXPECT_EQ(again.error().kind, base::ErrorKind::kConflict);
  }
  close(fd);
}

TEST(UnixSocketClaim, LeavesAFileThatIsNoSocketAlone) {
  TempDir dir;
  std::ofstream(dir / "file") << "precious";
  base::Result<UnixSocketClaim> claim = UnixSocketClaim::Claim(dir / "file");
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kInvalidArgument);
  EXPECT_THAT(claim.error().detail, HasSubstr("is not a socket"));
  EXPECT_EQ(access((dir / "file").c_str(), F_OK), 0);
}

TEST(UnixSocketClaim, OnlyOneAtATimeHoldsADirectory) {
  TempDir dir;
  base::Result<UnixSocketClaim> first = UnixSocketClaim::Claim(dir / "s");
  ASSERT_TRUE(first.ok());
  base::Result<UnixSocketClaim> second = UnixSocketClaim::Claim(dir / "s");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().detail, HasSubstr("cannot lock"));
}

TEST(UnixSocketClaim, GivesTheUmaskBack) {
  TempDir dir;
  const mode_t before = umask(022);
  {
    base::Result<UnixSocketClaim> claim = UnixSocketClaim::Claim(dir / "s");
    ASSERT_TRUE(claim.ok());
    close(Listen(dir / "s"));
    struct stat info;
    ASSERT_EQ(stat((dir / "s").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0600u);  // from the first moment, before SetMode
  }
  EXPECT_EQ(umask(before), 022u);
}

TEST(UnixSocketClaim, NamesAMissingDirectory) {
  base::Result<UnixSocketClaim> claim = UnixSocketClaim::Claim("/tmp/sluice-no-such-directory/s");
  ASSERT_FALSE(claim.ok());
  EXPECT_EQ(claim.error().kind, base::ErrorKind::kIo);
  EXPECT_THAT(claim.error().detail, HasSubstr("/tmp/sluice-no-such-directory"));
}

}  // namespace
}  // namespace sluice::admin
