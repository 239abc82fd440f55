#include "server/state_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "integration/support/temp_dir.h"

namespace {
int folder_error = 0;  // what fsync(2) of a folder fails with; 0: nothing
}

// In place of the C library's.
extern "C" int fsync(int fd) {
  struct stat info {};
  if (folder_error != 0 && ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    errno = folder_error;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace sluice::server {
namespace {

using base::ErrorKind;
using integration::TempDir;
using upstream::WantedEndpoint;

bool Same(const WantedEndpoint& a, const WantedEndpoint& b) {
  return a.name == b.name && a.address == b.address && a.weight == b.weight && a.draining == b.draining &&
         a.standing == b.standing;
}

SavedLists Lists() {
  SavedLists lists;
  lists["plain"] = {UINT64_MAX,
                    {{"a", *net::Address::Parse("10.0.0.1:1"), 0.1, false},
                     {"c", *net::Address::Parse("10.0.0.3:1"), 0.01, false},
                     {"b", *net::Address::Parse("[::1]:2"), 100, true}}};
  lists["tiers"] = {1,
                    {{"a", *net::Address::Parse("10.0.0.1:1"), 1, false, {}, {7, ""}},
                     {"b", *net::Address::Parse("10.0.0.2:1"), 1, false, {}, {0, "eu: \"1\""}}}};
  lists["empty"] = {0, {}};
  // Names that YAML could take for something else.
  for (const char* name :
       {"true", "1",  "null",   "~",    "a: b",     "- a",          "#",   "\"q\"", "'",  "\xc3\xa4", "a\nb",
        "a\tb", "\\", "a\\\"b", "\x7f", "\xc2\x85", "\xe2\x80\xa8", " a ", "[",     "*x", "0x1"}) {
    lists[name] = {7, {{name, *net::Address::Parse("unix:/tmp/with space: and #"), 1.0 / 3, false}}};
  }
  return lists;
}

TEST(StateFile, WhatIsSavedIsLoaded) {
  TempDir dir;
  const std::string path = dir.File("state");
  const SavedLists lists = Lists();
  for (int round = 0; round < 2; ++round) {  // also over an older one
    ASSERT_TRUE(SaveState(path, lists).ok());
    auto loaded = LoadState(path);
    ASSERT_TRUE(loaded.ok()) << loaded.error().detail;
    ASSERT_EQ(loaded->size(), lists.size());
    for (const auto& [name, list] : lists) {
      ASSERT_TRUE(loaded->contains(name)) << name;
      const SavedList& got = loaded->at(name);
      EXPECT_EQ(got.configured, list.configured);
      EXPECT_TRUE(
          std::equal(got.endpoints.begin(), got.endpoints.end(), list.endpoints.begin(), list.endpoints.end(), Same))
          << name;
    }
  }
  ASSERT_TRUE(SaveState(path, {}).ok());
  EXPECT_EQ(LoadState(path)->size(), 0u);
}

TEST(StateFile, AMissingFileIsNoLists) {
  TempDir dir;
  auto loaded = LoadState(dir.File("none"));
  ASSERT_TRUE(loaded.ok());
  EXPECT_TRUE(loaded->empty());
}

TEST(StateFile, AWriteThatFailsLeavesTheOldOne) {
  TempDir dir;
  const std::string path = dir.File("state");
  ASSERT_TRUE(SaveState(path, Lists()).ok());
  const std::string before = dir.Read("state");
  // The new file cannot be made: its name is a folder's.
  ASSERT_EQ(::mkdir((path + ".new").c_str(), 0700), 0);
  auto status = SaveState(path, {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
  EXPECT_NE(status.error().detail.find(path), std::string::npos);
  EXPECT_EQ(dir.Read("state"), before);
  ::rmdir((path + ".new").c_str());
  // Nor written: files may have no bytes, as on a full device.
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit former{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &former), 0);
  const rlimit none{0, former.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  status = SaveState(path, {});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &former), 0);
  EXPECT_EQ(status.error().kind, ErrorKind::kIo);
  EXPECT_EQ(dir.Read("state"), before);
  EXPECT_NE(::access((path + ".new").c_str(), F_OK), 0);  // it would take room on a disk that has none
  EXPECT_TRUE(SaveState(path, {}).ok());
}

// Another user with write access to the folder can neither have a file overwritten by a link nor read the saved lists.
TEST(StateFile, ALinkAtTheTemporaryNameIsReplacedAndNotFollowed) {
  TempDir dir;
  const std::string path = dir.File("state");
  const std::string precious = dir.Write("precious", "precious\n");
  ASSERT_EQ(::symlink(precious.c_str(), (path + ".new").c_str()), 0);
  const mode_t mask = ::umask(0);
  EXPECT_TRUE(SaveState(path, Lists()).ok());
  ::umask(mask);
  EXPECT_EQ(dir.Read("precious"), "precious\n");
  EXPECT_EQ(LoadState(path)->size(), Lists().size());
  struct stat of {};
  ASSERT_EQ(::lstat(path.c_str(), &of), 0);
  EXPECT_TRUE(S_ISREG(of.st_mode));
  EXPECT_EQ(of.st_mode & 07777, 0600u);
}

TEST(StateFile, AFileThatAKilledProcessLeftIsReplaced) {
  TempDir dir;
  const std::string path = dir.File("state");
  dir.Write("state.new", std::string(100000, 'x'));
  EXPECT_TRUE(SaveState(path, Lists()).ok());
  EXPECT_EQ(LoadState(path)->size(), Lists().size());
}

// What is written is in force at the next start, so it must not be refused.
TEST(StateFile, AFolderThatCannotBeSyncedIsNoError) {
  TempDir dir;
  const std::string path = dir.File("state");
  for (int error : {EINVAL, EIO}) {
    folder_error = error;
    EXPECT_TRUE(SaveState(path, Lists()).ok());
    folder_error = 0;
    EXPECT_EQ(LoadState(path)->size(), Lists().size());
    ASSERT_EQ(::unlink(path.c_str()), 0);
  }
}

TEST(StateFile, AFolderThatIsNotThereIsAnError) { EXPECT_FALSE(SaveState("/nonexistent/folder/state", Lists()).ok()); }

TEST(StateFile, AMalformedFileIsAnErrorThatNamesThePlace) {
  TempDir dir;
  const std::string head = "clusters:\n  c:\n    configured: 1\n";
  for (const std::string& text : {
           std::string("clusters: ["),
           std::string("clusters:\n  c: 5\n"),
           std::string("just text"),
           std::string("- a\n- b\n"),
           std::string(),
           std::string("# comment\n"),
           std::string("cluster: {}\n"),
           std::string("clusters:\n"),
           std::string("clusters:\n  c:\n    endpoints: []\n"),  // no fingerprint
           std::string("clusters:\n  c:\n    configured: -1\n    endpoints: []\n"),
           head,  // no list
           head + "    endpoints: x\n",
           head + "    endpoints:\n      - {name: a, address: 'nonsense', weight: 1, draining: false}\n",
           head + "    endpoints:\n      - {name: a, weight: 1, draining: false}\n",
           head + "    endpoints:\n      - {name: a, address: '10.0.0.1:1', weight: heavy, draining: false}\n",
           head + "    endpoints:\n      - {name: a, address: '10.0.0.1:1', weight: 1}\n",
           head + "    endpoints:\n      - {address: '10.0.0.1:1', weight: 1, draining: false}\n",
       }) {
    const std::string path = dir.Write("state", text);
    auto loaded = LoadState(path);
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_EQ(loaded.error().kind, ErrorKind::kInvalidArgument);
    EXPECT_EQ(loaded.error().detail.find(path + ":0"), std::string::npos) << loaded.error().detail;
    EXPECT_NE(loaded.error().detail.find(path + ":"), std::string::npos) << loaded.error().detail;
  }
}

TEST(StateFile, CutShortAnywhereItNeverEmptiesACluster) {
  TempDir dir;
  SavedLists lists;
  for (const char* name : {"a", "b"}) {
    lists[name] = {
        12345678901234567890u,
        {{"x", *net::Address::Parse("10.0.0.1:1"), 1, false}, {"y", *net::Address::Parse("10.0.0.2:1"), 2, true}}};
  }
  ASSERT_TRUE(SaveState(dir.File("state"), lists).ok());
  const std::string text = dir.Read("state");
  for (size_t size = 0; size < text.size(); ++size) {
    auto loaded = LoadState(dir.Write("cut", text.substr(0, size)));
    if (!loaded) continue;
    for (const auto& [name, list] : *loaded) EXPECT_FALSE(list.endpoints.empty()) << size << " " << name;
  }
}

TEST(StateFile, TheFingerprintIsOfTheListAndNotOfItsOrder) {
  upstream::EndpointOptions a{"a", *net::Address::Parse("10.0.0.1:1"), 1},
      b{"b", *net::Address::Parse("10.0.0.2:1"), 1};
  const uint64_t both = Fingerprint({a, b});
  EXPECT_EQ(both, Fingerprint({b, a}));
  EXPECT_NE(both, Fingerprint({a}));
  EXPECT_NE(Fingerprint({}), Fingerprint({a}));
  auto heavier = a;
  heavier.weight = 2;
  EXPECT_NE(both, Fingerprint({heavier, b}));
  auto swapped_a = a, swapped_b = b;
  std::swap(swapped_a.address, swapped_b.address);
  EXPECT_NE(both, Fingerprint({swapped_a, swapped_b}));
}

// The first one may be the only copy of what was lost.
TEST(StateFile, ASecondOneThatIsSetAsideLeavesTheFirst) {
  integration::TempDir dir;
  const std::string path = dir.Write("state", "clusters: [");
  dir.Write("state.bad", "of an earlier start");
  EXPECT_TRUE(LoadStateOrSetAside(path).ok());
  EXPECT_EQ(dir.Read("state.bad"), "of an earlier start");
  EXPECT_EQ(dir.Read("state.bad.2"), "clusters: [");
}

}  // namespace
}  // namespace sluice::server
