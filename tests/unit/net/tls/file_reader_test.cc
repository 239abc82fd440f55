#include "net/tls/file_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/support/temp_dir.h"

namespace sluice::net {
namespace {

using ::testing::HasSubstr;

struct FileReaderTest : ::testing::Test {
  integration::TempDir dir;
  TlsOptions options{
      .certificate = dir.Write("a.crt", "one"), .key = dir.Write("a.key", "two"), .ca = std::string(kSystemCa)};
};

TEST_F(FileReaderTest, AreReadWholeAndTheSystemsAuthoritiesAreNoFile) {
  auto read = ReadTlsFiles(options);
  ASSERT_TRUE(read.ok()) << read.error().detail;
  EXPECT_EQ(read->certificate.name, options.certificate);
  EXPECT_EQ(read->certificate.text, "one");
  EXPECT_EQ(read->key.text, "two");
  EXPECT_EQ(read->ca.name, "");
  EXPECT_FALSE(StampsOf(options)[2].there);
}

TEST_F(FileReaderTest, AnUnreadableFileIsNamedWithTheReason) {
  const auto error = [&](const std::string& name) {
    options.key = name;
    auto read = ReadTlsFiles(options);
    return read.ok() ? "" : read.error().detail;
  };
  EXPECT_EQ(error("/nowhere/a.key"), "/nowhere/a.key: cannot be read: No such file or directory");
  EXPECT_THAT(error(dir.path()), HasSubstr("cannot be read: not a regular file"));
  // Trap: opening a pipe without a writer blocks.
  ASSERT_EQ(::mkfifo(dir.File("pipe").c_str(), 0600), 0);
  EXPECT_THAT(error(dir.File("pipe")), HasSubstr("not a regular file"));
  dir.Write("large", std::string(kTlsFileBytesMax + 1, 'x'));
  EXPECT_THAT(error(dir.File("large")), HasSubstr("larger than 16 MiB"));
}

TEST_F(FileReaderTest, AStampTellsEachKindOfChange) {
  const TlsStamps before = StampsOf(options);
  EXPECT_EQ(StampsOf(options), before);
  EXPECT_TRUE(before[0].there);
  dir.Write("a.crt", "three");
  TlsStamps after = StampsOf(options);
  EXPECT_NE(after[0], before[0]);
  EXPECT_EQ(after[1], before[1]);
  // Written in place, of the same size, with its time set back as cp -p does.
  const TlsStamps again = StampsOf(options);
  const timespec times[] = {{0, UTIME_OMIT},
                            {again[0].modified_ns / 1'000'000'000, again[0].modified_ns % 1'000'000'000}};
  dir.Write("a.crt", "four.");
  ASSERT_EQ(::utimensat(AT_FDCWD, options.certificate.c_str(), times, 0), 0);
  EXPECT_EQ(StampsOf(options)[0].modified_ns, again[0].modified_ns);
  EXPECT_EQ(StampsOf(options)[0].size, again[0].size);
  EXPECT_NE(StampsOf(options)[0], again[0]);
  dir.Write("new", "two");  // of the same size
  std::filesystem::rename(dir.File("new"), options.key);
  EXPECT_NE(StampsOf(options)[1], before[1]);
  // A link is followed: what counts is where it leads.
  after = StampsOf(options);
  std::filesystem::rename(options.key, dir.File("moved"));
  std::filesystem::create_symlink("moved", options.key);
  EXPECT_EQ(StampsOf(options)[1].inode, after[1].inode);
  std::filesystem::remove(options.key);
  EXPECT_FALSE(StampsOf(options)[1].there);
}

}  // namespace
}  // namespace sluice::net
