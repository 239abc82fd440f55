#include "base/log_open.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "integration/support/temp_dir.h"

namespace sluice::base {
namespace {

class LogOpenTest : public ::testing::Test {
 protected:
  // Opens `name`, writes a line and closes it. The error's words, or none.
  std::string Append(const std::string& name) {
    const Result<int> fd = OpenLog(Path(name), 0);
    if (!fd.ok()) return fd.error().detail;
    EXPECT_EQ(::write(*fd, "x\n", 2), 2);
    ::close(*fd);
    return "";
  }
  std::string Path(const std::string& name) const { return dir_.File(name); }
  std::string Text(const std::string& name) const { return dir_.Read(name); }

  integration::TempDir dir_;
};

TEST_F(LogOpenTest, ANewFileIsForItsOwnerAndItsGroup) {
  const mode_t mask = ::umask(0);
  EXPECT_EQ(Append("log"), "");
  ::umask(mask);
  struct stat of {};
  ASSERT_EQ(::stat(Path("log").c_str(), &of), 0);
  EXPECT_EQ(of.st_mode & 07777, kLogMode);
}

TEST_F(LogOpenTest, AFileOfLogrotateKeepsItsModeAndItsLines) {
  std::ofstream(Path("log")) << "old\n";
  ASSERT_EQ(::chmod(Path("log").c_str(), 0604), 0);
  EXPECT_EQ(Append("log"), "");
  EXPECT_EQ(Text("log"), "old\nx\n");
  struct stat of {};
  ASSERT_EQ(::stat(Path("log").c_str(), &of), 0);
  EXPECT_EQ(of.st_mode & 07777, 0604u);
}

TEST_F(LogOpenTest, OwnLinksAreFollowedWhereverTheyLead) {
  std::filesystem::create_directory(Path("sub"));
  std::filesystem::create_symlink("sub/log", Path("relative"));
  std::filesystem::create_symlink(Path("relative"), Path("absolute"));
  EXPECT_EQ(Append("absolute"), "") << "a file that is not there yet is created";
  EXPECT_EQ(Append("relative"), "");
  EXPECT_EQ(Text("sub/log"), "x\nx\n");
}

TEST_F(LogOpenTest, ALinkToAnOpenDescriptorIsFollowed) {
  const int fd = ::open(Path("open").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_GE(fd, 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(fd), Path("stdout"));
  EXPECT_EQ(Append("stdout"), "");
  ::close(fd);
  EXPECT_EQ(Text("open"), "x\n");
}

TEST_F(LogOpenTest, ALinkOfAnotherUserIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make another user's link";
  std::ofstream(Path("target")) << "precious\n";
  std::filesystem::create_symlink("target", Path("log"));
  ASSERT_EQ(::lchown(Path("log").c_str(), 65534, 65534), 0);
  EXPECT_EQ(Append("log"), "cannot open " + Path("log") +
                               ": it is a symbolic link of user 65534; links are followed that root or this process's "
                               "user owns");
  std::filesystem::create_symlink("log", Path("ours"));
  EXPECT_NE(Append("ours"), "") << "a link behind an own one";
  EXPECT_EQ(Text("target"), "precious\n");
}

TEST_F(LogOpenTest, ACircleOfLinksIsAnError) {
  std::filesystem::create_symlink("b", Path("a"));
  std::filesystem::create_symlink("a", Path("b"));
  EXPECT_EQ(Append("a"), "cannot open " + Path("a") + ": Too many levels of symbolic links");
  EXPECT_EQ(Append("missing/log"), "cannot open " + Path("missing/log") + ": No such file or directory");
}

}  // namespace
}  // namespace sluice::base
