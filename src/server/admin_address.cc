#include "server/admin_address.h"

#include <string_view>

namespace sluice::server {

std::string DefaultAdminAddress(const char* runtime_directory, const char* xdg_runtime_dir) {
  const std::string_view service(runtime_directory != nullptr ? runtime_directory : "");
  if (service.starts_with('/')) return "unix:" + std::string(service.substr(0, service.find(':'))) + "/admin.sock";
  const std::string_view login(xdg_runtime_dir != nullptr ? xdg_runtime_dir : "");
  if (login.starts_with('/')) return "unix:" + std::string(login) + "/sluice-admin.sock";
  return "unix:/tmp/sluice-admin.sock";
}

}  // namespace sluice::server
