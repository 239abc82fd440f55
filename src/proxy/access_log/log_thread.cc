#include "proxy/access_log/log_thread.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "base/futex.h"

namespace sluice::proxy {
namespace {

// Beyond its bound a close waits so long for a thread that stands in a system call.
constexpr std::chrono::milliseconds kGrace{200};

base::TimePoint Now() { return base::Clock::Steady().Now(); }

// From the steady clock to the time since 1970: of a line's time, which is taken as a date.
base::Nanos WallOffset(base::TimePoint now) {
  return std::chrono::system_clock::now().time_since_epoch() - now.time_since_epoch();
}

}  // namespace

LogThread& LogThread::Instance() {
  static auto* const instance = new LogThread();
  return *instance;
}

void LogThread::Add(std::shared_ptr<LogStream> stream) {
  std::lock_guard lock(mutex_);
  streams_.push_back(std::move(stream));
  if (!std::exchange(running_, true)) std::thread([this] { Run(); }).detach();
  Ring();
}

void LogThread::BeginClose(LogStream& stream, base::Nanos bound) {
  stream.BeginClose(Now() + bound);
  Ring();
}

bool LogThread::Close(LogStream& stream, base::Nanos bound) {
  BeginClose(stream, bound);
  const base::TimePoint until = Now() + bound + kGrace;
  for (;;) {
    const uint32_t seen = done_.load(std::memory_order_acquire);
    if (stream.closed()) return true;
    const base::Nanos left = until - Now();
    if (left <= base::Nanos(0)) return false;
    base::FutexWaitFor(done_, seen, left.count());
  }
}

bool LogThread::Flush(base::Nanos bound) {
  const base::TimePoint until = Now() + bound;
  {
    std::lock_guard lock(mutex_);
    if (streams_.empty()) return true;
  }
  // seq_cst, as the load in Run: a flush that a round does not know of has rung the bell for the next one.
  const uint32_t mine = flushes_.fetch_add(1, std::memory_order_seq_cst) + 1;
  Ring();
  for (;;) {
    const uint32_t seen = done_.load(std::memory_order_acquire);
    if (static_cast<int32_t>(flushed_.load(std::memory_order_acquire) - mine) >= 0) return true;
    const base::Nanos left = until - Now();
    if (left <= base::Nanos(0)) return false;
    base::FutexWaitFor(done_, seen, left.count());
  }
}

void LogThread::Run() {
  ::pthread_setname_np(::pthread_self(), "access-log");
  last_line_ = Now();
  for (;;) {
    bell_.Hear();
    const uint32_t asked = flushes_.load(std::memory_order_seq_cst);
    std::vector<std::shared_ptr<LogStream>> streams;
    {
      std::lock_guard lock(mutex_);
      streams = streams_;
    }
    const Seen seen = RoundOfAll(streams);
    if (Remove()) return;
    if (!seen.full && asked != flushed_.load(std::memory_order_relaxed)) TellWaiters(asked);
    Wait(streams, seen.full);
  }
}

LogThread::Seen LogThread::RoundOfAll(const std::vector<std::shared_ptr<LogStream>>& streams) {
  Seen seen;
  const base::TimePoint now = Now();
  const base::Nanos offset = WallOffset(now);
  for (const auto& stream : streams) {
    // Asked before the round: what was written before the close began is in it.
    const bool closing = stream->closing();
    const LogStream::Result result = stream->Round(now, offset);
    seen.lines += result.lines;
    seen.full |= result.full;
    if (closing && (!result.full || now >= stream->deadline())) stream->End(now);
  }
  if (seen.lines > 0) last_line_ = now;
  return seen;
}

// Those that are closed. True: there is none left, and the thread ends.
bool LogThread::Remove() {
  std::lock_guard lock(mutex_);
  const size_t removed = std::erase_if(streams_, [](const auto& stream) { return stream->closed(); });
  if (streams_.empty()) running_ = false;
  // Without a log there is nothing to flush.
  const std::atomic<uint32_t>& flushed = streams_.empty() ? flushes_ : flushed_;
  if (removed > 0) TellWaiters(flushed.load(std::memory_order_relaxed));
  return streams_.empty();
}

void LogThread::TellWaiters(uint32_t flushed) {
  flushed_.store(flushed, std::memory_order_release);
  done_.fetch_add(1, std::memory_order_release);
  base::FutexWake(done_, INT32_MAX);
}

void LogThread::Wait(const std::vector<std::shared_ptr<LogStream>>& streams, bool full) {
  absl::InlinedVector<pollfd, 4> fds{{bell_.fd(), POLLIN, 0}};
  if (full) {
    for (const auto& stream : streams) {
      if (stream->full()) fds.push_back({stream->poll_fd(), POLLOUT, 0});
    }
  }
  const bool doze = !full && Now() - last_line_ >= kDozeAfter && MayDoze(streams);
  ::poll(fds.data(), fds.size(), doze ? -1 : static_cast<int>(kTick.count()));
}

// From here on the first record rings. A record before that is seen here (concurrent/record_ring.h).
bool LogThread::MayDoze(const std::vector<std::shared_ptr<LogStream>>& streams) {
  if (bell_.fd() < 0) return false;
  for (const auto& stream : streams) stream->WakeForAny();
  concurrent::RecordRingSync::HeavyBarrier();
  return std::all_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->Empty(); });
}

}  // namespace sluice::proxy
