// What the proxy itself spends on a call: frames in, Session -> Call -> Session, frames out, without sockets. Steady unary
// gRPC calls as tests/support/path_peers.h writes them.
//
//   path_bench                                  time of a call (one iteration), the neighbours' tenth or so included
//   path_bench --calls=20000 --variant=unary    so many calls and no more: for callgrind, which collects in
//                                               PathRig::ProxyTurn alone (tests/bench/path_instructions.sh, exact)
//
// Variants: unary (1 connection x 100 calls of 32 bytes, ring hashing on a header), m1 (one call at a time), c4 (4 x 32),
// c32 (32 x 32), full (unary with a capped rate and three permits), cache (unary, every call a hit), 4KiB (unary with
// messages of 4 KiB), 4KiB-c4.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "support/path_rig.h"

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

int RunCalls(std::string_view variant, uint64_t calls) {
  for (auto& [name, options] : kVariants) {
    if (name != variant) continue;
    PathRig rig(options);
    const uint64_t before = rig.transfers();
    uint64_t done = 0;
    while (done < calls) done += rig.Batch();
    std::printf("calls %llu transfers_per_call %.4f\n", static_cast<unsigned long long>(done),
                static_cast<double>(rig.transfers() - before) / static_cast<double>(done));
    return 0;
  }
  std::fprintf(stderr, "path_bench: no variant of that name\n");
  return 2;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  std::string_view variant = "unary";
  uint64_t calls = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg.starts_with("--calls=")) calls = std::strtoull(argv[i] + 8, nullptr, 10);
    if (arg.starts_with("--variant=")) variant = arg.substr(10);
  }
  if (calls > 0) return sluice::RunCalls(variant, calls);
  for (auto& [name, options] : sluice::kVariants) {
    benchmark::RegisterBenchmark((std::string("BM_Path/") + name).c_str(), sluice::BM_Path, options);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
