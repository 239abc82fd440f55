// PathCheck: whether files that the process will write can be, found out without making them.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::server {

// A file may be made beside `path` and renamed over it: its folder is there and may be written by this user. kIo:
// "WHAT PATH: why". Blocks.
base::Status CanReplace(std::string_view what, const std::string& path);
// `path` may be opened to append to: it is a file that this user may write, or CanReplace. kIo, as above. Blocks.
base::Status CanAppend(std::string_view what, const std::string& path);
// What the first change of a list would find out of the state file, in an incident. `path` empty: there is none.
inline base::Status CheckStateFile(const std::string& path) {
  return path.empty() ? base::Ok() : CanReplace("state_file", path);
}

}  // namespace sluice::server
