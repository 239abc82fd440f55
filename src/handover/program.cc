#include "handover/program.h"

#include <sys/stat.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace sluice::handover {

Program Program::OfThisProcess(int argc, const char* const* argv) {
  Program out;
  for (int i = 0; i < argc; ++i) out.arguments.emplace_back(argv[i]);
  std::error_code error;
  const std::string_view name = argc > 0 ? argv[0] : "";
  std::filesystem::path path;
  if (name.find('/') != name.npos) {
    path = std::filesystem::absolute(name, error);
  } else {
    path = std::filesystem::read_symlink("/proc/self/exe", error);
  }
  if (!error && std::filesystem::exists(path, error)) out.path = path.string();
  return out;
}

bool Program::FileHasChanged() const {
  struct stat ours {
  }, now{};
  if (::stat("/proc/self/exe", &ours) != 0 || ::stat(path.c_str(), &now) != 0) return false;
  return ours.st_dev != now.st_dev || ours.st_ino != now.st_ino;
}

}  // namespace sluice::handover
