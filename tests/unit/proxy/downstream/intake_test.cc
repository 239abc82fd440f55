// Bursts of ready requests: how many become calls, and what a client with one call waits for behind them.
#include "http2/connection/intake.h"

#include "base/memory_budget.h"
#include "proxy/downstream/overload.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using base::MemoryBudget;
using h2::Block;
using h2::Data;
using h2::GrpcRequest;
using h2::Headers;
using http2::Intake;
using test::FramePeer;
using test::kLast;

constexpr int64_t kLimit = 16 * 1024 * 1024;

class IntakeTest : public test::ProxyFixture {
 public:
  static constexpr int kClients = 20, kRequests = 500;

  // One worker: calls that are moved are counted by the one that takes them, which here runs later.
  IntakeTest() : ProxyFixture(1) {}
  void SetUp() override { Start({"10.0.0.1:1"}); }
  void TearDown() override {
    MemoryBudget::SetLimit(0);
    ProxyFixture::TearDown();
  }
  // kClients connections with kRequests each, ready before the worker looks at any.
  void Burst() {
    std::string wire;
    for (uint32_t i = 0; i < kRequests; ++i) wire += Headers(2 * i + 1, Block(GrpcRequest()), kLast);
    for (int i = 0; i < kClients; ++i) clients.push_back(&Client());
    for (FramePeer* client : clients) client->Send(wire);
    Run();
  }
  // Answers what has come to the endpoint; how many calls that was.
  size_t Answer() {
    size_t answered = 0;
    for (auto& [id, stream] : Up().streams) {
      if (id == 0 || stream.headers.empty() || !told.insert(id).second) continue;
      Respond(Up(), id, "");
      ++answered;
    }
    Run();
    return answered;
  }
  int64_t Calls() { return metrics.calls_in_flight->Value(); }
  size_t Answered() const {
    size_t n = 0;
    for (const FramePeer* client : clients) {
      for (const auto& [id, stream] : client->streams) n += id != 0 && stream.end ? 1 : 0;
    }
    return n;
  }

  std::vector<FramePeer*> clients;
  std::set<uint32_t> told;
};

// The limit is 16 MiB, half of which is 512 calls of 16 KiB.
TEST_F(IntakeTest, ABurstBecomesAsManyCallsAsTheMemoryLimitSuggests) {
  MemoryBudget::SetLimit(kLimit);
  Burst();
  EXPECT_GE(Calls(), Intake::kTurnCalls);
  EXPECT_LE(Calls(), 2 * kRequests) << "what two connections had ready before the worker was pressed";
  EXPECT_LT(MemoryBudget::held(), kLimit);
}

TEST_F(IntakeTest, WhatWaitsInSocketsIsTakenAsCallsEnd) {
  MemoryBudget::SetLimit(kLimit);
  Burst();
  for (int i = 0; i < 1000 && Answered() < size_t{kClients} * kRequests; ++i) {
    Answer();
    Advance(Intake::kTick);
  }
  EXPECT_EQ(Answered(), size_t{kClients} * kRequests);
  EXPECT_EQ(Calls(), 0);
  EXPECT_EQ(metrics.memory_connections_closed->Value(), 0u);
}

TEST_F(IntakeTest, AClientWithOneCallGoesBeforeThem) {
  MemoryBudget::SetLimit(kLimit);
  FramePeer& honest = Client();
  honest.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  Burst();
  const int64_t before = Calls();
  honest.Send(Headers(3, Block(GrpcRequest("/pkg.Service/Honest")), kLast));
  Run();
  EXPECT_EQ(Calls(), before + 1) << "it is called at once, the others wait";
  const auto& last = Up().streams.rbegin()->second.headers[0];
  EXPECT_NE(std::find(last.begin(), last.end(), std::pair<std::string, std::string>(":path", "/pkg.Service/Honest")),
            last.end());
}

// A busy connection is read a bite a tick even where there are too many calls: its resets make room.
TEST_F(IntakeTest, ResetsOfABusyConnectionAreReadWhereThereAreTooManyCalls) {
  MemoryBudget::SetLimit(kLimit);
  std::string wire;
  for (uint32_t i = 0; i < 1000; ++i) wire += Headers(2 * i + 1, Block(GrpcRequest()), kLast);
  for (int i = 0; i < 2; ++i) clients.push_back(&Client());
  for (FramePeer* client : clients) client->Send(wire);
  Run();
  const int64_t before = Calls();
  ASSERT_GE(before, kLimit / 2 / OverloadManager::kCallBytes);
  std::string resets;
  for (uint32_t i = 0; i < 1000; ++i) resets += h2::RstStream(2 * i + 1, 8);
  for (FramePeer* client : clients) client->Send(resets);
  for (int i = 0; i < 400 && Calls() > 0; ++i) Advance(Intake::kTick);
  EXPECT_EQ(Calls(), 0);
}

TEST_F(IntakeTest, WithoutAMemoryLimitNothingWaitsLongerThanTurns) {
  Burst();
  EXPECT_EQ(Calls(), int64_t{kClients} * kRequests);
}

}  // namespace
}  // namespace sluice::proxy
