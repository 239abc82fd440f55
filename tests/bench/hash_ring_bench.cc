// HashRing: what a pick costs with a cold-ish key stream, with one endpoint refusing, with all refusing;
// building and merging. Read: Pick/N is endpoints x 160 points, promised <= 20 ns at N = 1000, and <= 25 ns with the
// read of the snapshot that it lies in (ReadAndPick); Build/1000 <= 50 ms; Change/1000, one of 1,000 endpoints, a
// fiftieth of Build or less. BinarySearch is the same pick over one sorted array.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"
#include "concurrent/doubly_buffered_data.h"
#include "upstream/hash_ring.h"

namespace sluice::upstream {
namespace {

struct List {
  std::vector<std::string> names;
  std::vector<RingEndpoint> endpoints;
  explicit List(int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      names.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":50051");
    for (const std::string& name : names) endpoints.push_back({name, 1.0});
  }
};

void BM_Pick(benchmark::State& state) {
  HashRing ring = HashRing::Build(List(state.range(0)).endpoints, 160);
  base::Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(ring.Pick(random.Next(), [](uint32_t) { return true; }));
}
BENCHMARK(BM_Pick)->Arg(10)->Arg(100)->Arg(1000);

// As a call does it: the snapshot's section, then the pick.
void BM_ReadAndPick(benchmark::State& state) {
  concurrent::DoublyBufferedData<HashRing> data(1);
  data.Publish(HashRing::Build(List(state.range(0)).endpoints, 160));
  base::Random random(1);
  for (auto _ : state) {
    const uint64_t key = random.Next();
    benchmark::DoNotOptimize(
        data.Read(0, [key](const HashRing& ring) { return ring.Pick(key, [](uint32_t) { return true; }); }));
  }
}
BENCHMARK(BM_ReadAndPick)->Arg(100)->Arg(1000);

void BM_BinarySearch(benchmark::State& state) {
  List list(state.range(0));
  std::vector<std::pair<uint64_t, uint32_t>> points;
  for (uint32_t e = 0; e < list.endpoints.size(); ++e) {
    for (uint32_t i = 0; i < 160; ++i) points.emplace_back(HashRing::Point(HashRing::Seed(list.names[e]), i), e);
  }
  std::sort(points.begin(), points.end());
  base::Random random(1);
  for (auto _ : state) {
    auto it = std::lower_bound(points.begin(), points.end(), std::pair<uint64_t, uint32_t>(random.Next(), 0));
    benchmark::DoNotOptimize(it == points.end() ? points[0].second : it->second);
  }
}
BENCHMARK(BM_BinarySearch)->Arg(100)->Arg(1000);

void BM_PickOneRefuses(benchmark::State& state) {
  HashRing ring = HashRing::Build(List(state.range(0)).endpoints, 160);
  base::Random random(1);
  for (auto _ : state) {
    uint32_t first = HashRing::kNone;
    benchmark::DoNotOptimize(ring.Pick(random.Next(), [&](uint32_t index) {
      if (first == HashRing::kNone) first = index;
      return index != first;
    }));
  }
}
BENCHMARK(BM_PickOneRefuses)->Arg(10)->Arg(1000);

void BM_PickAllRefuse(benchmark::State& state) {
  HashRing ring = HashRing::Build(List(state.range(0)).endpoints, 160);
  base::Random random(1);
  for (auto _ : state) benchmark::DoNotOptimize(ring.Pick(random.Next(), [](uint32_t) { return false; }));
}
BENCHMARK(BM_PickAllRefuse)->Arg(10)->Arg(100)->Arg(1000);

void BM_Build(benchmark::State& state) {
  List list(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(HashRing::Build(list.endpoints, 160));
}
BENCHMARK(BM_Build)->Arg(100)->Arg(1000)->Unit(benchmark::kMillisecond);

// One server comes, one goes.
// Out of n endpoints one goes, comes back, and is reweighted; the list says where each stood before, as a cluster's
// does.
void BM_Change(benchmark::State& state) {
  List list(state.range(0));
  const auto n = static_cast<uint32_t>(state.range(0));
  HashRing ring = HashRing::Build(list.endpoints, 160);
  uint32_t at = 0;
  for (auto _ : state) {
    at = (at + 7) % n;
    std::vector<RingEndpoint> wanted;
    for (uint32_t i = 0; i < n; ++i) {
      if (i != at) wanted.push_back({list.names[i], 1.0, i});
    }
    HashRing fewer = HashRing::Build(wanted, 160, &ring);
    for (uint32_t i = 0; i < n; ++i) {
      if (i == at)
        wanted.insert(wanted.begin() + i, RingEndpoint{list.names[i], 1.0, RingEndpoint::kNew});
      else
        wanted[i].from = i < at ? i : i - 1;
    }
    HashRing whole = HashRing::Build(wanted, 160, &fewer);
    for (uint32_t i = 0; i < n; ++i) wanted[i].from = i;
    wanted[at].weight = 1.25;
    HashRing heavier = HashRing::Build(wanted, 160, &whole);
    wanted[at].weight = 1.0;
    ring = HashRing::Build(wanted, 160, &heavier);
  }
  state.SetItemsProcessed(state.iterations() * 4);
}
BENCHMARK(BM_Change)->Arg(10)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMicrosecond);

// The same where the list gives names only.
void BM_ChangeByName(benchmark::State& state) {
  List list(state.range(0) + 1);
  std::vector<RingEndpoint> fewer(list.endpoints.begin(), list.endpoints.end() - 1);
  HashRing small = HashRing::Build(fewer, 160), large = HashRing::Build(list.endpoints, 160);
  for (auto _ : state) {
    benchmark::DoNotOptimize(HashRing::Build(list.endpoints, 160, &small));
    benchmark::DoNotOptimize(HashRing::Build(fewer, 160, &large));
  }
  state.SetItemsProcessed(state.iterations() * 2);
}
BENCHMARK(BM_ChangeByName)->Arg(100)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_MovedShare(benchmark::State& state) {
  List list(state.range(0));
  std::vector<RingEndpoint> fewer(list.endpoints.begin(), list.endpoints.end() - 1);
  HashRing before = HashRing::Build(list.endpoints, 160), after = HashRing::Build(fewer, 160, &before);
  for (auto _ : state) benchmark::DoNotOptimize(HashRing::MovedShare(before, after));
}
BENCHMARK(BM_MovedShare)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_MovedShareOfStrangers(benchmark::State& state) {
  List list(state.range(0));
  std::vector<RingEndpoint> fewer(list.endpoints.begin(), list.endpoints.end() - 1);
  HashRing before = HashRing::Build(list.endpoints, 160), after = HashRing::Build(fewer, 160);
  for (auto _ : state) benchmark::DoNotOptimize(HashRing::MovedShare(before, after));
}
BENCHMARK(BM_MovedShareOfStrangers)->Arg(1000)->Unit(benchmark::kMicrosecond);

void BM_Digest(benchmark::State& state) {
  HashRing ring = HashRing::Build(List(state.range(0)).endpoints, 160);
  for (auto _ : state) benchmark::DoNotOptimize(ring.Digest());
}
BENCHMARK(BM_Digest)->Arg(1000);

}  // namespace
}  // namespace sluice::upstream
