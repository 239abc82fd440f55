// sluiced: the daemon. Flags, signals and exit codes; everything else is src/server.
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "base/log.h"
#include "config/config.h"
#include "privileges.h"
#include "server/log_setup.h"
#include "server/server.h"
#include "server/version.h"

namespace {

constexpr char kUsage[] =
    "Usage: sluiced -c FILE [--check] [--core-dumps]\n"
    "\n"
    "  -c, --config FILE   the configuration (YAML); see config/reference.yaml\n"
    "      --check         read and check the configuration, print OK or every error, start nothing\n"
    "      --core-dumps    allow core files and debuggers; what they see includes keys and messages\n"
    "      --version       print the version\n"
    "  -h, --help          this text\n"
    "\n"
    "Signals: TERM, INT drain and stop (a second one stops now); HUP reloads; USR1 opens log files anew.\n"
    "Exit: 0 stopped or checked well, 1 the configuration or the start failed, 2 wrong flags.\n";

struct Flags {
  std::string config;
  bool check = false;
  bool core_dumps = false;
};

// Nothing to run if it returns an exit code.
int ParseFlags(int argc, char** argv, Flags& flags) {
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg == "-h" || arg == "--help") {
      std::fputs(kUsage, stdout);
      return 0;
    }
    if (arg == "--version") {
      std::printf("sluiced %s\n", sluice::server::kVersion);
      return 0;
    }
    if (arg == "--check") {
      flags.check = true;
    } else if (arg == "--core-dumps") {
      flags.core_dumps = true;
    } else if ((arg == "-c" || arg == "--config") && i + 1 < argc) {
      flags.config = argv[++i];
    } else if (arg.starts_with("--config=")) {
      flags.config = arg.substr(std::strlen("--config="));
    } else {
      std::fprintf(stderr, "sluiced: unknown or incomplete flag: %s\n\n%s", argv[i], kUsage);
      return 2;
    }
  }
  if (flags.config.empty()) {
    std::fprintf(stderr, "sluiced: no configuration: give -c FILE\n\n%s", kUsage);
    return 2;
  }
  return -1;
}

// The signals we handle, blocked in every thread and taken one by one in Serve.
sigset_t OurSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1}) sigaddset(&set, signal);
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
    } else if (signal == SIGTERM || signal == SIGINT) {
      if (draining) {
        server.Stop();
      } else {
        server.Drain(std::nullopt);
      }
      draining = true;
    }
    if (server.WaitStopped(std::chrono::milliseconds(0))) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  if (int code = ParseFlags(argc, argv, flags); code >= 0) return code;
  sluiced::DropPrivileges(flags.core_dumps);
  // Before anything takes time: whoever started it may reload it at once, and a SIGHUP that is not blocked is its end.
  // What comes before it serves waits until then.
  const sigset_t signals = OurSignals();
  if (!flags.check) pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  sluice::config::ParseResult parsed = sluice::config::Load(flags.config);
  for (const auto& error : parsed.errors) std::fprintf(stderr, "%s\n", error.ToString().c_str());
  if (!parsed.ok()) return 1;
  if (flags.check) {
    if (auto status = sluice::server::Server::Check(parsed.config); !status) {
      std::fprintf(stderr, "%s: %s\n", flags.config.c_str(), status.error().detail.c_str());
      return 1;
    }
    std::puts("OK");
    return 0;
  }

  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a log at its RLIMIT_FSIZE is an error of write(2), not the end of all calls
  if (auto status = sluice::server::SetUpLog(parsed.config.log); !status) {
    std::fprintf(stderr, "sluiced: %s\n", status.error().ToString().c_str());
    return 1;
  }
  if (sluiced::IsRoot()) SLUICE_LOG_WARN("runs as root; it needs none of root's rights: see deploy/sluiced.service");
  auto server = sluice::server::Server::Start(std::move(parsed.config), {flags.config});
  if (!server) {
    std::fprintf(stderr, "sluiced: cannot start: %s\n", server.error().detail.c_str());
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
