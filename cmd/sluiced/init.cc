#include "sluiced/init.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "first_config.h"

namespace sluice::daemon {
namespace {

// All of it or none.
bool Write(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    text.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

int Failed(const std::string& path) {
  std::fprintf(stderr, "sluiced: %s: %s%s\n", path.c_str(), std::strerror(errno),
               errno == EEXIST ? "; init changes no file that is there" : "");
  return 1;
}

}  // namespace

std::string_view FirstConfig() { return kFirstConfig; }

int WriteFirstConfig(const std::string& path) {
  if (path.empty()) return Write(STDOUT_FILENO, FirstConfig()) ? 0 : Failed("standard output");
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return Failed(path);
  if (!Write(fd, FirstConfig()) || ::close(fd) != 0) {
    const int code = Failed(path);
    ::unlink(path.c_str());
    return code;
  }
  std::fprintf(stderr, "%s is written; what you will change in it is marked with <--\n", path.c_str());
  return 0;
}

}  // namespace sluice::daemon
