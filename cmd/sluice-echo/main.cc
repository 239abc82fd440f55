// sluice-echo: the demo pair's program: "server" names itself and answers as told, "client" calls and counts
// who answered.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "client.h"
#include "flags.h"
#include "sluice-echo/echo_server.h"
#include "tally.h"

namespace sluice::echo {
namespace {

constexpr int kUsageError = 2;

constexpr char kHelp[] =
    R"(sluice-echo: a gRPC server that says who it is, and a client that counts who answered.

  sluice-echo server [--listen ADDRESS] [--name NAME] [--grace DURATION]
    --listen ADDRESS     host:port or unix:/path; port 0 takes a free one (127.0.0.1:7101)
    --name NAME          what it calls itself in its answers (the address)
    --grace DURATION     how long calls may go on after SIGTERM or SIGINT (5s)
  Prints "NAME listening on ADDRESS" once it does.

  sluice-echo client [flags]
    --target ADDRESS     where to call (127.0.0.1:7070)
    --kind KIND          unary, server, client, bidi, or all in turn (unary)
    --calls N            calls in all; 0: until --duration is over or SIGINT or SIGTERM comes (1000)
    --duration DURATION  stop after this (no bound)
    --rate N             calls a second (as fast as they are answered)
    --keys N             different keys, sent as metadata x-key (100)
    --concurrency N      calls at once (8)
    --connections N      connections they are spread over (2)
    --messages N         messages in a stream (3)
    --payload N          bytes in a message (16)
    --delay DURATION     the server waits this long before it answers (0ms)
    --timeout DURATION   deadline of a call (10s)
    --show-keys          list each key's backend
    --print-map FILE     write key=backend lines; "-" is the standard output
    --json               print the tally as JSON
    --allow-failures     exit 0 although calls failed
  Exits 0 if every call succeeded, 1 if one failed, 2 if a flag is wrong.
)";

int UsageError(const std::string& message) {
  std::cerr << "sluice-echo: " << message << '\n';
  return kUsageError;
}

// Blocks SIGINT and SIGTERM in this thread and all it starts later: they are waited for instead.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Serve(const std::vector<std::string>& arguments) {
  Flags flags(arguments, {}, {"listen", "name", "grace"});
  std::string address = flags.Text("listen", "127.0.0.1:7101");
  const auto grace = flags.Duration("grace", std::chrono::seconds(5));
  if (!flags.error().empty()) return UsageError(flags.error());

  const sigset_t signals = BlockStopSignals();
  const std::string name = flags.Text("name", address);
  const auto server = EchoServer::Start(address, name);
  if (!server) {
    std::cerr << "sluice-echo: cannot listen on " << address << '\n';
    return 1;
  }
  const size_t colon = address.rfind(':');
  if (address.rfind("unix:", 0) != 0) address = address.substr(0, colon + 1) + std::to_string(server->port());
  std::cout << name << " listening on " << address << std::endl;
  int signal = 0;
  sigwait(&signals, &signal);
  server->Shutdown(static_cast<int>(grace.count()));
  return 0;
}

int Call(const std::vector<std::string>& arguments) {
  Flags flags(arguments, {"json", "allow-failures", "show-keys"},
              {"target", "kind", "calls", "duration", "rate", "keys", "concurrency", "connections", "messages",
               "payload", "delay", "timeout", "print-map"});
  ClientOptions options;
  options.target = flags.Text("target", options.target);
  options.kind = flags.Text("kind", options.kind);
  options.calls = flags.Number("calls", flags.Has("duration") ? 0 : options.calls);
  options.keys = flags.Number("keys", options.keys, 1);
  options.concurrency = flags.Number("concurrency", options.concurrency, 1);
  options.connections = flags.Number("connections", options.connections, 1);
  options.messages = flags.Number("messages", options.messages, 1);
  options.payload_bytes = flags.Number("payload", options.payload_bytes);
  options.rate = flags.Number("rate", options.rate);
  options.duration = flags.Duration("duration", options.duration);
  options.timeout = flags.Duration("timeout", options.timeout);
  options.delay_ms = static_cast<uint32_t>(flags.Duration("delay", std::chrono::milliseconds(0)).count());
  if (!flags.error().empty()) return UsageError(flags.error());
  const std::string kinds = " unary server client bidi all ";
  if (kinds.find(' ' + options.kind + ' ') == std::string::npos) {
    return UsageError("--kind: '" + options.kind + "' is not one of unary, server, client, bidi, all");
  }

  const sigset_t signals = BlockStopSignals();
  std::atomic<bool> stop{false};  // a flag and no more: relaxed
  std::atomic<bool> done{false};
  std::thread watcher([&] {
    int signal = 0;
    sigwait(&signals, &signal);
    if (!done.load(std::memory_order_relaxed)) stop.store(true, std::memory_order_relaxed);
  });
  Tally tally;
  const auto start = std::chrono::steady_clock::now();
  RunClient(options, &stop, &tally);
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  done.store(true, std::memory_order_relaxed);
  ::kill(::getpid(), SIGTERM);  // it is blocked everywhere, so only sigwait() sees it
  watcher.join();

  if (flags.Has("json")) {
    tally.PrintJson(std::cout, elapsed);
  } else {
    tally.PrintText(std::cout, elapsed, flags.Has("show-keys"));
  }
  if (flags.Has("print-map")) {
    const std::string path = flags.Text("print-map", "-");
    std::ofstream file;
    if (path != "-") file.open(path);
    std::ostream& out = path == "-" ? std::cout : file;
    tally.PrintMap(out);
    if (!out.flush()) return UsageError("cannot write " + path);
  }
  return tally.failures() == 0 || flags.Has("allow-failures") ? 0 : 1;
}

int Main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  for (const std::string& argument : arguments) {
    if (argument == "--help" || argument == "-h" || argument == "help") {
      std::cout << kHelp;
      return 0;
    }
  }
  if (arguments.empty()) return UsageError("say server or client; see --help");
  const std::string command = arguments.front();
  arguments.erase(arguments.begin());
  if (command == "server") return Serve(arguments);
  if (command == "client") return Call(arguments);
  return UsageError("'" + command + "' is neither server nor client; see --help");
}

}  // namespace
}  // namespace sluice::echo

int main(int argc, char** argv) { return sluice::echo::Main(argc, argv); }
