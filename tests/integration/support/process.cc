#include "support/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <utility>

#include "support/wait_until.h"

extern char** environ;

namespace sluice::integration {

Process::Process(const std::string& program, const std::vector<std::string>& arguments, std::string log)
    : log_(std::move(log)) {
  const std::string path = std::string(SLUICE_BIN_DIR) + "/" + program;
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  EXPECT_EQ(posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ), 0) << path;
  posix_spawn_file_actions_destroy(&actions);
}

Process::~Process() {
  if (Running()) {
    Signal(SIGKILL);
    Wait(kLongWait);
  }
}

void Process::Signal(int signal) const {
  if (!code_ && pid_ > 0) kill(pid_, signal);
}

bool Process::Running() {
  if (code_) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return true;
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::optional<int> Process::Wait(std::chrono::milliseconds bound) {
  if (!WaitUntil([this] { return !Running(); }, bound)) return std::nullopt;
  return code_;
}

std::string Process::Output() const {
  std::ifstream file(log_);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

size_t Process::ResidentBytes() const {
  std::ifstream file("/proc/" + std::to_string(pid_) + "/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

Finished RunProgram(const std::string& program, const std::vector<std::string>& arguments, const std::string& log) {
  Process process(program, arguments, log);
  const auto code = process.Wait(kLongWait);
  EXPECT_TRUE(code.has_value()) << program << " does not end";
  return {code.value_or(-1), process.Output()};
}

}  // namespace sluice::integration
