// Memory stays flat over many calls and many connections. SLUICE_SOAK_CALLS=10000000 makes it the full run of
// ten million.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <vector>

#include "base/slice.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/raw_peer.h"
#include "support/wait_until.h"

namespace sluice::integration {
namespace {

constexpr uint64_t kDefaultCalls = 500'000;
constexpr int kConnections = 10'000;
constexpr size_t kGrowthMax = 4u << 20;  // resident, of this process: Sluice and the raw clients

uint64_t SoakCalls() {
  const char* text = std::getenv("SLUICE_SOAK_CALLS");
  return text ? std::strtoull(text, nullptr, 10) : kDefaultCalls;
}

size_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  size_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

// A raw client that keeps `kAtOnce` unary calls open on one connection: cheaper than gRPC's, so that Sluice
// is what runs.
void MakeCalls(uint16_t port, uint64_t calls, std::atomic<uint64_t>* failed) {
  constexpr uint64_t kAtOnce = 50;
  constexpr uint64_t kPerConnection = 100'000;  // far below the 2^30 streams that one may have
  while (calls > 0) {
    const uint64_t here = std::min(calls, kPerConnection);
    RawPeer peer = RawPeer::Connect(port);
    peer.Handshake();
    peer.Send(raw::Frame(raw::kWindowUpdate, 0, 0, raw::U32(0x3fffffff)));
    uint64_t sent = 0, ended = 0;
    for (; sent < std::min(here, kAtOnce); ++sent) peer.Send(raw::EchoCall(static_cast<uint32_t>(2 * sent + 1)));
    while (ended < here) {
      const auto frame = peer.Next();
      if (!frame) break;
      if (frame->type == raw::kRstStream) failed->fetch_add(1, std::memory_order_relaxed);
      const bool end = frame->type == raw::kRstStream || ((frame->type == raw::kHeaders || frame->type == raw::kData) &&
                                                          (frame->flags & raw::kEndStream));
      if (!end) continue;
      ++ended;
      if (sent < here) peer.Send(raw::EchoCall(static_cast<uint32_t>(2 * sent++ + 1)));
    }
    failed->fetch_add(here - ended, std::memory_order_relaxed);
    calls -= here;
  }
}

class FlatMemory : public testing::Test {
 protected:
  FlatMemory() {
    EXPECT_TRUE(WaitUntil([&] { return backend_.Output().find("listening") != std::string::npos; }));
    ProxyConfig config;
    config.endpoints = {{"echo-1", address_}};
    proxy_ = std::make_unique<Proxy>(config);
  }

  void Soak(uint64_t calls) {
    constexpr int kThreads = 4;
    std::atomic<uint64_t> failed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] { MakeCalls(proxy_->port(), calls / kThreads, &failed); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed.load(), 0u);
  }
  void ExpectIdle() {
    EXPECT_TRUE(WaitUntil([&] { return proxy_->Metric("sluice_downstream_connections") == 0; }));
    EXPECT_TRUE(WaitUntil([&] { return proxy_->Metric("sluice_calls_in_flight") == 0; }));
    EXPECT_TRUE(WaitUntil([&] { return proxy_->Metric("sluice_endpoint_in_flight") == 0; }));
    EXPECT_TRUE(WaitUntil([&] { return base::Block::LiveBytes() < (2u << 20); })) << base::Block::LiveBytes();
  }

  // In a process of its own: gRPC's memory is not what is measured.
  TempDir dir_;
  const std::string address_ = "unix:" + dir_.File("echo.sock");
  Process backend_{"sluice-echo", {"server", "--listen", address_}, dir_.File("echo.out")};
  std::unique_ptr<Proxy> proxy_;
};

TEST_F(FlatMemory, OverManyCalls) {
  const uint64_t calls = SoakCalls();
  Soak(calls / 5);  // fills pools, tables and gRPC's arenas
  ExpectIdle();
  const size_t live = base::Block::LiveBytes(), resident = ResidentBytes();
  Soak(calls);
  ExpectIdle();
  const size_t live_after = base::Block::LiveBytes(), resident_after = ResidentBytes();
  std::printf("%llu calls: blocks %zu -> %zu bytes, resident %zu -> %zu KiB\n", static_cast<unsigned long long>(calls),
              live, live_after, resident >> 10, resident_after >> 10);
  EXPECT_LE(live_after, live + (256u << 10));
  EXPECT_LE(resident_after, resident + kGrowthMax);
  EXPECT_EQ(proxy_->Metric("sluice_proxy_errors_total"), 0);
}

TEST_F(FlatMemory, AfterManyConnectionsHaveComeAndGone) {
  const auto come_and_go = [&](int count) {
    for (int i = 0; i < count; ++i) {
      RawPeer peer = RawPeer::Connect(proxy_->port());
      peer.Handshake();
      if (i % 10 != 0) continue;  // most come and go without a call, as health checks do
      peer.Send(raw::EchoCall(1));
      ASSERT_EQ(peer.AnswerOf(1).grpc_status(), "0");
    }
  };
  come_and_go(kConnections / 5);
  ExpectIdle();
  const size_t live = base::Block::LiveBytes(), resident = ResidentBytes();
  come_and_go(kConnections);
  ExpectIdle();
  const size_t live_after = base::Block::LiveBytes(), resident_after = ResidentBytes();
  std::printf("%d connections: blocks %zu -> %zu bytes, resident %zu -> %zu KiB\n", kConnections, live, live_after,
              resident >> 10, resident_after >> 10);
  EXPECT_LE(live_after, live + (256u << 10));
  EXPECT_LE(resident_after, resident + kGrowthMax);
  EXPECT_EQ(proxy_->Metric("sluice_downstream_connections_total"), kConnections + kConnections / 5);
}

TEST_F(FlatMemory, WithManyConnectionsOpenAtOnce) {
  constexpr int kOpen = 1000;
  std::vector<RawPeer> peers;
  const size_t before = base::Block::LiveBytes();
  for (int i = 0; i < kOpen; ++i) {
    peers.push_back(RawPeer::Connect(proxy_->port()));
    peers.back().Handshake();
    peers.back().Send(raw::EchoCall(1));
    ASSERT_EQ(peers.back().AnswerOf(1).grpc_status(), "0");
  }
  // Idle connections keep no read buffers: 8 KiB each of all that is ours is promised, blocks are a part of it.
  EXPECT_TRUE(WaitUntil([&] { return base::Block::LiveBytes() < before + kOpen * (8u << 10); }))
      << base::Block::LiveBytes();
  peers.clear();
  ExpectIdle();
}

}  // namespace
}  // namespace sluice::integration
