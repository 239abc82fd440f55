// What the proxy itself spends on a call: frames in, Session -> Call -> Session, frames out, without sockets. Steady
// unary gRPC calls as tests/support/path_peers.h writes them.
//
//   path_bench                                  time of a call (one iteration), the neighbours' tenth or so included
//   path_bench --calls=20000 --variant=unary    so many calls and no more: for callgrind, which collects in
//                                               PathRig::ProxyTurn alone (tests/bench/path_instructions.sh, exact)
//   path_bench --rmws --variant=unary           every atomic read-modify-write of a call, by place; read with
//                                               tests/bench/path_rmws.sh, which names the places
//
// Variants: unary (1 connection x 100 calls of 32 bytes, ring hashing on a header), m1 (one call at a time), c4 (4 x
// 32), c32 (32 x 32), full (unary with a capped rate and three permits), cache (unary, every call a hit), 4KiB (unary
// with messages of 4 KiB), 4KiB-c4.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "support/path_rig.h"
#include "support/single_step.h"

namespace sluice {
namespace {

using test::PathOptions;
using test::PathRig;

constexpr std::pair<const char*, PathOptions> kVariants[] = {
    {"unary", {}},
    {"m1", {.streams = 1}},
    {"c4", {.connections = 4, .streams = 32}},
    {"c32", {.connections = 32, .streams = 32}},
    {"full", {.full_limits = true}},
    {"cache", {.cache = true}},
    {"4KiB", {.message_bytes = 4096}},
    {"4KiB-c4", {.connections = 4, .streams = 32, .message_bytes = 4096}},
};

void BM_Path(benchmark::State& state, PathOptions options) {
  PathRig rig(options);
  const size_t batch = options.connections * options.streams;
  while (state.KeepRunningBatch(static_cast<benchmark::IterationCount>(batch))) rig.Batch();
}

const PathOptions* Find(std::string_view variant) {
  for (auto& [name, options] : kVariants) {
    if (name == variant) return &options;
  }
  std::fprintf(stderr, "path_bench: no variant of that name\n");
  return nullptr;
}

int RunCalls(const PathOptions& options, uint64_t calls) {
  PathRig rig(options);
  const uint64_t before = rig.transfers();
  uint64_t done = 0;
  while (done < calls) done += rig.Batch();
  std::printf("calls %llu transfers_per_call %.4f\n", static_cast<unsigned long long>(done),
              static_cast<double>(rig.transfers() - before) / static_cast<double>(done));
  return 0;
}

// Lines of "COUNT-PER-CALL PLACE MEMORIES": the place as an address in the program file, MEMORIES how many different
// words.
int ListRmws(PathOptions options) {
  if (!test::SingleStep::Available()) return 2;
  options.streams = std::min<size_t>(options.streams, 10);  // a step costs microseconds
  PathRig rig(options);
  test::SingleStep step;
  rig.before_turn = [&step] { step.Start(); };
  rig.after_turn = [&step] { step.Stop(); };
  const size_t calls = rig.Batch();
  rig.before_turn = rig.after_turn = nullptr;
  extern const char program_start[] asm("__executable_start");
  std::map<uintptr_t, std::map<uintptr_t, size_t>> places;
  for (const test::SingleStep::Rmw& rmw : step.rmws())
    ++places[rmw.place - reinterpret_cast<uintptr_t>(program_start)][rmw.memory];
  const double n = static_cast<double>(calls);
  std::printf("instructions per call, stepped: %.1f; atomic read-modify-writes per call: %.2f\n",
              static_cast<double>(step.instructions()) / n, static_cast<double>(step.rmws().size()) / n);
  for (const auto& [place, memories] : places) {
    size_t count = 0;
    for (const auto& [memory, times] : memories) count += times;
    std::printf("%.2f 0x%zx %zu\n", static_cast<double>(count) / n, place, memories.size());
  }
  return step.complete() ? 0 : 1;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::string_view variant = "unary";
  uint64_t calls = 0;
  bool rmws = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--calls=")) calls = std::strtoull(argv[i] + 8, nullptr, 10);
    rmws |= arg == "--rmws";
    if (arg.starts_with("--variant=")) variant = arg.substr(10);
  }
  if (calls > 0 || rmws) {
    const auto* options = sluice::Find(variant);
    return options == nullptr ? 2 : rmws ? sluice::ListRmws(*options) : sluice::RunCalls(*options, calls);
  }
  for (auto& [name, options] : sluice::kVariants) {
    benchmark::RegisterBenchmark((std::string("BM_Path/") + name).c_str(), sluice::BM_Path, options);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
