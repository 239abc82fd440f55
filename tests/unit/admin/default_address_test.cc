// Which socket sluicectl takes where its command line names none.
#include "sluicectl/default_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>

#include "fake_backend.h"

namespace sluice::ctl {
namespace {

using testing::ElementsAre;

TEST(DefaultAddress, LooksInTheUsersOwnFoldersFirst) {
  EXPECT_THAT(AdminSockets("/run/a:/run/b", "/run/user/7"),
              ElementsAre("/run/a/admin.sock", "/run/user/7/sluice-admin.sock", "/run/sluice/admin.sock",
                          "/tmp/sluice-admin.sock"));
  EXPECT_THAT(AdminSockets(nullptr, ""), ElementsAre("/run/sluice/admin.sock", "/tmp/sluice-admin.sock"));
  EXPECT_THAT(AdminSockets("relative", "too"), ElementsAre("/run/sluice/admin.sock", "/tmp/sluice-admin.sock"));
}

void MakeSocket(const std::string& path) {
  const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0) << path;
  ::close(fd);
}

TEST(DefaultAddress, TakesTheFirstSocketThatIsThere) {
  admin::TempDir dir;
  const std::vector<std::string> paths = {dir / "a", dir / "b", dir / "c"};
  EXPECT_EQ(*FindAddress(paths), "unix:" + (dir / "c")) << "for the message that there is none";
  std::ofstream(dir / "a") << "no socket";
  MakeSocket(dir / "b");
  MakeSocket(dir / "c");
  EXPECT_EQ(*FindAddress(paths), "unix:" + (dir / "b"));
}

// In /tmp any user may be the first to make it, and would be told what is meant for the daemon.
TEST(DefaultAddress, ASocketOfAStrangerInASharedFolderIsNotTaken) {
  admin::TempDir dir;
  MakeSocket(dir / "s");
  ASSERT_EQ(::chmod((dir / "s").substr(0, (dir / "s").rfind('/')).c_str(), 01777), 0);
  EXPECT_EQ(*FindAddress({dir / "s"}), "unix:" + (dir / "s")) << "our own";
  if (::geteuid() != 0) return;  // only root can make another user's
  ASSERT_EQ(::chown((dir / "s").c_str(), 65534, 65534), 0);
  EXPECT_EQ(FindAddress({dir / "s"}).error().kind, base::ErrorKind::kConflict);
  ASSERT_EQ(::chmod((dir / "s").substr(0, (dir / "s").rfind('/')).c_str(), 0755), 0);
  EXPECT_TRUE(FindAddress({dir / "s"}).ok()) << "the folder's owner has let it be made";
}

}  // namespace
}  // namespace sluice::ctl
