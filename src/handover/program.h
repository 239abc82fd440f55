// Program: how the daemon was started, so that it can be started again.
#pragma once

#include <string>
#include <vector>

namespace sluice::handover {

struct Program {
  std::string path;  // of the file; a new one may stand there by now
  std::vector<std::string> arguments;
  std::vector<std::string> environment;  // "NAME=value", besides the process's own

  // Of this process, before it changes its folder: `argv` as main has it. The path is not resolved: a symbolic link
  // may lead to another file the next time. An empty path: it could not be found.
  static Program OfThisProcess(int argc, const char* const* argv);
  // Whether the file at the path is another one than this process was started from.
  bool FileHasChanged() const;
};

}  // namespace sluice::handover
