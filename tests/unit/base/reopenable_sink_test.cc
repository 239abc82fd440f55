#include "base/reopenable_sink.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/async.h>
#include <spdlog/async_logger.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sluice::base {
namespace {

class ReopenableSinkTest : public testing::Test {
 protected:
  ReopenableSinkTest() {
    ::signal(SIGXFSZ, SIG_IGN);
    EXPECT_TRUE(sink_->Open().ok());
  }
  ~ReopenableSinkTest() override {
    Grow(RLIM_INFINITY);
    std::filesystem::remove(path_);
    std::filesystem::remove(path_ + ".1");
  }
  // Files of this process may be as long as this.
  static void Grow(rlim_t bytes) {
    rlimit limit{};
    ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  void Write(const std::string& text) { sink_->log(spdlog::details::log_msg("test", spdlog::level::info, text)); }
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("sluice-sink-" + std::to_string(::getpid()) + ".log")).string();
  std::shared_ptr<ReopenableSink> sink_ = std::make_shared<ReopenableSink>(path_, STDERR_FILENO, /*raw=*/true);
};

TEST_F(ReopenableSinkTest, ALineIsInTheFileWhenItIsWritten) {
  Write("one");
  EXPECT_EQ(Read(path_), "one\n");
  Write("");
  EXPECT_EQ(Read(path_), "one\n\n");
}

TEST_F(ReopenableSinkTest, LinesGoToTheNewFileAfterARotation) {
  Write("one");
  std::filesystem::rename(path_, path_ + ".1");
  Write("two");
  ASSERT_TRUE(sink_->Open().ok());
  Write("three");
  EXPECT_EQ(Read(path_ + ".1"), "one\ntwo\n");
  EXPECT_EQ(Read(path_), "three\n");
}

TEST_F(ReopenableSinkTest, ALineThatIsCutDoesNotSpoilTheNext) {
  Write("one");
  Grow(7);
  Write("number two");
  Write("three");
  Grow(RLIM_INFINITY);
  Write("four");
  Write("five");
  EXPECT_EQ(Read(path_), "one\nnum\nfour\nfive\n");
}

TEST_F(ReopenableSinkTest, ALineWithoutItsEndIsEndedBeforeTheNext) {
  Grow(3);  // all but the end
  Write("one");
  Grow(RLIM_INFINITY);
  Write("two");
  EXPECT_EQ(Read(path_), "one\ntwo\n");
}

TEST_F(ReopenableSinkTest, LinesLostWholeLeaveNoTrace) {
  Write("one");
  Grow(4);
  Write("two");
  Grow(RLIM_INFINITY);
  Write("three");
  EXPECT_EQ(Read(path_), "one\nthree\n");
}

// What stands in the process's own log about a loss. The logger is as the daemon's: another thread writes.
TEST_F(ReopenableSinkTest, ALossIsSaidOnceWhenItBeginsAndOnceWhenItEnds) {
  auto former = spdlog::default_logger();
  int ends[2];  // a pipe may grow as it likes
  ASSERT_EQ(::pipe(ends), 0);
  // Outlives the pool's thread, which uses it by a bare pointer: TSan does not see how spdlog counts its users.
  std::shared_ptr<spdlog::logger> logger;
  {
    auto pool = std::make_shared<spdlog::details::thread_pool>(64, 1);
    auto heard = std::make_shared<ReopenableSink>("", ends[1], /*raw=*/true);
    ASSERT_TRUE(heard->Open().ok());
    logger =
        std::make_shared<spdlog::async_logger>("heard", heard, pool, spdlog::async_overflow_policy::overrun_oldest);
    spdlog::set_default_logger(logger);
    ReopenableSink full("/dev/full", STDERR_FILENO, /*raw=*/true);
    ASSERT_TRUE(full.Open().ok());
    for (int i = 0; i < 5; ++i) full.log(spdlog::details::log_msg("test", spdlog::level::info, "lost"));
    Grow(0);
    Write("lost");
    Write("lost");
    Grow(RLIM_INFINITY);
    Write("kept");
    spdlog::set_default_logger(former);
  }  // the pool's thread has written all
  ::close(ends[1]);
  std::string said(4096, '\0');
  const ssize_t bytes = ::read(ends[0], said.data(), said.size());
  ::close(ends[0]);
  ASSERT_GT(bytes, 0);
  said.resize(static_cast<size_t>(bytes));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 3) << said;
  EXPECT_NE(said.find("log /dev/full: cannot be written; lines are lost: No space left on device"), std::string::npos)
      << said;
  EXPECT_NE(said.find("log " + path_ + ": writable again; 2 lines were lost: File too large"), std::string::npos)
      << said;
}

// As at the end of the process, when there is no logger any more.
TEST_F(ReopenableSinkTest, LossesAreNotSaidWhereThatIsOff) {
  auto former = spdlog::default_logger();
  ReopenableSink::SayLosses(false);
  spdlog::set_default_logger(nullptr);
  Grow(0);
  Write("lost");
  Grow(RLIM_INFINITY);
  Write("kept");
  spdlog::set_default_logger(former);
  ReopenableSink::SayLosses(true);
  EXPECT_EQ(Read(path_), "kept\n");
}

TEST_F(ReopenableSinkTest, AFileThatCannotBeOpenedIsAnErrorAndTheFormerStays) {
  ReopenableSink nowhere("/nonexistent/log", STDERR_FILENO, /*raw=*/true);
  EXPECT_EQ(nowhere.Open().error().kind, ErrorKind::kIo);
}

}  // namespace
}  // namespace sluice::base
