// sluiced: the daemon. Flags, privileges, signals and exit codes; everything else is src/server.
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "config/check_files.h"
#include "config/config.h"
#include "config/dump.h"
#include "handover/predecessor.h"
#include "handover/program.h"
#include "server/log_setup.h"
#include "server/server.h"
#include "server/version.h"
#include "sluiced/init.h"

namespace {

using sluice::handover::Predecessor;

struct Flags {
  std::string config;
  bool check = false;
  bool strict = false;
  bool dump = false;
  bool core_dumps = false;
};

// Before threads are made. Nothing that it or its children run gains rights from a file (no_new_privs). Without
// `core_dumps` also no core file and no debugger of the same user: memory has keys and other people's messages. What
// the kernel refuses is left as it is. deploy/sluiced.service takes away more.
void DropPrivileges(bool core_dumps) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
#ifndef SLUICE_SANITIZED  // the leak check at the end reads the process as a debugger does
  if (!core_dumps) prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
#endif
}

// An exit code: there is nothing to run.
std::optional<int> ParseFlags(int argc, char** argv, Flags& flags) {
  namespace cli = sluice::cli;
  CLI::App app("sluiced: the proxy", "sluiced");
  cli::SetUp(app, std::string("sluiced ") + sluice::server::kVersion);
  cli::AddText(app, "-c,--config", "FILE", "the configuration (YAML); see config/reference.yaml", &flags.config);
  cli::AddSwitch(app, "--check", "read and check the configuration, print OK or every error, start nothing",
                 &flags.check);
  cli::AddSwitch(app, "--strict", "with --check: exit with 1 where there are warnings", &flags.strict);
  cli::AddSwitch(app, "--dump-config",
                 "print the configuration as it would be in force, with its defaults, variables replaced and included "
                 "files joined; start nothing",
                 &flags.dump);
  cli::AddSwitch(app, "--core-dumps", "allow core files and debuggers; what they see includes keys and messages",
                 &flags.core_dumps);
  app.footer(
      "`sluiced init [FILE]` writes a first configuration, commented and working, to FILE or standard output.\n"
      "Signals: TERM, INT drain and stop (a second one stops now); HUP reloads; USR1 opens log files anew; USR2 starts "
      "a "
      "new process, which takes over.\n"
      "Exit: 0 stopped or checked well, 1 the configuration or the start failed, 2 wrong flags.");
  sluice::base::Result<std::string> text = cli::Parse(app, {argv + 1, argv + argc});
  if (text.ok() && !text->empty()) {
    std::fputs(text->c_str(), stdout);
    return 0;
  }
  if (text.ok() && !cli::Surplus(app).empty()) text = cli::Bad(cli::Quoted(cli::Surplus(app)[0]) + " is not a flag");
  if (text.ok() && flags.config.empty()) text = cli::Bad("no configuration: give -c FILE");
  if (text.ok()) return std::nullopt;
  std::fprintf(stderr, "sluiced: %s\n\n%s", text.error().detail.c_str(), app.help().c_str());
  return cli::kUsageError;
}

// The signals we handle, blocked in every thread and taken one by one in Serve.
sigset_t OurSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&set, signal);
  return set;
}

void Serve(sluice::server::Server& server, const sigset_t& signals) {
  bool draining = false;
  for (;;) {
    // Wakes now and then to see whether the admin RPC has stopped the server.
    timespec tick{0, 100'000'000};
    int signal = sigtimedwait(&signals, nullptr, &tick);
    if (signal == SIGHUP) {
      server.Reload();
    } else if (signal == SIGUSR1) {
      if (auto status = server.ReopenLogs(); !status) SLUICE_LOG_ERROR("{}", status.error().detail);
    } else if (signal == SIGUSR2) {
      server.BeginUpgrade();
    } else if (signal == SIGTERM || signal == SIGINT) {
      if (draining) {
        server.Stop();
      } else {
        (void)server.Drain(std::nullopt, std::nullopt);  // as configured, which the parser has checked
      }
      draining = true;
    }
    if (server.WaitStopped(std::chrono::milliseconds(0))) return;
  }
}

// Exit code of --check.
int Check(const Flags& flags, const sluice::config::ParseResult& parsed) {
  for (const auto& warning : parsed.warnings) std::fprintf(stderr, "warning: %s\n", warning.ToString().c_str());
  std::vector<std::string> notes;
  std::vector<sluice::server::TlsReloader::Ending> ending;
  auto status = sluice::server::Server::Check(parsed.config, &notes, &ending);
  for (const std::string& note : notes) std::fprintf(stderr, "warning: %s: %s\n", flags.config.c_str(), note.c_str());
  for (const auto& [file, text] : ending) {
    const std::string place = sluice::config::PlaceOfFile(parsed, file);
    std::fprintf(stderr, "warning: %s: %s\n", place.empty() ? flags.config.c_str() : place.c_str(), text.c_str());
  }
  if (!status) {
    const std::string place = sluice::config::PlaceOfFileIn(parsed, status.error().detail);
    std::fprintf(stderr, "%s: %s\n", place.empty() ? flags.config.c_str() : place.c_str(),
                 status.error().detail.c_str());
    return 1;
  }
  const size_t warnings = parsed.warnings.size() + notes.size() + ending.size();
  if (flags.strict && warnings > 0) {
    std::fprintf(stderr, "%zu %s\n", warnings, warnings == 1 ? "warning" : "warnings");
    return 1;
  }
  std::puts("OK");
  return 0;
}

// "sluiced init [FILE]"; nullopt: it is another command line.
std::optional<int> Init(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "init") return std::nullopt;
  if (argc == 2) return sluice::daemon::WriteFirstConfig("");
  if (argc == 3 && argv[2][0] != '-' && argv[2][0] != '\0') return sluice::daemon::WriteFirstConfig(argv[2]);
  std::fprintf(stderr, "sluiced: init takes the name of a file that is not there yet, or nothing\n");
  return sluice::cli::kUsageError;
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> code = Init(argc, argv)) return *code;
  Flags flags;
  if (const std::optional<int> code = ParseFlags(argc, argv, flags)) return *code;
  if (flags.strict && !flags.check) {
    std::fprintf(stderr, "sluiced: --strict goes with --check\n");
    return sluice::cli::kUsageError;
  }
  const auto program = sluice::handover::Program::OfThisProcess(argc, argv);
  DropPrivileges(flags.core_dumps);
  // Before anything takes time: a SIGHUP that is not blocked ends the process, and the parent may send one at once.
  // Signals that arrive before Serve wait until then.
  const sigset_t signals = OurSignals();
  if (!flags.check && !flags.dump) pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  // A process that starts this one to be replaced by it hears why it does not come up.
  std::shared_ptr<Predecessor> predecessor;
  if (!flags.check && !flags.dump) {
    auto met = Predecessor::FromEnvironment(sluice::server::kVersion);
    if (!met) {
      std::fprintf(stderr, "sluiced: cannot take over: %s\n", met.error().detail.c_str());
      return 1;
    }
    predecessor = std::move(*met);
  }
  const auto fail = [&predecessor](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    if (predecessor != nullptr) predecessor->Fail(why);
  };

  sluice::config::ParseResult parsed = sluice::config::Load(flags.config);
  if (!flags.dump) sluice::config::CheckFiles(&parsed);
  if (!parsed.ok()) {
    std::string errors;
    for (const auto& error : parsed.errors) errors.append(errors.empty() ? "" : "\n").append(error.ToString());
    fail(errors);
    return 1;
  }
  if (flags.dump) {
    std::error_code none;
    const std::string dump = sluice::config::Dump(parsed.config, {std::filesystem::current_path(none).string(), false});
    return std::fputs(dump.c_str(), stdout) == EOF || std::fflush(stdout) != 0 ? 1 : 0;
  }
  if (flags.check) return Check(flags, parsed);

  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a log at its RLIMIT_FSIZE is an error of write(2), not the end of all calls
  if (auto status = sluice::server::SetUpLog(parsed.config.log); !status) {
    fail("sluiced: " + status.error().ToString());
    return 1;
  }
  for (const auto& warning : parsed.warnings) SLUICE_LOG_WARN("{}", warning.ToString());
  if (geteuid() == 0) SLUICE_LOG_WARN("runs as root; it needs none of root's rights: see deploy/sluiced.service");
  auto supervisor = sluice::server::Supervisor::FromEnvironment();
  if (!supervisor) {
    fail("sluiced: cannot start: " + supervisor.error().detail);
    return 1;
  }
  sluice::server::ServerOptions options;
  options.config_file = flags.config;
  options.supervisor = std::move(*supervisor);
  options.program = program;
  options.predecessor = predecessor;
  auto server = sluice::server::Server::Start(std::move(parsed.config), std::move(options));
  if (!server) {
    fail("sluiced: cannot start: " + server.error().detail);
    sluice::server::ShutDownLog();
    return 1;
  }
  SLUICE_LOG_INFO("sluiced {} is ready", sluice::server::kVersion);
  Serve(**server, signals);
  server->reset();
  SLUICE_LOG_INFO("stopped");
  sluice::server::ShutDownLog();
  return 0;
}
