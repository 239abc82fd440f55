// Files that a configuration names: a pipe would hold up a reload for ever.
#include "config/file_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/support/temp_dir.h"

namespace sluice::config {
namespace {

TEST(FileText, APipeIsReadOnlyWhereItIsTheConfigurationItself) {
  integration::TempDir dir;
  const std::string pipe = dir.File("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const auto text = ReadNamedText(pipe);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().detail, pipe + ": cannot be read: it is a pipe or a socket, and no file");
  EXPECT_EQ(*ReadNamedText(dir.Write("a", "text")), "text");
}

}  // namespace
}  // namespace sluice::config
