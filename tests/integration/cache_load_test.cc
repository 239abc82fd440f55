// The response cache under load while data, configuration and clients change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <iostream>
#include <random>
#include <thread>

#include "support/cache_fixture.h"

namespace sluice::integration {
namespace {

using grpc::StatusCode;

// The backend's answers carry the number of the last change. After a purge has returned, no answer is older than the
// purge, also none of a fetch that was under way.
class ChangingData : public Cache {
 protected:
  ChangingData()
      : Cache([](const GateBackend::Call&) { return grpc::Status::OK; },
              [this](const GateBackend::Call& call) {
                call.reply->set_index(version_.load(std::memory_order_seq_cst));
              }) {}
  std::atomic<uint64_t> version_{1};
};

TEST_F(ChangingData, IsNeverOlderThanThePurgeThatReturned) {
  Start();
  constexpr int kReaders = 6, kPurges = 300;
  backend_.Close();  // so that every fetch is under way for a while
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> floor{1}, reads{0}, too_old{0}, failed{0};
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      if (WaitUntil([&] { return backend_.held() > 0 || stop.load(std::memory_order_relaxed); })) backend_.Release(1);
    }
    backend_.Open();
  });
  for (int reader = 0; reader < kReaders; ++reader) {
    threads.emplace_back([&, reader] {
      auto stub = echo::v1::Echo::NewStub(Connect(proxy_->target()));
      for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        const uint64_t least = floor.load(std::memory_order_seq_cst);
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + kLongWait);
        const Reply reply =
            integration::Call(stub.get(), Kind::kUnary, &context, Spec(std::to_string((i + reader) % 3)).request);
        if (!reply.status.ok()) {
          failed.fetch_add(1, std::memory_order_relaxed);
        } else if (reply.messages[0].index() < least) {
          too_old.fetch_add(1, std::memory_order_relaxed);
        }
        reads.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  for (int i = 0; i < kPurges; ++i) {
    const uint64_t before = reads.load(std::memory_order_relaxed);
    const uint64_t version = version_.fetch_add(1, std::memory_order_seq_cst) + 1;
    person().Purge(i % 3 == 0 ? "" : kService, i % 3 == 2 ? "Unary" : "");
    floor.store(version, std::memory_order_seq_cst);
    // Some purges follow each other at once, some have hits between.
    if (i % 4 != 0) {
      EXPECT_TRUE(WaitUntil([&] { return reads.load(std::memory_order_relaxed) >= before + 1 + i % 20; }));
    }
  }
  stop.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  const auto cache = person().Cache();
  std::cout << "[  figures ] " << kPurges << " purges beside " << reads.load() << " calls: " << cache.hits()
            << " hits, " << cache.coalesced() << " coalesced, " << cache.purged() << " responses dropped\n";
  EXPECT_EQ(too_old.load(), 0u);
  EXPECT_EQ(failed.load(), 0u);
  EXPECT_GT(cache.hits(), 0u);
  EXPECT_GT(cache.coalesced(), 0u);
  EXPECT_GT(cache.purged(), 0u);
  EXPECT_GT(person().NotCached("purged"), 0u) << "some purge met a fetch under way";
}

// Clients that leave at any moment, purges, reloads with and without cache and limits, answers of all sizes: every call
// ends, with the right answer or because its client left, and nothing is left behind.
TEST_F(Cache, EverythingAtOnce) {
  config_.top.push_back("cache: {capacity: 1MiB, entry_max: 16KiB}");
  Start("stale_while_revalidate: 1h", "1ms");
  backend_.Close();
  std::jthread pump([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      if (WaitUntil([&] { return backend_.held() > 0 || stop.stop_requested(); })) backend_.Release(3);
    }
    backend_.Open();
  });
  AsyncCalls one(proxy_->target()), two(proxy_->target());
  std::mt19937 random(7);
  size_t left = 0, answered = 0;
  double begun = 0;
  for (int round = 0; round < 150; ++round) {
    std::vector<std::pair<CallSpec, AsyncCallPtr>> made;
    for (int i = 0; i < 30; ++i) {
      CallSpec spec = Spec("key " + std::to_string(random() % 4));
      if (random() % 5 == 0) spec.request.set_reply_bytes(static_cast<uint32_t>(1 + random() % 100000));
      made.emplace_back(spec, (random() % 2 ? one : two).Start(spec));
    }
    // gRPC 1.51 sends RST_STREAM, and no HEADERS, for a call that is cancelled before it was written; RFC 9113 6.4 has
    // the receiver end the connection for that. So the proxy must have seen them all, done or not.
    const auto seen = [&] {
      return proxy_->Metric("sluice_calls_total") + static_cast<double>(person().CallsInFlight());
    };
    begun += static_cast<double>(made.size());
    ASSERT_TRUE(WaitUntil([&] { return seen() >= begun && seen() >= begun; }));
    for (auto& [spec, call] : made) {
      if (random() % 4 == 0) call->Cancel();
    }
    if (random() % 4 == 0) person().Purge();
    if (random() % 8 == 0) {
      ProxyConfig config = config_;
      if (random() % 3 == 0) config.route = {"name: main"};
      if (random() % 2 == 0) config.cluster = {"concurrency: {max: 3}", "endpoint_concurrency: {max: 2}"};
      if (random() % 2 == 0) config.cluster.push_back("rate_limit: {rate: 5000, burst: 4, capped: true}");
      person().ReloadWith(config);
    }
    for (auto& [spec, call] : made) {
      Await({call});
      if (call->status().error_code() == StatusCode::CANCELLED) {
        ++left;
        continue;
      }
      ++answered;
      ASSERT_TRUE(call->status().ok()) << Describe(call->status()) << " in round " << round;
      const size_t bytes = spec.request.reply_bytes();
      ASSERT_EQ(call->reply().messages[0].payload(), bytes ? std::string(bytes, 'r') : spec.request.payload());
    }
  }
  pump.request_stop();
  EXPECT_TRUE(WaitUntil([&] { return person().AllGivenBack() && person().Cache().fetches() == 0; }))
      << person().Limits();
  EXPECT_TRUE(WaitUntil([&] { return person().CallsInFlight() == 0; }));
  const auto cache = person().Cache();
  std::cout << "[  figures ] " << answered << " answered, " << left << " left, " << backend_.arrived()
            << " upstream calls; " << cache.hits() << " hits, " << cache.stale() << " stale, " << cache.coalesced()
            << " coalesced\n";
}

}  // namespace
}  // namespace sluice::integration
