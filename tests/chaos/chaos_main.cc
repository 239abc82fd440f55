// chaos: whole proxies among clients and backends that misbehave, one for each seed. docs/chaos.md
//
//   chaos --from 1 --count 2500          runs seeds; a sample of them twice, which must not differ in one byte
//   SLUICE_CHAOS_FIRST=N chaos --from 1  runs seeds from N + 1 on
//   chaos --seed 17 --trace              one seed, telling what happens
//   chaos --seed 17 --hash               one seed, telling the hash of all that the proxy has written and when
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "chaos/run.h"
#include "proxy/call_id.h"

namespace sluice::chaos {
namespace {

struct Arguments {
  uint64_t from = 1, count = 100;
  uint64_t twice_every = 20;  // 0: none
  bool one = false, trace = false, hash = false, processes = false;
};

volatile uint64_t running = 0;  // the seed, for the message of a crash

extern "C" void OnDeath(int signal) {
  char text[128];
  const int n =
      std::snprintf(text, sizeof(text), "\nseed %llu: died of signal %d%s. Replay: chaos --seed %llu --trace\n",
                    static_cast<unsigned long long>(running), signal, signal == SIGPROF ? " (it does not end)" : "",
                    static_cast<unsigned long long>(running));
  if (n > 0) (void)!::write(2, text, static_cast<size_t>(n));
  ::signal(signal, SIG_DFL);
  ::raise(signal == SIGPROF ? SIGABRT : signal);
}

bool Parse(int argc, char** argv, Arguments& out) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    const auto number = [&]() -> uint64_t { return i + 1 < argc ? std::strtoull(argv[++i], nullptr, 10) : 0; };
    if (name == "--from")
      out.from = number();
    else if (name == "--count")
      out.count = number();
    else if (name == "--twice-every")
      out.twice_every = number();
    else if (name == "--seed")
      out.from = number(), out.count = 1, out.one = true;
    else if (name == "--trace")
      out.trace = true;
    else if (name == "--hash")
      out.hash = true;
    else if (name == "--two-processes")
      out.processes = true;
    else
      return false;
  }
  // Which seeds a run of all shards takes; one that is asked for is itself.
  const char* const first = std::getenv("SLUICE_CHAOS_FIRST");
  if (first != nullptr && !out.one) out.from += std::strtoull(first, nullptr, 10);
  return true;
}

// A run without end is a fault too. Of the processor's time: on a busy machine a run may take long.
constexpr time_t kSecondsMax = 120;

void Watch(time_t seconds) {
  const itimerval timer{{0, 0}, {seconds, 0}};
  ::setitimer(ITIMER_PROF, &timer, nullptr);
}

Outcome RunWatched(uint64_t seed, bool trace) {
  running = seed;
  Watch(kSecondsMax);
  Outcome outcome = RunSeed(seed, trace);
  Watch(0);
  return outcome;
}

// What another process says of the seed.
std::string HashElsewhere(const char* program, uint64_t seed) {
  const std::string command = "'" + std::string(program) + "' --hash --seed " + std::to_string(seed);
  FILE* pipe = ::popen(command.c_str(), "r");
  char line[256] = "";
  if (pipe == nullptr || std::fgets(line, sizeof(line), pipe) == nullptr) line[0] = '\0';
  if (pipe != nullptr) ::pclose(pipe);
  return line;
}

std::string HashLine(uint64_t seed, const Outcome& outcome) {
  char text[128];
  std::snprintf(text, sizeof(text), "seed %llu: %016llx over %llu bytes, %llu events\n",
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(outcome.hash),
                static_cast<unsigned long long>(outcome.bytes), static_cast<unsigned long long>(outcome.events));
  return text;
}

int Main(int argc, char** argv) {
  Arguments args;
  if (!Parse(argc, argv, args)) {
    std::fprintf(
        stderr,
        "usage: chaos [--from N --count N | --seed N] [--trace] [--hash] [--twice-every N] [--two-processes]\n");
    return 2;
  }
  spdlog::set_level(args.trace ? spdlog::level::debug : spdlog::level::off);
  proxy::CallId::SetProcessForTest(1);
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGPROF}) ::signal(signal, OnDeath);
  const auto start = std::chrono::steady_clock::now();
  uint64_t failed = 0, calls = 0, ok = 0, refused = 0, bytes = 0, events = 0, good = 0, paused = 0, scarce = 0,
           replayed = 0, sum = 0;
  for (uint64_t seed = args.from; seed < args.from + args.count; ++seed) {
    Outcome outcome = RunWatched(seed, args.trace);
    if (args.hash) std::fputs(HashLine(seed, outcome).c_str(), stdout);
    if (args.twice_every != 0 && !args.trace && !args.hash && seed % args.twice_every == 0) {
      ++replayed;
      const Outcome again = RunWatched(seed, false);
      if (again.hash != outcome.hash || again.bytes != outcome.bytes || again.events != outcome.events) {
        outcome.faults.push_back("a second run differs: " + HashLine(seed, outcome) + " and " + HashLine(seed, again));
      }
    }
    if (args.processes && seed == args.from) {
      const std::string here = HashLine(seed, outcome), there = HashElsewhere(argv[0], seed);
      if (here != there) outcome.faults.push_back("another process differs: " + here + " and " + there);
    }
    calls += outcome.calls;
    ok += outcome.ok;
    refused += outcome.refused;
    bytes += outcome.bytes;
    events += outcome.events;
    good += outcome.all_good;
    paused += outcome.paused;
    scarce += outcome.refused_for_memory;
    sum ^= outcome.hash;
    if (outcome.faults.empty()) continue;
    ++failed;
    std::printf("seed %llu failed. Replay: chaos --seed %llu --trace\n", static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(seed));
    for (const std::string& fault : outcome.faults) std::printf("    %s\n", fault.c_str());
    std::fflush(stdout);
    if (failed == 20) break;
  }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::fprintf(stderr,
               "%llu seeds from %llu in %.1f s: %llu calls (%llu OK, %llu with another status, the rest cut off), %llu "
               "MB written in %llu "
               "events, %llu seeds in which all must succeed, %llu in which reading stopped for memory, %llu in which "
               "calls were refused for it, "
               "%llu run twice, hash %016llx; %llu failed\n",
               static_cast<unsigned long long>(args.count), static_cast<unsigned long long>(args.from), seconds,
               static_cast<unsigned long long>(calls), static_cast<unsigned long long>(ok),
               static_cast<unsigned long long>(refused), static_cast<unsigned long long>(bytes >> 20),
               static_cast<unsigned long long>(events), static_cast<unsigned long long>(good),
               static_cast<unsigned long long>(paused), static_cast<unsigned long long>(scarce),
               static_cast<unsigned long long>(replayed), static_cast<unsigned long long>(sum),
               static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) { return sluice::chaos::Main(argc, argv); }
