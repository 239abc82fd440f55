// Many threads look, join, leave, complete and purge at once. Under TSan this is the test of the memory orders.
//
// Purges are numbered. A fetch's answer is the number of the last purge that had begun when the fetch was there; a call
// reads the number of the last one that had ended before it begins, and must never get a smaller answer, whether from
// the store or by joining.
#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "base/random.h"
#include "unit/proxy/response_cache/response_cache_support.h"

namespace sluice::proxy {
namespace {

using std::chrono::seconds;
using test::CacheFixture;
using Joined = ResponseCache::Joined;
using Kind = ResponseCache::Found::Kind;

#ifdef SLUICE_SANITIZED
constexpr int kSteps = 4'000;
#else
constexpr int kSteps = 30'000;
#endif
constexpr int kThreads = 4;
constexpr int kKeys = 3;

struct Stress {
  explicit Stress(const CacheOptions& options) : f(options) {
    for (int i = 0; i < kKeys; ++i) keys.push_back(f.Key(std::to_string(i)));
  }
  CacheFixture f;
  std::vector<CacheKey> keys;
  std::atomic<uint64_t> purges_begun{0};
  std::atomic<uint64_t> purges_done{0};
  std::mutex mutex;
  // Fetches that some thread must complete, and what they were begun with. Under mutex.
  struct Pending {
    std::shared_ptr<Fetch> fetch;
    uint64_t born;
  };
  std::vector<Pending> pending;
  std::atomic<uint64_t> answered{0}, left{0}, abandoned{0}, hits{0};

  uint64_t BornOf(const CachedResponsePtr& response) { return std::stoull(CacheFixture::TextOf(response)); }
};

class Worker {
 public:
  Worker(Stress& stress, uint64_t seed) : s_(stress), random_(seed), plan_(stress.f.Plan()) {
    for (auto& call : calls_) call = nullptr;
  }
  ~Worker() {
    for (auto& call : calls_) End(call);
  }
  void Step() {
    const auto now = s_.f.clock.Now();
    auto& call = calls_[random_.Below(std::size(calls_))];
    switch (random_.Below(16)) {
      case 0:
        return Purge();
      case 1:
      case 2:
      case 3:
      case 4:
        return CompleteOne();
      case 5:
        return End(call);
      case 6:
        s_.f.clock.Advance(seconds(1));
        return;
      default:
        return call == nullptr ? Begin(call, now) : Look(call);
    }
  }
  void CompleteOne() {
    Stress::Pending next;
    {
      std::lock_guard lock(s_.mutex);
      if (s_.pending.empty()) return;
      std::swap(s_.pending[random_.Below(s_.pending.size())], s_.pending.back());
      next = std::move(s_.pending.back());
      s_.pending.pop_back();
    }
    FetchResult result;
    result.response = test::Response({.message = std::to_string(next.born)}, s_.f.clock.Now());
    s_.f.cache.Complete(next.fetch, plan_, std::move(result), s_.f.clock.Now(), kSharedSlot);
  }

 private:
  static constexpr uint32_t kSharedSlot = 1;  // of the fixture's registry: any thread
  struct Call {
    CacheFixture::Caller caller;
    uint64_t seen = 0;  // purges that had ended when the call began
  };

  void Purge() {
    const uint64_t count = s_.purges_begun.fetch_add(1, std::memory_order_seq_cst) + 1;
    s_.f.cache.Purge(random_.Below(2) == 0 ? CachePurge{} : CachePurge{.service = "pkg.Users"});
    uint64_t done = s_.purges_done.load(std::memory_order_seq_cst);
    while (done < count && !s_.purges_done.compare_exchange_weak(done, count)) {
    }
  }
  void Begin(std::unique_ptr<Call>& call, base::TimePoint now) {
    call = std::make_unique<Call>();
    call->seen = s_.purges_done.load(std::memory_order_seq_cst);
    const CacheKey& key = s_.keys[random_.Below(kKeys)];
    const auto found = s_.f.cache.Lookup(key, plan_, now, kSharedSlot);
    if (found.kind != Kind::kMiss) {
      EXPECT_GE(s_.BornOf(found.response), call->seen);
      s_.hits.fetch_add(1, std::memory_order_relaxed);
      if (found.kind == Kind::kFresh) return call.reset();
    }
    const bool refresh = found.kind == Kind::kStale;
    std::shared_ptr<Fetch> fetch;
    const Joined joined = s_.f.cache.Join(
        key, plan_, refresh ? nullptr : &call->caller.participant, now + seconds(5), now,
        [this_stress = &s_] { this_stress->abandoned.fetch_add(1, std::memory_order_relaxed); }, &fetch, kSharedSlot);
    if (joined == Joined::kStarted) {
      // The upstream would be asked now.
      const uint64_t born = s_.purges_begun.load(std::memory_order_seq_cst);
      std::lock_guard lock(s_.mutex);
      s_.pending.push_back({fetch, born});
    }
    if (refresh || joined == Joined::kAlone) call.reset();
  }
  void Look(std::unique_ptr<Call>& call) {
    const auto result = call->caller.participant.result();
    if (result == nullptr) return;
    EXPECT_GE(s_.BornOf(result->response), call->seen);
    s_.answered.fetch_add(1, std::memory_order_relaxed);
    EXPECT_LE(call->caller.woken(), 1);
    call.reset();
  }
  void End(std::unique_ptr<Call>& call) {
    if (call == nullptr) return;
    if (call->caller.participant.result() == nullptr) s_.left.fetch_add(1, std::memory_order_relaxed);
    call->caller.participant.Leave();
    call.reset();
  }

  Stress& s_;
  base::Random random_;
  const CachePlan plan_;
  std::unique_ptr<Call> calls_[4];
};

void RunStress(const CacheOptions& options, bool one_hash) {
  Stress stress(options);
  stress.f.rule.stale_while_revalidate = seconds(20);
  if (one_hash) {
    stress.f.cache.SetHashForTest([](std::string_view) { return cache::Key128{7, 7}; });
    for (int i = 0; i < kKeys; ++i) stress.keys[static_cast<size_t>(i)] = stress.f.Key(std::to_string(i));
  }
  {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&stress, t] {
        Worker worker(stress, static_cast<uint64_t>(t) + 1);
        for (int i = 0; i < kSteps; ++i) worker.Step();
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  Worker last(stress, 99);
  while (stress.f.cache.stats().fetches > 0) last.CompleteOne();
  EXPECT_GT(stress.answered, 0u);
  EXPECT_GT(stress.left, 0u);
  EXPECT_GT(stress.abandoned, 0u);
  EXPECT_GT(stress.hits, 0u);
  stress.f.cache.Purge({});
  EXPECT_EQ(stress.f.cache.stats().entries, 0u);
  EXPECT_EQ(stress.f.cache.stats().usage_bytes, 0u);
}

TEST(ResponseCacheStress, NoAnswerIsOlderThanTheLastPurge) { RunStress(CacheFixture::Defaults(), false); }

TEST(ResponseCacheStress, NorWhenAllKeysHaveOneHash) { RunStress(CacheFixture::Defaults(), true); }

TEST(ResponseCacheStress, NorWithFewFetchesAndLittleMemory) {
  CacheOptions options = CacheFixture::Defaults();
  options.fetches_max = 2;
  options.capacity_bytes = 64 << 10;
  options.doorkeeper = true;
  options.strict = true;
  RunStress(options, false);
}

// Each participant of a group that races with Complete has the one result, or has left: the wake-ups count them.
TEST(ResponseCacheStress, EveryoneIsWokenOrHasLeft) {
  CacheFixture f;
  const CacheKey key = f.Key();
  const CachePlan plan = f.Plan();
  for (int round = 0; round < kSteps / 40; ++round) {
    std::shared_ptr<Fetch> fetch;
    CacheFixture::Caller anchor;
    ASSERT_EQ(f.Join(key, &anchor, &fetch), Joined::kStarted);
    std::atomic<bool> go{false};
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        CacheFixture::Caller caller;
        std::shared_ptr<Fetch> mine;
        ++started;
        while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
        const Joined joined =
            f.cache.Join(key, plan, &caller.participant, f.clock.Now(), f.clock.Now(), nullptr, &mine, 1);
        if (joined == Joined::kStarted) {  // after the other ended without storing
          FetchResult result;
          result.response = test::Response({}, f.clock.Now());
          f.cache.Complete(mine, plan, std::move(result), f.clock.Now(), 1);
        }
        if (t == 0) caller.participant.Leave();
        if (t == 1) {
          while (caller.participant.result() == nullptr) std::this_thread::yield();
        }
      });
    }
    while (started.load() < 2) std::this_thread::yield();
    go.store(true, std::memory_order_release);
    f.Complete(fetch);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(anchor.woken(), 1);
    f.cache.Purge({});
  }
  EXPECT_EQ(f.cache.stats().fetches, 0u);
}

}  // namespace
}  // namespace sluice::proxy
