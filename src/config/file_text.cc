#include "config/file_text.h"

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

}  // namespace sluice::config
