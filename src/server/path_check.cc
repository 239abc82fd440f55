#include "server/path_check.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sluice::server {
namespace {

base::Error Bad(std::string_view what, const std::string& path, const std::string& why) {
  return base::MakeError(base::ErrorKind::kIo, std::string(what).append(" ").append(path).append(": ").append(why));
}

}  // namespace

base::Status CanReplace(std::string_view what, const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  const std::string folder = parent.empty() ? std::string(1, '.') : parent;
  struct stat info {};
  if (::stat(folder.c_str(), &info) != 0) return Bad(what, path, "the folder " + folder + ": " + std::strerror(errno));
  if (!S_ISDIR(info.st_mode)) return Bad(what, path, folder + " is no folder");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return Bad(what, path, "no file can be made in the folder " + folder + ": " + std::strerror(errno));
  return base::Ok();
}

base::Status CanAppend(std::string_view what, const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return errno == ENOENT ? CanReplace(what, path) : Bad(what, path, std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) return Bad(what, path, "is a folder");
  if (::access(path.c_str(), W_OK) != 0) return Bad(what, path, std::strerror(errno));
  return base::Ok();
}

}  // namespace sluice::server
