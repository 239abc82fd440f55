#include "config/file_text.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>

namespace sluice::config {

base::Result<std::string> ReadText(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) {
    text.resize(kFileBytesMax + 1);
    in.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<size_t>(in.gcount()));
  }
  if (in.bad() || !in.is_open() || (in.fail() && !in.eof()))
    return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read: " + std::strerror(errno));
  return text;
}

base::Result<std::string> ReadNamedText(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)))
    return base::MakeError(base::ErrorKind::kIo, path + ": cannot be read: it is a pipe or a socket, and no file");
  return ReadText(path);
}

}  // namespace sluice::config
