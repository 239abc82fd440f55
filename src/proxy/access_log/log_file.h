// LogFile: where lines go, written without a wait: a file that can be opened anew under its name, or a standard stream.
//
// A file takes what it is given. A pipe, a socket or a terminal may be full, because its reader does not keep up: it is
// asked first, and a pipe gets at most PIPE_BUF bytes at once, whole lines where they fit, which it takes as a whole or
// not at all. So the log's thread does not stand in write(2), though the descriptor, which others share, is blocking.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::proxy {

class LogFile {
 public:
  // `standard`: the descriptor that is used where `path` is empty.
  LogFile(std::string path, int standard) : path_(std::move(path)), standard_(standard) {}
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Opens, or opens again: what is written after a following Adopt goes there. kIo: what was open stays in use. Any
  // thread. A named pipe needs its reader.
  base::Status Open();

  // --- One thread ---

  // Uses what was opened last. True: it is another than before.
  bool Adopt();
  struct Written {
    size_t bytes = 0;
    bool full = false;  // nothing more can be taken now
    int error = 0;      // errno
  };
  // Takes from the front of `lines` (not empty); as much as it can, but it may be less.
  Written Write(std::string_view lines);
  // To wait for room with poll(2); -1: there is never a wait.
  int poll_fd() const { return kind_ == Kind::kFile ? -1 : fd_; }
  std::string_view name() const { return path_.empty() ? "the standard output" : std::string_view(path_); }

 private:
  enum class Kind : uint8_t { kFile, kPipe, kSocket };
  static Kind KindOf(int fd);
  bool HasRoom() const;
  void Close(int fd) const;

  const std::string path_;
  const int standard_;
  std::atomic<int> opened_{-1};  // to be adopted
  int fd_ = -1;
  Kind kind_ = Kind::kFile;
};

}  // namespace sluice::proxy
