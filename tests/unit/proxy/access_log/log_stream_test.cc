// LogStream without the thread: each test turns its rounds.
#include "proxy/access_log/log_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

#include "support/captured_log.h"
#include "support/malloc_counter.h"
#include "unit/proxy/access_log/log_lines.h"

namespace sluice::proxy {
namespace {

class LogStreamTest : public testing::Test {
 public:
  LogStreamTest() {
    char folder[] = "/tmp/sluice-log-XXXXXX";
    EXPECT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~LogStreamTest() override {
    for (const int fd : pipe_) {
      if (fd >= 0) ::close(fd);
    }
    for (const char* name : {"/log", "/log.1"}) ::unlink((folder_ + name).c_str());
    ::rmdir(folder_.c_str());
  }

  std::string Path() const { return folder_ + "/log"; }
  // A path that leads into a pipe that holds `bytes`.
  std::string MakePipe(int bytes = 4096) {
    EXPECT_EQ(::pipe2(pipe_.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(pipe_[1], F_SETPIPE_SZ, bytes), bytes);
    EXPECT_EQ(::fcntl(pipe_[0], F_SETFL, O_NONBLOCK), 0);
    return "/proc/self/fd/" + std::to_string(pipe_[1]);
  }
  std::string ReadPipe(size_t max) {
    std::string out(max, ' ');
    const ssize_t n = ::read(pipe_[0], out.data(), max);
    out.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return out;
  }
  void Start(const std::string& path, uint32_t workers = 1) {
    AccessLogOptions options = TextLog(path);
    options.fields = {{.field = AccessField::kPeer}, {.field = AccessField::kAttempts}, {.field = AccessField::kPath}};
    options.buffer_bytes = 256 << 10;
    stream_ = std::make_unique<LogStream>(options, workers, totals_);
    ASSERT_TRUE(stream_->Open().ok());
  }
  // Lines of a worker are numbered from 1 on.
  void Write(uint32_t worker = 0, int count = 1) {
    const std::string peer = "w" + std::to_string(worker);
    for (int i = 0; i < count; ++i) {
      CallRecord call;
      call.peer = peer;
      call.attempts = ++numbers_[worker];
      call.path = path_;
      stream_->Write(call, worker);
    }
  }
  LogStream::Result Round() { return stream_->Round(now_ += std::chrono::milliseconds(50), {}); }
  static std::vector<std::string> Lines(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) out.push_back(line);
    return out;
  }
  std::vector<std::string> FileLines(const std::string& name = "/log") const {
    std::ifstream in(folder_ + name);
    std::stringstream text;
    text << in.rdbuf();
    return Lines(text.str());
  }
  std::string Line(uint32_t worker, uint32_t number) const {
    return "w" + std::to_string(worker) + " attempts=" + std::to_string(number) + " \"" + path_ + "\"";
  }

 protected:
  LogTotals totals_;
  std::unique_ptr<LogStream> stream_;
  base::TimePoint now_{std::chrono::hours(1)};
  std::array<int, 2> pipe_{-1, -1};
  std::array<uint32_t, 2> numbers_{};
  std::string folder_, path_ = "/pkg.Users/Get";
};

TEST_F(LogStreamTest, ARoundWritesEveryLineAndThoseOfAWorkerInOrder) {
  Start(Path(), 2);
  for (int i = 0; i < 500; ++i) {
    Write(0);
    Write(1, 2);
  }
  EXPECT_EQ(Round().lines, 1500u);
  std::array<uint32_t, 2> next{1, 1};
  const auto lines = FileLines();
  ASSERT_EQ(lines.size(), 1500u);
  for (const std::string& line : lines) {
    const uint32_t worker = line.starts_with("w1") ? 1 : 0;
    ASSERT_EQ(line, Line(worker, next[worker]++));
  }
  EXPECT_EQ(totals_.written.load(), 1500u);
  EXPECT_EQ(Round().lines, 0u);
}

TEST_F(LogStreamTest, APipeThatTakesALittleAtATimeGetsEveryLineWhole) {
  Start(MakePipe());
  path_ = "/" + std::string(300, 'p');
  Write(0, 500);
  std::string text;
  bool was_full = false;
  for (size_t step = 1; numbers_[0] > 0 && Lines(text).size() < 500; ++step) {
    ASSERT_LT(step, 10'000u);
    was_full |= Round().full;
    text += ReadPipe(1 + step * 37 % 5000);
  }
  EXPECT_TRUE(was_full);
  const auto lines = Lines(text);
  for (uint32_t i = 0; i < 500; ++i) ASSERT_EQ(lines[i], Line(0, i + 1));
  EXPECT_FALSE(Round().full);
  EXPECT_EQ(totals_.written.load(), 500u);
}

// Longer than PIPE_BUF, the most that a pipe takes as one.
TEST_F(LogStreamTest, ALineThatIsLongerThanAPipeTakesAtOnceIsWhole) {
  const std::string path = MakePipe();
  AccessLogOptions options = TextLog(path);
  for (int i = 0; i < 8; ++i) options.fields.push_back({.field = AccessField::kPath, .as = "k" + std::to_string(i)});
  stream_ = std::make_unique<LogStream>(options, 1, totals_);
  ASSERT_TRUE(stream_->Open().ok());
  path_ = std::string(1000, 'p');
  Write(0, 3);
  std::string text;
  for (int step = 0; step < 100; ++step) {
    Round();
    text += ReadPipe(1500);
  }
  const auto lines = Lines(text);
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), 8 * (1000 + 2 + 3) + 7u);
}

TEST_F(LogStreamTest, WhatAReaderThatStandsStillCostsIsCountedExactly) {
  test::CapturedLog said;
  Start(MakePipe());
  Write(0, 20'000);
  EXPECT_TRUE(Round().full);
  Write(0, 20'000);
  EXPECT_TRUE(Round().full);
  std::string text;
  for (int step = 0; step < 100'000 && (Round().full || !text.ends_with('\n')); ++step) text += ReadPipe(65536);
  text += ReadPipe(65536);
  Round();
  const auto lines = Lines(text);
  EXPECT_GT(totals_.dropped.load(), 1000u);
  EXPECT_EQ(lines.size() + totals_.dropped.load(), 40'000u);
  EXPECT_EQ(totals_.written.load(), lines.size());
  EXPECT_EQ(totals_.lost.load(), 0u);
  uint32_t last = 0;
  for (const std::string& line : lines) {
    uint32_t number = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "w0 attempts=%u", &number), 1);
    ASSERT_GT(number, last);
    ASSERT_EQ(line, Line(0, number));
    last = number;
  }
  now_ += LogStream::kDropsEnd;
  Round();
  const std::string text_said = said.Take();
  EXPECT_NE(text_said.find("it does not keep up"), std::string::npos) << text_said;
  EXPECT_NE(text_said.find(std::to_string(totals_.dropped.load()) + " lines were lost"), std::string::npos);
}

TEST_F(LogStreamTest, WhatIsLeftWhenTheTimeIsOverIsCountedAsLost) {
  Start(MakePipe());
  Write(0, 2000);
  EXPECT_TRUE(Round().full);
  stream_->BeginClose(now_);
  stream_->End(now_);
  EXPECT_TRUE(stream_->closed());
  const auto lines = Lines(ReadPipe(65536));
  EXPECT_GT(lines.size(), 0u);
  EXPECT_EQ(totals_.written.load(), lines.size());
  EXPECT_EQ(totals_.written.load() + totals_.lost.load(), 2000u);
}

TEST_F(LogStreamTest, AReaderThatIsGoneCostsTheLinesAndNothingElse) {
  Start(MakePipe());
  Round();
  ::close(std::exchange(pipe_[0], -1));
  Write(0, 10);
  EXPECT_FALSE(Round().full);
  EXPECT_EQ(totals_.lost.load(), 10u);
}

TEST_F(LogStreamTest, AFullDiskLosesLinesCountedAndTheNextOnesAreWhole) {
  Start(Path());
  Write(0, 100);
  Round();
  const size_t size = Line(0, 1).size() + 1;
  const rlim_t limit = 100 * size + size / 2 + 292;  // some lines more, and a part of one
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{limit, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  Write(0, 100);
  Round();
  Write(0, 5);
  Round();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  Write(0, 1);
  Round();
  const auto lines = FileLines();
  size_t whole = 0;
  for (const std::string& line : lines) {
    uint32_t number = 0;
    if (std::sscanf(line.c_str(), "w0 attempts=%u", &number) == 1 && line == Line(0, number)) ++whole;
  }
  EXPECT_EQ(whole + 1, lines.size());  // one was cut
  EXPECT_EQ(lines.back(), Line(0, 206));
  EXPECT_EQ(totals_.written.load(), whole);
  EXPECT_EQ(whole + totals_.lost.load(), 206u);
}

TEST_F(LogStreamTest, AfterARotationLinesGoToTheNewFile) {
  Start(Path());
  Write();
  Round();
  ASSERT_EQ(::rename(Path().c_str(), (folder_ + "/log.1").c_str()), 0);
  Write();
  Round();
  ASSERT_TRUE(stream_->Open().ok());
  Write();
  Round();
  EXPECT_EQ(FileLines("/log.1"), (std::vector{Line(0, 1), Line(0, 2)}));
  EXPECT_EQ(FileLines(), std::vector{Line(0, 3)});
}

TEST_F(LogStreamTest, ALineThatAPipeHasTakenInPartIsWholeInTheNextFile) {
  const std::string fifo = folder_ + "/log.1";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::symlink(fifo.c_str(), Path().c_str()), 0);
  pipe_[0] = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK);
  ASSERT_EQ(::fcntl(pipe_[0], F_SETPIPE_SZ, 4096), 4096);
  AccessLogOptions options = TextLog(Path());
  for (int i = 0; i < 8; ++i) options.fields.push_back({.field = AccessField::kPath, .as = "k" + std::to_string(i)});
  stream_ = std::make_unique<LogStream>(options, 1, totals_);
  ASSERT_TRUE(stream_->Open().ok());
  path_ = std::string(1000, 'p');
  Write();
  EXPECT_TRUE(Round().full);  // a part is in the pipe
  ASSERT_EQ(::unlink(Path().c_str()), 0);
  ASSERT_TRUE(stream_->Open().ok());
  EXPECT_FALSE(Round().full);
  const auto lines = FileLines();
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].size(), 8 * (1000 + 2 + 3) + 7u);
}

TEST_F(LogStreamTest, NeitherSideAllocatesForALine) {
  AccessLogOptions options = JsonLog("/dev/null");
  stream_ = std::make_unique<LogStream>(options, 1, totals_);
  ASSERT_TRUE(stream_->Open().ok());
  const CallRecord call = FailedCall();
  auto lines = [&] {
    for (int i = 0; i < 2000; ++i) stream_->Write(call, 0);
    EXPECT_EQ(Round().lines, 2000u);
  };
  lines();  // makes the batch's memory
  const uint64_t before = test::MallocsForTest();
  for (int i = 0; i < 10; ++i) lines();
  EXPECT_EQ(test::MallocsForTest() - before, 0u);
}

TEST_F(LogStreamTest, WorkersWakeTheThreadWhenMuchHasGatheredAndNotAfterEachLine) {
  Start(Path());
  Round();
  CallRecord call;
  int woken = 0, lines = 0;
  while (woken == 0 && ++lines < 100'000) woken += stream_->Write(call, 0);
  EXPECT_GT(lines, 1000);
  Round();
  EXPECT_FALSE(stream_->Write(call, 0));
  Round();
  stream_->WakeForAny();
  EXPECT_TRUE(stream_->Write(call, 0));
  EXPECT_FALSE(stream_->Empty());
}

}  // namespace
}  // namespace sluice::proxy
