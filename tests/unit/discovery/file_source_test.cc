// The file source on real files: every way in which a list is replaced is seen at once, and half a file never.
#include "discovery/file/file_source.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "config/config.h"
#include "integration/support/temp_dir.h"
#include "support/manual_worker.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class FileSourceTest : public ::testing::Test {
 protected:
  ~FileSourceTest() override { time.runtime.Shutdown(); }
  void Start(const std::string& path) {
    time.runtime.SpawnPinOnStart(Follow(*this, path));
    time.Run();
  }
  // One answer after the other: "a b", or "error: ...". The clock stands still, so nothing is polled.
  static runtime::Task<void> Follow(FileSourceTest& test, std::string path) {
    Bell bell;
    FileSource source(path, &Read, bell);
    test.source = &source;
    test.bell = &bell;
    for (;;) {
      runtime::Task<Answer> next = source.Next(base::kNever);
      const Answer answer = co_await std::move(next);
      if (const auto* error = std::get_if<std::string>(&answer)) test.heard = "error: " + *error;
      if (const auto* list = std::get_if<List>(&answer)) {
        test.heard.clear();
        for (const auto& endpoint : *list) test.heard += (test.heard.empty() ? "" : " ") + endpoint.name;
      }
      test.answers += answer.index() == 0 ? 0 : 1;
    }
  }
  static base::Result<List> Read(const std::string& path) {
    auto list = config::LoadEndpoints(path);
    if (list.ok()) Sort(*list);
    return list;
  }
  bool Hears(const std::string& wanted) {
    for (const auto until = std::chrono::steady_clock::now() + seconds(10); heard != wanted;
         std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > until) return false;
      time.Run();
    }
    return true;
  }
  // Behind all that has been told so far: what is asked for now is answered after it.
  void AskAndWait() {
    const int before = answers;
    source->Ask();
    bell->Ring();
    for (const auto until = std::chrono::steady_clock::now() + seconds(10);
         answers == before && std::chrono::steady_clock::now() < until; std::this_thread::yield())
      time.Run();
  }
  // A look that is due after `by` is over: the one helper thread takes its work in turn.
  void Look(base::Nanos by) {
    time.clock.Advance(by);
    time.Run();
    bool done = false;
    ASSERT_TRUE(time.runtime.Block(
        time.worker, [] {}, [&done] { done = true; }));
    while (!done) time.Run();
  }
  static std::string Yaml(const std::string& hosts) { return "endpoints: [" + hosts + "]\n"; }

  integration::TempDir dir;
  test::ManualWorker time;
  FileSource* source = nullptr;
  Bell* bell = nullptr;
  std::string heard = "nothing";
  int answers = 0;
};

TEST_F(FileSourceTest, AFileIsReadAtTheStart) {
  Start(dir.Write("list.yaml", Yaml("b:1, a:1")));
  EXPECT_TRUE(Hears("a:1 b:1")) << heard;
}

TEST_F(FileSourceTest, AFileThatIsRenamedIntoPlaceIsSeen) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  for (const char* host : {"b:1", "c:1", "d:1"}) {
    std::filesystem::rename(dir.Write("new", Yaml(host)), dir.File("list.yaml"));
    EXPECT_TRUE(Hears(host)) << heard;
  }
}

TEST_F(FileSourceTest, AFileThatIsWrittenAnewIsSeenWhenItIsClosed) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  {
    std::ofstream file(dir.File("list.yaml"));
    file << "endpoints:\n  - b:1\n" << std::flush;
    time.Run();
    EXPECT_EQ(heard, "a:1") << "more may follow";
    file << "  - c:1\n";
  }
  EXPECT_TRUE(Hears("b:1 c:1")) << heard;
}

TEST_F(FileSourceTest, AFileThatGoesAndComesBackIsSeen) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  std::filesystem::remove(dir.File("list.yaml"));
  EXPECT_TRUE(Hears("error: " + dir.File("list.yaml") + ": cannot be read: No such file or directory")) << heard;
  dir.Write("list.yaml", Yaml("b:1"));
  EXPECT_TRUE(Hears("b:1")) << heard;
}

// As the kubelet writes a ConfigMap: list.yaml -> ..data/list.yaml, ..data -> ..1, and ..data is replaced by rename.
TEST_F(FileSourceTest, AConfigMapsNewDirectoryIsSeen) {
  const auto release = [&](const std::string& number, const std::string& hosts) {
    std::filesystem::create_directory(dir.File(".." + number));
    dir.Write(".." + number + "/list.yaml", Yaml(hosts));
    std::filesystem::create_symlink(".." + number, dir.File("..data_tmp"));
    std::filesystem::rename(dir.File("..data_tmp"), dir.File("..data"));
  };
  release("1", "a:1");
  std::filesystem::create_symlink("..data/list.yaml", dir.File("list.yaml"));
  Start(dir.File("list.yaml"));
  ASSERT_TRUE(Hears("a:1")) << heard;
  release("2", "b:1");
  EXPECT_TRUE(Hears("b:1")) << heard;
  std::filesystem::remove_all(dir.File("..1"));
  release("3", "c:1");
  EXPECT_TRUE(Hears("c:1")) << heard;
}

// `ln -sfn` removes the link and makes it anew.
TEST_F(FileSourceTest, ALinkToADirectoryThatIsMadeAnewIsSeen) {
  for (const char* release : {"one", "two"}) {
    std::filesystem::create_directory(dir.File(release));
    dir.Write(std::string(release) + "/list.yaml", Yaml(std::string(release) + ":1"));
  }
  std::filesystem::create_directory_symlink("one", dir.File("current"));
  Start(dir.File("current/list.yaml"));
  ASSERT_TRUE(Hears("one:1")) << heard;
  std::filesystem::remove(dir.File("current"));
  std::filesystem::create_directory_symlink("two", dir.File("current"));
  EXPECT_TRUE(Hears("two:1")) << heard;
  dir.Write("two/list.yaml", Yaml("three:1"));
  EXPECT_TRUE(Hears("three:1")) << "the way is another one now: " << heard;
}

TEST_F(FileSourceTest, LinksInACircleAreAnError) {
  std::filesystem::create_symlink("b", dir.File("a"));
  std::filesystem::create_symlink("a", dir.File("b"));
  Start(dir.File("a"));
  EXPECT_TRUE(Hears("error: " + dir.File("a") + ": cannot be read: Too many levels of symbolic links")) << heard;
}

TEST_F(FileSourceTest, OtherFilesOfTheDirectoryAreNoNews) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  AskAndWait();
  const int before = answers;
  dir.Write("other.yaml", Yaml("b:1"));
  AskAndWait();
  EXPECT_EQ(answers, before + 1);
}

TEST_F(FileSourceTest, MistakesAreNamedWithTheirPlace) {
  Start(dir.Write("list.yaml", "endpoints:\n  - {address: a:1, wieght: 2}\n"));
  EXPECT_TRUE(
      Hears("error: " + dir.File("list.yaml") + ":2:20: endpoints[0].wieght: unknown key; did you mean \"weight\"?"))
      << heard;
}

// What was cut off is no empty list.
TEST_F(FileSourceTest, AFileWithoutTheListIsAnError) {
  Start(dir.Write("list.yaml", ""));
  EXPECT_TRUE(Hears("error: " + dir.File("list.yaml") + ": endpoints: is missing")) << heard;
}

TEST_F(FileSourceTest, JsonIsAList) {
  Start(dir.Write("list.json", R"({"endpoints": [{"address": "a:1", "weight": 2}, "b:1"]})"));
  EXPECT_TRUE(Hears("a:1 b:1")) << heard;
}

// Where inotify tells nothing, as on a network file system: the clock does.
TEST_F(FileSourceTest, HurriedItLooksAtTheFile) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  AskAndWait();
  const int before = answers;
  source->Hurry();
  bell->Ring();
  AskAndWait();
  EXPECT_EQ(answers, before + 1) << "the same file is an answer only where it was asked for";
}

// No event tells of what is written before the file is closed; a poll may come upon half of it.
TEST_F(FileSourceTest, AFileThatIsBeingWrittenIsReadWhenItHasSettled) {
  Start(dir.Write("list.yaml", Yaml("a:1")));
  ASSERT_TRUE(Hears("a:1")) << heard;
  std::ofstream file(dir.File("list.yaml"));
  file << "endpoints:\n" << std::flush;
  Look(FileSource::kPoll);
  for (const char* host : {"b", "c", "d"}) {
    file << "  - " << host << ":1\n" << std::flush;
    Look(FileSource::kSettle);
    EXPECT_EQ(heard, "a:1") << "it is being written";
  }
  Look(FileSource::kSettle);
  EXPECT_TRUE(Hears("b:1 c:1 d:1")) << "its writer may never close it: " << heard;
}

TEST_F(FileSourceTest, ACutOffListIsNoEmptyOne) {
  Start(dir.Write("list.yaml", "endpoints:\n"));
  EXPECT_TRUE(
      Hears("error: " + dir.File("list.yaml") + ":3:1: endpoints: has nothing; allowed: a list, or [] for none"))
      << heard;
  dir.Write("list.yaml", "endpoints: []\n");
  EXPECT_TRUE(Hears("")) << heard;
}

}  // namespace
}  // namespace sluice::discovery
