#include "base/log_open.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace sluice::base {
namespace {

Error CannotOpen(const std::string& path, const std::string& why) {
  return MakeError(ErrorKind::kIo, "cannot open " + path + ": " + why);
}

// Where the link at `path` leads. The link itself is held open, so that owner and target are those of one link.
Result<std::string> TargetOf(const std::string& path) {
  const int link = ::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (link < 0) return CannotOpen(path, std::strerror(errno));
  struct stat of {};
  std::array<char, PATH_MAX> target;
  const bool known = ::fstat(link, &of) == 0;
  const ssize_t size = known ? ::readlinkat(link, "", target.data(), target.size()) : -1;
  const int error = errno;
  ::close(link);
  if (size < 0) return CannotOpen(path, std::strerror(error));
  if (of.st_uid != 0 && of.st_uid != ::geteuid())
    return CannotOpen(path, "it is a symbolic link of user " + std::to_string(of.st_uid) +
                                "; links are followed that root or this process's user owns");
  std::string to(target.data(), static_cast<size_t>(size));
  if (to.starts_with('/')) return to;
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? to : path.substr(0, slash + 1) + to;
}

// Links that the kernel makes (/proc/self/fd/1) lead to open files, whose names need not exist.
bool IsKernels(const std::string& path) { return path.starts_with("/proc/"); }

}  // namespace

Result<int> OpenLog(const std::string& path, int flags) {
  constexpr int kLinksMax = 8;
  flags |= O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  std::string at = path;
  for (int links = 0; links <= kLinksMax; ++links) {
    const int fd = ::open(at.c_str(), IsKernels(at) ? flags : flags | O_NOFOLLOW, kLogMode);
    if (fd >= 0) return fd;
    if (errno != ELOOP || IsKernels(at)) return CannotOpen(path, std::strerror(errno));
    Result<std::string> target = TargetOf(at);
    if (!target.ok()) return target.error();
    at = *std::move(target);
  }
  return CannotOpen(path, std::strerror(ELOOP));
}

}  // namespace sluice::base
