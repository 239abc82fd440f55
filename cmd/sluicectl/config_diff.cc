#include "sluicectl/config_diff.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "config/config.h"
#include "config/dump.h"
#include "config/dump_diff.h"

namespace sluice::ctl {

int PrintConfigDiff(const std::string& running, const std::string& file, std::string wanted,
                    std::vector<std::string> warnings) {
  if (!file.empty()) {
    const config::ParseResult parsed = config::Load(file);
    for (const config::ConfigError& error : parsed.errors)
      std::fprintf(stderr, "error: %s\n", error.ToString().c_str());
    if (!parsed.ok()) return kDiffTrouble;
    std::error_code none;
    wanted = config::Dump(parsed.config, {std::filesystem::current_path(none).string(), true});
    // Where what the daemon's refers to is not to be seen from here, only this is left out.
    // Both as dumps say them: with the same folder for relative names of files.
    const config::ParseResult now = config::Parse(running, "running"), then = config::Parse(wanted, "wanted");
    if (now.ok() && then.ok()) warnings = config::RestartOnlyChanges(now.config, then.config);
  }
  const auto lines = config::DiffDumps(running, wanted);
  if (!lines.ok()) {
    std::fprintf(stderr, "sluicectl: %s\n", lines.error().detail.c_str());
    return kDiffTrouble;
  }
  for (const std::string& line : *lines) std::printf("%s\n", line.c_str());
  if (std::fflush(stdout) != 0) return kDiffTrouble;
  for (const std::string& warning : warnings) std::fprintf(stderr, "note: %s\n", warning.c_str());
  return lines->empty() ? kDiffSame : kDiffDiffers;
}

}  // namespace sluice::ctl
