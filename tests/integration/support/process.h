// Process: a program of the build run as a child, with its output and its exit code; killed with the test at
// the latest.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace sluice::integration {

class Process {
 public:
  // `program` from the build's bin folder. Output and errors go to `log`, a file.
  Process(const std::string& program, const std::vector<std::string>& arguments, std::string log);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal) const;
  bool Running();
  // The exit code once it has ended by itself (128 + signal if by one); nothing if it does not within
  // `bound`.
  std::optional<int> Wait(std::chrono::milliseconds bound);
  std::string Output() const;
  pid_t pid() const { return pid_; }
  // Resident memory now.
  size_t ResidentBytes() const;

 private:
  const std::string log_;
  pid_t pid_ = -1;
  std::optional<int> code_;
};

// Runs a program to its end: exit code and output.
struct Finished {
  int code;
  std::string output;
};
Finished RunProgram(const std::string& program, const std::vector<std::string>& arguments, const std::string& log);

}  // namespace sluice::integration
