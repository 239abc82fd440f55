#include "proxy/access_log/log_file.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/log_open.h"

namespace sluice::proxy {

LogFile::~LogFile() {
  Close(opened_.load(std::memory_order_acquire));
  Close(fd_);
}

void LogFile::Close(int fd) const {
  if (fd >= 0 && fd != standard_) ::close(fd);
}

base::Status LogFile::Open() {
  // O_NONBLOCK: of a named pipe that has no reader, an error instead of a wait without end.
  const base::Result<int> fd = path_.empty() ? base::Result<int>(standard_) : base::OpenLog(path_, O_NONBLOCK);
  if (!fd.ok()) return fd.error();
  // Release: pairs with the acquire in Adopt. What was opened and never adopted is closed here.
  Close(opened_.exchange(*fd, std::memory_order_acq_rel));
  return base::Ok();
}

bool LogFile::Adopt() {
  if (opened_.load(std::memory_order_relaxed) < 0) return false;
  const int fd = opened_.exchange(-1, std::memory_order_acq_rel);
  if (fd == fd_) return false;
  Close(fd_);
  fd_ = fd;
  kind_ = KindOf(fd);
  return true;
}

LogFile::Kind LogFile::KindOf(int fd) {
  struct stat of {};
  if (::fstat(fd, &of) != 0) return Kind::kFile;
  if (S_ISSOCK(of.st_mode)) return Kind::kSocket;
  // A terminal stops as a pipe does; other devices, as /dev/null, are files.
  return S_ISFIFO(of.st_mode) || (S_ISCHR(of.st_mode) && ::isatty(fd) == 1) ? Kind::kPipe : Kind::kFile;
}

bool LogFile::HasRoom() const {
  pollfd one{fd_, POLLOUT, 0};
  return ::poll(&one, 1, 0) != 0;  // an error is the write's to tell
}

LogFile::Written LogFile::Write(std::string_view lines) {
  if (kind_ == Kind::kPipe) {
    if (!HasRoom()) return {.full = true};
    // pipe(7): POLLOUT means room for PIPE_BUF bytes, and so many are written as one.
    if (lines.size() > PIPE_BUF) {
      const size_t end = lines.substr(0, PIPE_BUF).rfind('\n');
      lines = lines.substr(0, end == lines.npos ? PIPE_BUF : end + 1);
    }
  }
  for (;;) {
    const ssize_t n = kind_ == Kind::kSocket ? ::send(fd_, lines.data(), lines.size(), MSG_DONTWAIT | MSG_NOSIGNAL)
                                             : ::write(fd_, lines.data(), lines.size());
    if (n >= 0) return {.bytes = static_cast<size_t>(n)};
    if (errno == EAGAIN || errno == EWOULDBLOCK) return {.full = true};
    if (errno != EINTR) return {.error = errno};
  }
}

}  // namespace sluice::proxy
