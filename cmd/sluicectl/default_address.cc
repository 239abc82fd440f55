#include "sluicectl/default_address.h"

#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

namespace sluice::ctl {

std::vector<std::string> AdminSockets(const char* runtime_directory, const char* xdg_runtime_dir) {
  std::vector<std::string> paths;
  const std::string_view service(runtime_directory != nullptr ? runtime_directory : "");
  if (service.starts_with('/')) paths.push_back(std::string(service.substr(0, service.find(':'))) + "/admin.sock");
  const std::string_view login(xdg_runtime_dir != nullptr ? xdg_runtime_dir : "");
  if (login.starts_with('/')) paths.push_back(std::string(login) + "/sluice-admin.sock");
  paths.emplace_back("/run/sluice/admin.sock");  // deploy/sluiced.service
  paths.emplace_back("/tmp/sluice-admin.sock");
  return paths;
}

base::Result<std::string> FindAddress(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    struct stat socket {
    }, folder{};
    if (::stat(path.c_str(), &socket) != 0 || !S_ISSOCK(socket.st_mode)) continue;
    const bool shared =
        ::stat(path.substr(0, path.rfind('/')).c_str(), &folder) != 0 || (folder.st_mode & S_IWOTH) != 0;
    if (!shared || socket.st_uid == ::geteuid() || socket.st_uid == 0) return "unix:" + path;
    return base::MakeError(base::ErrorKind::kConflict, path + " was made by the user " + std::to_string(socket.st_uid) +
                                                           ", perhaps not by the daemon; --address unix:" + path +
                                                           " takes it all the same");
  }
  return "unix:" + paths.back();
}

}  // namespace sluice::ctl
