// CountSystemCalls: which system calls a stretch of code makes, and how many, exactly: a forked copy of this process
// runs it under ptrace, which stops at system calls only. Whatever library makes them is counted, unlike with counters
// in our own wrappers, and the program's own time between them is not touched.
#pragma once

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>

#include "base/check.h"

namespace sluice::test {

// System calls by number, of the thread that calls `work`, while counting is on: it is off at first, and each call of
// what `work` is given switches. Nothing where this process may not trace a child. The child ends with status 0, or the
// test's process ends here: a failed check of the child's is a failure of the test.
using SystemCalls = std::map<long, uint64_t>;
inline std::optional<SystemCalls> CountSystemCalls(const std::function<void(std::function<void()>)>& work) {
  constexpr long kSwitch = SYS_getppid;  // nothing we measure asks for it
  const pid_t child = fork();
  if (child < 0) return std::nullopt;
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    raise(SIGSTOP);
    work([] { syscall(kSwitch); });
    _exit(0);
  }
  SystemCalls calls;
  bool counting = false;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return std::nullopt;
  if (WIFSTOPPED(status)) {
    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    long signal = 0;
    while (ptrace(PTRACE_SYSCALL, child, nullptr, signal) == 0 && waitpid(child, &status, 0) == child &&
           WIFSTOPPED(status)) {
      signal = 0;
      if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
        signal = WSTOPSIG(status);
        continue;
      }
      __ptrace_syscall_info info{};
      if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0) break;
      if (info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
      if (static_cast<long>(info.entry.nr) == kSwitch) {
        counting = !counting;
      } else if (counting) {
        ++calls[static_cast<long>(info.entry.nr)];
      }
    }
  }
  if (WIFSTOPPED(status)) {  // it can be traced, but not asked
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return std::nullopt;
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return std::nullopt;
  SLUICE_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  return calls;
}

}  // namespace sluice::test
