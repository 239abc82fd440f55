// sluice-echo: the demo pair's program: "server" names itself and answers as the request says, "client" calls and
// counts the answers of each server.
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "cli/command_line.h"
#include "client.h"
#include "sluice-echo/echo_server.h"
#include "tally.h"

namespace sluice::echo {
namespace {

// What the command line says.
struct Options {
  std::string listen = "127.0.0.1:7101", name;
  std::chrono::milliseconds grace{5000};
  ClientOptions client;
  bool show_keys = false, json = false, allow_failures = false;
  std::string print_map;
};

// A whole number from `min` up.
void AddNumber(CLI::App& app, const std::string& flag, std::string help, uint64_t* out, uint64_t min = 0) {
  cli::AddValue(app, flag, "N", std::move(help), [=](std::string_view text) -> base::Status {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
    if (error == std::errc() && end == text.data() + text.size() && *out >= min) return base::Ok();
    return cli::Bad(flag + ": " + cli::Quoted(text) + " is not a whole number from " + std::to_string(min) + " up");
  });
}

// "1500ms", "5s", "2m".
void AddDuration(CLI::App& app, const std::string& flag, std::string help, std::chrono::milliseconds* out) {
  cli::AddValue(app, flag, "DURATION", std::move(help), [=](std::string_view text) -> base::Status {
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::string_view unit(end, static_cast<size_t>(text.data() + text.size() - end));
    const uint64_t scale = unit == "ms" ? 1 : unit == "s" ? 1000 : unit == "m" ? 60000 : 0;
    *out = std::chrono::milliseconds(value * scale);
    if (error == std::errc() && scale != 0) return base::Ok();
    return cli::Bad(flag + ": " + cli::Quoted(text) + " is not a duration such as 500ms, 5s or 2m");
  });
}

CLI::App* AddServer(CLI::App& app, Options* options) {
  CLI::App* server = app.add_subcommand("server", "answer calls; prints \"NAME listening on ADDRESS\" once it does");
  cli::AddText(*server, "--listen", "ADDRESS", "host:port or unix:/path; port 0 takes a free one (127.0.0.1:7101)",
               &options->listen);
  cli::AddText(*server, "--name", "NAME", "what it calls itself in its answers (the address)", &options->name);
  AddDuration(*server, "--grace", "how long calls may go on after SIGTERM or SIGINT (5s)", &options->grace);
  return server;
}

CLI::App* AddClient(CLI::App& app, Options* options) {
  ClientOptions& client = options->client;
  CLI::App* calls = app.add_subcommand("client", "make calls and count the servers that answered");
  cli::AddText(*calls, "--target", "ADDRESS", "where to call (127.0.0.1:7070)", &client.target);
  cli::AddValue(*calls, "--kind", "KIND", "unary, server, client, bidi, or all in turn (unary)",
                [&client](std::string_view kind) -> base::Status {
                  client.kind = kind;
                  for (const char* known : {"unary", "server", "client", "bidi", "all"}) {
                    if (kind == known) return base::Ok();
                  }
                  return cli::Bad("--kind: " + cli::Quoted(kind) + " is not one of unary, server, client, bidi, all");
                });
  AddNumber(*calls, "--calls", "calls in all; 0: until --duration is over or SIGINT or SIGTERM comes (1000)",
            &client.calls);
  AddDuration(*calls, "--duration", "stop after this (no bound)", &client.duration);
  AddNumber(*calls, "--rate", "calls a second (as fast as they are answered)", &client.rate);
  AddNumber(*calls, "--keys", "different keys, sent as metadata x-key (100)", &client.keys, 1);
  AddNumber(*calls, "--concurrency", "calls at once (8)", &client.concurrency, 1);
  AddNumber(*calls, "--connections", "connections they are spread over (2)", &client.connections, 1);
  AddNumber(*calls, "--messages", "messages in a stream (3)", &client.messages, 1);
  AddNumber(*calls, "--payload", "bytes in a message (16)", &client.payload_bytes);
  AddDuration(*calls, "--delay", "the server waits this long before it answers (0ms)", &client.delay);
  AddDuration(*calls, "--timeout", "deadline of a call (10s)", &client.timeout);
  cli::AddSwitch(*calls, "--show-keys", "list each key's backend", &options->show_keys);
  cli::AddText(*calls, "--print-map", "FILE", "write key=backend lines; \"-\" is the standard output",
               &options->print_map);
  cli::AddSwitch(*calls, "--json", "print the tally as JSON", &options->json);
  cli::AddSwitch(*calls, "--allow-failures", "exit 0 although calls failed", &options->allow_failures);
  return calls;
}

int UsageError(const std::string& message) {
  std::cerr << "sluice-echo: " << message << '\n';
  return cli::kUsageError;
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

int Serve(const Options& options) {
  std::string address = options.listen;
  const sigset_t signals = BlockStopSignals();
  const std::string name = options.name.empty() ? address : options.name;
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
  server->Shutdown(static_cast<int>(options.grace.count()));
  return 0;
}

int Call(const Options& options) {
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
  RunClient(options.client, &stop, &tally);
  const auto elapsed = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
  done.store(true, std::memory_order_relaxed);
  ::kill(::getpid(), SIGTERM);  // it is blocked everywhere, so only sigwait() sees it
  watcher.join();

  if (options.json) {
    tally.PrintJson(std::cout, elapsed);
  } else {
    tally.PrintText(std::cout, elapsed, options.show_keys);
  }
  if (!options.print_map.empty()) {
    std::ofstream file;
    if (options.print_map != "-") file.open(options.print_map);
    std::ostream& out = options.print_map == "-" ? std::cout : file;
    tally.PrintMap(out);
    if (!out.flush()) return UsageError("cannot write " + options.print_map);
  }
  return tally.failures() == 0 || options.allow_failures ? 0 : 1;
}

int Main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "help") words[0] = "--help";
  Options options;
  CLI::App app("sluice-echo: a gRPC server that says its name, and a client that counts the names", "sluice-echo");
  cli::SetUp(app, "sluice-echo");
  const CLI::App* server = AddServer(app, &options);
  const CLI::App* client = AddClient(app, &options);
  app.footer("The client exits 0 if every call succeeded, 1 if one failed, 2 if a flag is wrong.");
  const base::Result<std::string> text = cli::Parse(app, std::move(words));
  if (!text.ok()) return UsageError(text.error().detail + "; see --help");
  if (!text->empty()) {
    std::cout << *text;
    return 0;
  }
  const std::vector<std::string> surplus = cli::Surplus(app);
  if (server->count() + client->count() == 0) {
    return UsageError(
        (surplus.empty() ? "say server or client" : cli::Quoted(surplus[0]) + " is neither server nor client") +
        "; see --help");
  }
  if (!surplus.empty()) return UsageError(cli::Quoted(surplus[0]) + " is not a flag; see --help");
  if (server->count() > 0) return Serve(options);
  if (client->count("--duration") > 0 && client->count("--calls") == 0) options.client.calls = 0;
  return Call(options);
}

}  // namespace
}  // namespace sluice::echo

int main(int argc, char** argv) { return sluice::echo::Main(argc, argv); }
