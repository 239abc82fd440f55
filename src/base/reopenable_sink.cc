#include "base/reopenable_sink.h"

#include <poll.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/log.h"
#include "base/log_open.h"

namespace sluice::base {
namespace {

// At the end of the process background threads write their last lines while the logger goes.
std::mutex say_mutex;
bool say_losses = true;  // under say_mutex
std::atomic<TimePoint::rep> wait_until{kNever.time_since_epoch().count()};

}  // namespace

void ReopenableSink::SayLosses(bool on) {
  std::lock_guard lock(say_mutex);
  say_losses = on;
}

void ReopenableSink::SayIfHeard(const std::function<void()>& say) {
  std::lock_guard lock(say_mutex);
  if (say_losses) say();
}

void ReopenableSink::WaitUntil(TimePoint when) {
  wait_until.store(when.time_since_epoch().count(), std::memory_order_relaxed);
}

// False: there is none, and the time is over. An error is the write's to tell. A line of a length that a pipe does not
// take as one (PIPE_BUF) may still have to wait in the write.
bool ReopenableSink::WaitForRoom() const {
  constexpr int kLookMillis = 50;
  pollfd one{fd_, POLLOUT, 0};
  for (;;) {
    const auto now = Clock::Steady().Now().time_since_epoch().count();
    const bool over = now >= wait_until.load(std::memory_order_relaxed);
    if (::poll(&one, 1, over ? 0 : kLookMillis) != 0) return true;
    if (over) return false;
  }
}

ReopenableSink::~ReopenableSink() { CloseOurs(); }

void ReopenableSink::CloseOurs() {
  if (fd_ >= 0 && fd_ != standard_) ::close(fd_);
}

Status ReopenableSink::Open() {
  const Result<int> opened = path_.empty() ? Result<int>(standard_) : OpenLog(path_, 0);
  if (!opened.ok()) return opened.error();
  std::lock_guard lock(mutex_);
  CloseOurs();
  fd_ = *opened;
  cut_ = false;
  return Ok();
}

void ReopenableSink::sink_it_(const spdlog::details::log_msg& message) {
  if (fd_ < 0) return;
  if (raw_) return Write({message.payload.data(), message.payload.size()}, "\n");
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  Write({line.data(), line.size()}, "");
}

void ReopenableSink::Write(std::string_view text, std::string_view end) {
  auto part = [](std::string_view bytes) { return iovec{const_cast<char*>(bytes.data()), bytes.size()}; };
  // What is left of a line that was cut gets an end of its own.
  std::array<iovec, 3> parts = {part(cut_ ? "\n" : ""), part(text), part(end)};
  if (!WaitForRoom()) return Lost(EAGAIN);
  size_t from = 0;
  while (from < parts.size()) {
    const ssize_t n = ::writev(fd_, &parts[from], static_cast<int>(parts.size() - from));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Lost(errno);
    for (size_t left = static_cast<size_t>(n); from < parts.size(); ++from) {
      const size_t taken = std::min(left, parts[from].iov_len);
      left -= taken;
      if (taken > 0) cut_ = true;  // until the end is written too
      parts[from] = {static_cast<char*>(parts[from].iov_base) + taken, parts[from].iov_len - taken};
      if (parts[from].iov_len > 0) break;
    }
  }
  cut_ = false;
  if (lost_ == 0) return;
  SayIfHeard([this] {
    SLUICE_LOG_WARN("log {}: writable again; {} lines were lost: {}", name(), lost_, std::strerror(error_));
  });
  lost_ = 0;
}

void ReopenableSink::Lost(int error) {
  error_ = error;
  if (lost_++ > 0) return;
  SayIfHeard([&] { SLUICE_LOG_ERROR("log {}: cannot be written; lines are lost: {}", name(), std::strerror(error)); });
}

}  // namespace sluice::base
