// AccessLog with its thread.
#include "proxy/access_log/access_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>
#include <vector>

#include "unit/proxy/access_log/log_lines.h"

namespace sluice::proxy {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

struct Pipe {
  Pipe() {
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    EXPECT_EQ(::fcntl(ends[1], F_SETPIPE_SZ, 4096), 4096);
    path = "/proc/self/fd/" + std::to_string(ends[1]);
  }
  ~Pipe() {
    for (const int fd : ends) {
      if (fd >= 0) ::close(fd);
    }
  }
  void CloseOurWriteEnd() { ::close(std::exchange(ends[1], -1)); }
  bool Readable(milliseconds wait) const {
    pollfd one{ends[0], POLLIN, 0};
    return ::poll(&one, 1, static_cast<int>(wait.count())) == 1;
  }
  // What there is, at least a byte; empty at the end.
  std::string Read() const {
    std::string out(65536, ' ');
    const ssize_t n = ::read(ends[0], out.data(), out.size());
    out.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return out;
  }
  std::array<int, 2> ends{-1, -1};
  std::string path;
};

AccessLogOptions Numbered(const std::string& path) {
  AccessLogOptions options = TextLog(path);
  options.fields = {{.field = AccessField::kPeer}, {.field = AccessField::kRequestBytes, .as = "n"}};
  return options;
}

CallRecord Call(std::string_view peer, uint64_t number) {
  CallRecord call;
  call.peer = peer;
  call.request_bytes = number;
  return call;
}

std::shared_ptr<AccessLog> Opened(const AccessLogOptions& options, uint32_t workers = 1) {
  auto log = AccessLog::Open(options, workers);
  EXPECT_TRUE(log.ok());
  return *log;
}

TEST(AccessLog, AFileThatCannotBeOpenedIsAnError) {
  auto log = AccessLog::Open(JsonLog("/nonexistent/folder/log"), 1);
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().kind, base::ErrorKind::kIo);
  AccessLogOptions off;
  off.path = "/nonexistent/folder/log";
  const auto none = AccessLog::Open(off, 1);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE((*none)->enabled());
  (*none)->Write(FailedCall(), 0);
  EXPECT_TRUE((*none)->Reopen().ok());
  EXPECT_TRUE((*none)->Close(seconds(1)));
}

TEST(AccessLog, WhatWorkersWriteAtOnceIsAllThereInTheOrderOfEach) {
  constexpr uint32_t kWorkers = 3, kCalls = 30'000;
  const std::string path = testing::TempDir() + "/sluice-access-" + std::to_string(::getpid());
  AccessLogOptions options = Numbered(path);
  options.buffer_bytes = 8 << 20;
  const AccessLog::Totals before = AccessLog::AllTotals();
  auto log = Opened(options, kWorkers);
  std::vector<std::thread> workers;
  for (uint32_t w = 0; w < kWorkers; ++w) {
    workers.emplace_back([&log, w] {
      const std::string peer = "w" + std::to_string(w);
      for (uint32_t i = 1; i <= kCalls; ++i) log->Write(Call(peer, i), w);
    });
  }
  for (std::thread& worker : workers) worker.join();
  ASSERT_TRUE(log->Close(seconds(30)));
  const AccessLog::Totals after = AccessLog::AllTotals();
  EXPECT_EQ(after.written - before.written, kWorkers * kCalls);
  EXPECT_EQ(after.dropped, before.dropped);
  EXPECT_EQ(after.lost, before.lost);
  std::ifstream in(path);
  std::array<uint32_t, kWorkers> next{1, 1, 1};
  uint64_t lines = 0;
  for (std::string line; std::getline(in, line); ++lines) {
    const auto worker = static_cast<uint32_t>(line.at(1) - '0');
    ASSERT_LT(worker, kWorkers);
    ASSERT_EQ(line, "w" + std::to_string(worker) + " n=" + std::to_string(next[worker]++));
  }
  EXPECT_EQ(lines, kWorkers * kCalls);
  std::filesystem::remove(path);
}

TEST(AccessLog, ALineComesByItselfAlsoAfterALongPause) {
  Pipe pipe;
  auto log = Opened(Numbered(pipe.path));
  log->Write(Call("a", 1), 0);
  ASSERT_TRUE(pipe.Readable(seconds(20)));
  EXPECT_EQ(pipe.Read(), "a n=1\n");
  EXPECT_FALSE(pipe.Readable(milliseconds(1300)));  // the thread has begun to doze
  log->Write(Call("a", 2), 0);
  ASSERT_TRUE(pipe.Readable(seconds(20)));
  EXPECT_EQ(pipe.Read(), "a n=2\n");
}

TEST(AccessLog, FlushWaitsForWhatWasWritten) {
  Pipe pipe;
  auto log = Opened(Numbered(pipe.path));
  for (uint64_t i = 1; i <= 20; ++i) {
    log->Write(Call("a", i), 0);
    ASSERT_TRUE(AccessLog::Flush(seconds(20)));
    ASSERT_TRUE(pipe.Readable(milliseconds(0)));
    ASSERT_EQ(pipe.Read(), "a n=" + std::to_string(i) + "\n");
  }
}

TEST(AccessLog, ALogThatGoesWritesItsLinesAndClosesItsFile) {
  Pipe pipe;
  Opened(Numbered(pipe.path))->Write(Call("a", 1), 0);
  pipe.CloseOurWriteEnd();
  std::string text;
  for (std::string part; !(part = pipe.Read()).empty();) text += part;  // until the thread has closed it
  EXPECT_EQ(text, "a n=1\n");
}

TEST(AccessLog, AReaderThatStandsStillDelaysTheEndByTheBoundAndNoOtherLog) {
  Pipe stuck, good;
  const AccessLog::Totals before = AccessLog::AllTotals();
  auto log = Opened(Numbered(stuck.path));
  auto other = Opened(Numbered(good.path));
  for (uint64_t i = 1; i <= 5000; ++i) log->Write(Call("a", i), 0);
  ASSERT_TRUE(stuck.Readable(seconds(20)));  // full, or about to be
  other->Write(Call("b", 1), 0);
  ASSERT_TRUE(good.Readable(seconds(20)));
  EXPECT_EQ(good.Read(), "b n=1\n");
  const base::TimePoint began = base::Clock::Steady().Now();
  EXPECT_TRUE(log->Close(milliseconds(200)));
  EXPECT_GE(base::Clock::Steady().Now() - began, milliseconds(150));
  const AccessLog::Totals after = AccessLog::AllTotals();
  EXPECT_EQ(after.dropped, before.dropped);
  EXPECT_EQ(after.written - before.written + after.lost - before.lost, 5001u);
  EXPECT_GT(after.lost, before.lost);
  std::string text = stuck.Read();
  EXPECT_EQ(static_cast<uint64_t>(std::count(text.begin(), text.end(), '\n')), after.written - before.written - 1);
}

}  // namespace
}  // namespace sluice::proxy
