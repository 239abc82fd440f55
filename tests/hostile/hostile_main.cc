// hostile: plays seeds of hostile callers and backends against a sluiced among honest ones (README.md).
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "hostile/grammar.h"
#include "hostile/harness.h"
#include "hostile/shrink.h"

namespace sluice::hostile {
namespace {

constexpr size_t kSuspects = 8;  // seeds that may have caused what is seen now
constexpr int kTries = 3;        // until a seed that does not fail alone is let go
constexpr double kShrinkMs = 90'000;

struct Flags {
  TreeOptions tree;
  GrammarOptions grammar;
  uint64_t from = 1, seeds = 300, seconds = 0;
  bool memory = true, times = true, survey = false, print = false, until_found = false, shrink = true;
  std::string script, save, expect;
};

std::vector<std::string> Words(const std::string& list) {
  std::vector<std::string> out;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) out.push_back(word);
  return out;
}

int Usage() {
  std::string names;
  for (const std::string& name : Productions()) names += " " + name;
  std::fprintf(
      stderr,
      "usage: hostile --binary SLUICED [--from N] [--seeds N] [--seed N] [--seconds N] [--script FILE] [--save FILE]\n"
      "               [--only A,B] [--without A,B] [--no-memory] [--no-times] [--no-shrink] [--until-found] [--expect "
      "TEXT] "
      "[--survey] [--print]\n"
      "               [--grpc-backend FILE] [--node-script FILE]\nproductions:%s\n",
      names.c_str());
  return 2;
}

bool ParseFlags(int argc, char** argv, Flags& flags) {
  const std::string self = std::filesystem::canonical("/proc/self/exe").parent_path();
  flags.tree.grpc_backend = self + "/hostile_grpc_backend";
  flags.tree.node_script = SLUICE_HOSTILE_NODE_SCRIPT;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--no-memory")
      flags.memory = false;
    else if (flag == "--no-times")
      flags.times = false;
    else if (flag == "--survey")
      flags.survey = true;
    else if (flag == "--print")
      flags.print = true;
    else if (flag == "--until-found")
      flags.until_found = true;
    else if (flag == "--no-shrink")
      flags.shrink = false;
    else if (i + 1 == argc)
      return false;
    else {
      const std::string value = argv[++i];
      const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
      if (flag == "--binary")
        flags.tree.binary = value;
      else if (flag == "--from")
        flags.from = number;
      else if (flag == "--seeds")
        flags.seeds = number;
      else if (flag == "--seconds")
        flags.seconds = number;
      else if (flag == "--seed")
        flags.from = number, flags.seeds = 1;
      else if (flag == "--script")
        flags.script = value;
      else if (flag == "--expect")
        flags.expect = value;
      else if (flag == "--save")
        flags.save = value;
      else if (flag == "--only")
        flags.grammar.only = Words(value);
      else if (flag == "--without")
        flags.grammar.without = Words(value);
      else if (flag == "--grpc-backend")
        flags.tree.grpc_backend = value;
      else if (flag == "--node-script")
        flags.tree.node_script = value;
      else
        return false;
    }
  }
  const auto& without = flags.grammar.without;
  flags.tree.control_plane = std::find(without.begin(), without.end(), "plane") == without.end();
  return !flags.tree.binary.empty() || flags.print;
}

class Run {
 public:
  explicit Run(Flags flags) : flags_(std::move(flags)), harness_(flags_.tree, flags_.memory, flags_.times) {}

  int Main() {
    if (!flags_.script.empty()) return PlayFile();
    const double start = Loop::Now();
    std::deque<std::pair<uint64_t, Script>> recent;
    uint64_t seed = flags_.from;
    for (; seed < flags_.from + flags_.seeds; ++seed) {
      if (flags_.seconds != 0 && Loop::Now() - start > static_cast<double>(flags_.seconds) * 1000) break;
      Script script = Draw(seed, flags_.grammar);
      if (!harness_.running() || VariantOf(script) != harness_.variant()) {
        if (harness_.running()) harness_.Settle(true);
        if (harness_.any_violation() && Wrong(recent)) break;
        recent.clear();
        if (!Fresh(VariantOf(script))) return 1;
      }
      recent.emplace_back(seed, std::move(script));
      if (recent.size() > kSuspects) recent.pop_front();
      harness_.Play(recent.back().second);
      const bool last = seed + 1 == flags_.from + flags_.seeds;
      if (last) harness_.Settle(true);
      if (!harness_.any_violation()) continue;
      if (Wrong(recent)) {
        ++seed;
        break;
      }
      recent.clear();
      if (!std::exchange(stateless_, false) && !Fresh(harness_.variant())) return 1;
    }
    const double seconds = (Loop::Now() - start) / 1000;
    std::printf(
        "hostile: %llu seeds from %llu in %.0f s, %llu honest calls, p99 %.1f ms (%.1f before), %llu MiB: %zu "
        "violations, %zu not seen again\n",
        static_cast<unsigned long long>(seed - flags_.from), static_cast<unsigned long long>(flags_.from), seconds,
        static_cast<unsigned long long>(harness_.honest_calls()), harness_.p99(), harness_.p99_before(),
        static_cast<unsigned long long>(harness_.resident() >> 20), found_, unconfirmed_);
    for (const auto& [kind, first] : first_seen_)
      std::printf("  seed %llu (%d times): %s\n", static_cast<unsigned long long>(first.first), first.second,
                  kind.c_str());
    return found_ > 0 ? 1 : 0;
  }

 private:
  bool Fresh(const std::string& variant) {
    harness_.Stop();
    harness_.TakeViolations();
    for (int i = 0; i < 3; ++i) {
      if (harness_.Start(variant)) return true;
      for (const std::string& violation : harness_.TakeViolations()) {
        std::printf("does not start well: %s\n", violation.c_str());
        if (flags_.expect.empty() || violation.find(flags_.expect) == std::string::npos) continue;
        std::printf("seed 0: found: %s\n", violation.substr(0, 300).c_str());
        return false;
      }
      harness_.Stop();
    }
    return false;
  }

  // True: the run ends here.
  bool Wrong(const std::deque<std::pair<uint64_t, Script>>& recent) {
    const std::vector<std::string> seen = harness_.TakeViolations();
    const uint64_t seed = recent.back().first;
    for (const std::string& violation : seen) {
      auto& first = first_seen_[ClassOf(violation)];
      if (first.second++ == 0) {
        first.first = seed;
        std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), violation.substr(0, 4000).c_str());
      }
    }
    std::fflush(stdout);
    const auto expected = [this](const std::string& violation) {
      return violation.find(flags_.expect) != std::string::npos;
    };
    if (flags_.survey || std::none_of(seen.begin(), seen.end(), expected)) {
      if (flags_.survey) ++found_;
      stateless_ = std::all_of(seen.begin(), seen.end(), LeavesNothing);
      return false;
    }
    if (flags_.until_found && !std::all_of(seen.begin(), seen.end(), MayBeNoise)) {
      std::printf("seed %llu: found: %s\n", static_cast<unsigned long long>(seed),
                  std::find_if(seen.begin(), seen.end(), expected)->substr(0, 300).c_str());
      ++found_;
      return true;
    }
    // Each suspect alone, the latest first; then all of them in their order.
    std::vector<std::pair<std::string, Script>> suspects;
    Script together;
    for (const auto& [number, script] : recent) {
      suspects.insert(suspects.begin(), {"seed " + std::to_string(number), script});
      together.insert(together.end(), script.begin(), script.end());
    }
    suspects.emplace_back("seeds " + std::to_string(recent.front().first) + " to " + std::to_string(seed), together);
    const std::string like = flags_.expect.empty() ? "" : ClassOf(*std::find_if(seen.begin(), seen.end(), expected));
    for (const auto& [name, script] : suspects) {
      const std::string violation = Fails(script, kTries, like);
      if (violation.empty()) continue;
      ++found_;
      Show(name, script, violation);
      return true;
    }
    if (!MayBeNoise(seen.front())) ++unconfirmed_;
    std::printf("seed %llu: not seen again when it was played alone\n", static_cast<unsigned long long>(seed));
    return false;
  }

  // Plays it on a fresh tree, so often, until it fails (in class `like`, if given). What was wrong; empty: nothing.
  std::string Fails(const Script& script, int tries, const std::string& like) {
    if (dirty_ || !harness_.running() || harness_.any_violation() || VariantOf(script) != harness_.variant()) {
      if (!Fresh(VariantOf(script))) return "does not start";
      dirty_ = false;
    }
    for (int i = 0; i < tries; ++i) {
      harness_.Play(script);
      harness_.Settle(true);
      for (const std::string& violation : harness_.TakeViolations()) {
        dirty_ = true;
        if (like.empty() || ClassOf(violation) == like) return violation;
      }
      if (dirty_ && !Fresh(harness_.variant())) return "does not start";
      dirty_ = false;
    }
    return {};
  }

  void Show(const std::string& name, Script script, const std::string& violation) {
    std::printf("%s fails alone: %s\n", name.c_str(), violation.substr(0, 4000).c_str());
    const std::string like = ClassOf(violation);
    if (flags_.shrink) {
      const double end = Loop::Now() + kShrinkMs;
      script = Shrink(
          script, [&](const Script& part) { return !Fails(part, 2, like).empty(); },
          [end] { return Loop::Now() < end; });
    }
    const std::string text = "# " + name + ": " + violation.substr(0, 200) + "\n" + Print(script);
    std::printf("--- the fewest moves found; play them with --script FILE\n%s---\n", text.c_str());
    if (!flags_.save.empty()) std::ofstream(flags_.save) << text;
  }

  int PlayFile() {
    std::ifstream file(flags_.script);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    Script script;
    std::string error = text.empty() ? "cannot be read" : "";
    if (!error.empty() || !Parse(text, script, error)) {
      std::fprintf(stderr, "hostile: %s: %s\n", flags_.script.c_str(), error.c_str());
      return 2;
    }
    const std::string violation = Fails(script, static_cast<int>(std::min<uint64_t>(flags_.seeds, 100)), "");
    if (violation.empty()) {
      std::printf("hostile: %s: nothing is wrong\n", flags_.script.c_str());
      return 0;
    }
    std::printf("hostile: %s: %s\n", flags_.script.c_str(), violation.c_str());
    return 1;
  }

  const Flags flags_;
  Harness harness_;
  std::map<std::string, std::pair<uint64_t, int>> first_seen_;
  size_t found_ = 0, unconfirmed_ = 0;
  bool dirty_ = false, stateless_ = false;
};

int Main(int argc, char** argv) {
  Flags flags;
  if (!ParseFlags(argc, argv, flags)) return Usage();
  if (flags.print) {
    for (uint64_t i = 0; i < flags.seeds; ++i)
      std::printf("# seed %llu\n%s", static_cast<unsigned long long>(flags.from + i),
                  Print(Draw(flags.from + i, flags.grammar)).c_str());
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (::access("/usr/bin/node", X_OK) != 0) flags.tree.node_script.clear();
  char dir[] = "/tmp/sluice-hostile.XXXXXX";
  if (::mkdtemp(dir) == nullptr) return 2;
  flags.tree.dir = dir;
  const int code = Run(flags).Main();
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  return code;
}

}  // namespace
}  // namespace sluice::hostile

int main(int argc, char** argv) { return sluice::hostile::Main(argc, argv); }
