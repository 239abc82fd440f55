// What an older process of the daemon says to a new one. The input's first byte says what the rest is: a memory file of
// lists, one of state, a message to a process that takes over, or one to a process that has. Never an exception, a hang
// or a read beyond the bytes; what is in force afterwards is within its bounds.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/log.h"
#include "handover/predecessor.h"
#include "server/handover_state.h"
#include "server/processes.h"
#include "upstream/cluster_health.h"

namespace sluice::server {
namespace {

constexpr std::string_view kHead("SLUICEHO\1\0\0\0", 12);
const base::TimePoint kNow = base::TimePoint(std::chrono::hours(100));

config::Config MakeConfig() {
  config::Config config;
  config.concurrency.max = 50;
  config.clusters.resize(1);
  config.clusters[0].name = "c";
  config.clusters[0].rate_limit = {.rate = 10, .burst = 80};
  config.clusters[0].concurrency.max = 8;
  for (const auto& [name, address] : {std::pair("a", "10.0.0.1:1"), {"b", "10.0.0.2:1"}})
    config.clusters[0].endpoints.push_back({name, *net::Address::Parse(address), 1});
  config.routes.resize(1);
  config.routes[0].name = "r";
  config.routes[0].cluster = "c";
  config.routes[0].rate_limit = {.rate = 10, .burst = 20, .capped = true};
  config.routes[0].client_rate_limit.metadata = "x";
  config.routes[0].client_rate_limit.rate = {.rate = 1, .burst = 8};
  return config;
}

struct Side {
  explicit Side(const InheritedLists* lists = nullptr) {
    limits.Apply(config);
    clusters.emplace(registry, 1, ClusterWaits(), &limits);
    const LimitTable table = limits.MakePlan(config);
    ready = clusters->Init(config, {.limits = &table}, lists).ok();
  }
  void Check() {
    const LimitTable table = limits.Table();
    for (const LimitTable::Named& named : table.all()) {
      if (const auto* rate = std::get_if<RateLimit>(&named.limit))
        SLUICE_CHECK(rate->permille >= 1 && rate->permille <= kWhole);
      if (const auto* permits = std::get_if<ConcurrencyLimit>(&named.limit))
        SLUICE_CHECK(permits->limiter->own() <= permits->in_force.max);
    }
    for (const auto& state : clusters->States()) {
      SLUICE_CHECK(state->endpoints.size() <= 1'000'000);
      for (const auto& listed : state->endpoints) {
        const double share = listed.endpoint->record().share();
        SLUICE_CHECK(share >= 0 && share <= 1);
      }
    }
    (void)registry.RenderPrometheus();
    (void)registry.Counts();
  }

  const config::Config config = MakeConfig();
  metrics::Registry registry{1};
  LimitSet limits;
  std::optional<Clusters> clusters;
  bool ready = false;
};

handover::Descriptor FileOf(std::string_view bytes, bool with_head) {
  handover::Descriptor file(::memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  SLUICE_CHECK(file.get() >= 0);
  if (with_head) SLUICE_CHECK(::write(file.get(), kHead.data(), kHead.size()) == static_cast<ssize_t>(kHead.size()));
  SLUICE_CHECK(::write(file.get(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  SLUICE_CHECK(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) == 0);
  return file;
}

void TryLists(std::string_view bytes, bool with_head) {
  auto lists = ReadLists(FileOf(bytes, with_head));
  if (!lists.ok()) {
    SLUICE_CHECK(!lists.error().detail.empty());
    return;
  }
  Side side(&lists->lists);  // a list that cannot be in force is an error of the start, or not taken
  if (!side.ready) return;
  for (const auto& limit : lists->limits) side.limits.TakeInForce(limit);
  side.Check();
}

void TryState(std::string_view bytes, bool with_head) {
  Side side;
  proxy::CacheOptions options;
  options.capacity_bytes = 1 << 20;
  proxy::ResponseCache cache(options, side.registry);
  (void)ReadState(FileOf(bytes, with_head), {*side.clusters, side.limits.Table(), side.registry, &cache}, kNow);
  side.Check();
  cache.ForEachStored([](const proxy::ResponseCache::Stored& stored) {
    SLUICE_CHECK(proxy::cache_key::IsKey(stored.key));
    SLUICE_CHECK(stored.response.headers.Find(":status").size() == 3);
  });
  (void)cache.Purge({.service = "a.B", .method = "C"});
}

// The messages of the input, one behind the other: two bytes of size, then the message.
template <typename Fn>
void ForEachMessage(std::string_view bytes, Fn fn) {
  while (bytes.size() >= 2) {
    const size_t size = static_cast<unsigned char>(bytes[0]) << 8 | static_cast<unsigned char>(bytes[1]);
    bytes.remove_prefix(2);
    fn(bytes.substr(0, size));
    bytes.remove_prefix(std::min(size, bytes.size()));
  }
}

struct Ends {
  Ends() {
    auto pair = handover::MessageSocket::MakePair();
    SLUICE_CHECK(pair.ok());
    old = std::move(pair->first);
    young = handover::Channel(std::move(*handover::MessageSocket::Adopt(pair->second.Release())));
  }
  handover::MessageSocket old;
  handover::Channel young;
};

void TryTakeOver(std::string_view bytes, int descriptors) {
  Ends ends;
  const handover::Descriptor file = FileOf("", true);
  const std::vector<int> some(static_cast<size_t>(descriptors), file.get());
  ForEachMessage(bytes, [&](std::string_view message) { (void)ends.old.Send(message, some); });
  ends.old.Close();
  auto met = handover::Predecessor::Meet(std::move(ends.young), "1", handover::kFormat);
  if (!met.ok() || !(*met)->Ready().ok()) return;
  Side side;
  Processes processes(side.limits, *side.clusters, side.registry);
  auto parts = ReadParts((*met)->held());
  if (!parts.ok()) return;
  processes.Take((*met)->take(), std::move(*parts), (*met)->TakeChannels());
  side.Check();
  processes.Read();
  side.Check();
}

void TryLeaving(std::string_view bytes, int descriptors) {
  Ends ends;
  Side side;
  Processes processes(side.limits, *side.clusters, side.registry);
  handover::v1::Take take;
  take.add_processes();
  handover::v1::Part process;
  for (const char* limit : {"process/concurrency", "cluster/c/concurrency", "route/r/rate"}) {
    process.add_held()->set_limit(limit);
    process.mutable_held(process.held_size() - 1)->set_units(3);
    process.add_shares()->set_limit("cluster/c/rate");
    process.mutable_shares(process.shares_size() - 1)->set_permille(125);
  }
  processes.Take(take, {process}, {});
  processes.SetLastChannel(std::move(ends.young));
  const handover::Descriptor file = FileOf("", true);
  const std::vector<int> some(static_cast<size_t>(descriptors), file.get());
  ForEachMessage(bytes, [&](std::string_view message) { (void)ends.old.Send(message, some); });
  processes.Read();
  side.Check();
  (void)processes.List(kNow);
  ends.old.Close();
  while (processes.size() > 0) processes.Read();
  side.Check();
}

}  // namespace
}  // namespace sluice::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::server;
  static const bool kQuiet = (spdlog::set_level(spdlog::level::off), true);
  (void)kQuiet;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const int descriptors = data[0] >> 4 & 3;
  switch (data[0] & 7) {
    case 0:
    case 1:
      TryLists(bytes, (data[0] & 1) == 0);
      break;
    case 2:
    case 3:
      TryState(bytes, (data[0] & 1) == 0);
      break;
    case 4:
    case 5:
      TryTakeOver(bytes, descriptors);
      break;
    default:
      TryLeaving(bytes, descriptors);
  }
  return 0;
}
