#include "handover/successor.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

extern char** environ;

namespace sluice::handover {
namespace {

// Where the new process has the socket: behind the standard streams.
constexpr int kSocket = 3;

struct SpawnActions {
  SpawnActions() { ::posix_spawn_file_actions_init(&actions); }
  SpawnActions(const SpawnActions&) = delete;
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions); }
  posix_spawn_file_actions_t actions;
};

// With null behind it; points into `texts`.
std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

base::Result<Successor> Successor::Start(const Program& program) {
  if (program.path.empty())
    return base::MakeError(base::ErrorKind::kIo, "the file that this process was started from is not known");
  auto pair = MessageSocket::MakePair();
  if (!pair) return pair.error();
  std::vector<std::string> arguments = program.arguments;
  if (arguments.empty()) arguments.push_back(program.path);
  std::vector<std::string> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
  environment.insert(environment.end(), program.environment.begin(), program.environment.end());
  std::string socket(kVariable);
  socket += '=';
  socket += std::to_string(kSocket);
  environment.push_back(std::move(socket));
  SpawnActions spawn;
  ::posix_spawn_file_actions_adddup2(&spawn.actions, pair->second.get(), kSocket);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, program.path.c_str(), &spawn.actions, nullptr, Pointers(arguments).data(),
                                   Pointers(environment).data());
  if (failed != 0)
    return base::MakeError(base::ErrorKind::kIo, "cannot start " + program.path + ": " + std::strerror(failed));
  return Successor(pid, Channel(std::move(pair->first)));
}

Successor::~Successor() {
  if (pid_ <= 0) return;
  channel_.Close();
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Channel Successor::LetGo() {
  pid_ = 0;
  return std::move(channel_);
}

void Successor::Reap(pid_t pid) { ::waitpid(pid, nullptr, WNOHANG); }

}  // namespace sluice::handover
