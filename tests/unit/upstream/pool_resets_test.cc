// Servers that end a connection for the resets on it: what a pool learns of one, and how it goes round it.
#include <gmock/gmock.h>

#include <chrono>

#include "pool_fixture.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr uint32_t kNoError = 0x0, kInternalError = 0x2, kEnhanceYourCalm = 0xb;

class PoolResetsTest : public EndpointPoolTest {
 public:
  // So many calls, one after the other, that their callers cancel.
  void Cancel(uint32_t n) {
    for (uint32_t i = 0; i < n; ++i) {
      Caller& call = NewCall("cancelled");
      Run();
      ASSERT_NE(call.stream, nullptr);
      std::exchange(call.stream, nullptr)->Release();
      Advance(milliseconds(2));
      callers.pop_back();
      CloseLeft();
    }
    Log();
  }
  // As servers do.
  void CloseLeft() {
    for (const auto& connection : host.connections) {
      if (connection->Count(h2::kGoaway) > 0) connection->wire().Close();
    }
    Run();
  }
  void EndLast(uint32_t code) {
    host.last().Send(h2::Goaway(0x7fffffff, code));
    host.last().wire().Close();
    Run();
  }
  // It has ended a connection after `resets`.
  void Learn(uint32_t resets) {
    Cancel(resets);
    EndLast(kEnhanceYourCalm);
  }
  int64_t Open() const { return endpoint->metrics().connections->Value(); }
};

TEST_F(PoolResetsTest, OneConnectionDoesUntilAServerObjects) {
  Cancel(500);
  EXPECT_EQ(host.connections.size(), 1u);
  EXPECT_EQ(endpoint->resets_max(), UINT32_MAX);
}

TEST_F(PoolResetsTest, AnErrorBehindManyResetsIsABound) {
  Learn(300);
  EXPECT_NEAR(endpoint->resets_max(), 150, 2);
  Cancel(100);
  EndLast(kInternalError);  // as nghttp2 says it
  const uint32_t learned = endpoint->resets_max();
  EXPECT_NEAR(learned, 50, 1);
  Cancel(EndpointPool::kResetsMin - 1);
  EndLast(kEnhanceYourCalm);
  EXPECT_EQ(endpoint->resets_max(), learned) << "so few are none";
}

TEST_F(PoolResetsTest, AnErrorLongAfterThemIsNone) {
  Cancel(100);
  Advance(std::chrono::minutes(4));
  ASSERT_EQ(Open(), 1);
  EndLast(kInternalError);
  EXPECT_EQ(endpoint->resets_max(), UINT32_MAX);
}

// The process at the address may be another one by then.
TEST_F(PoolResetsTest, WhatWasLearnedIsTriedAgainAfterATime) {
  Learn(200);
  const uint32_t learned = endpoint->resets_max();
  EXPECT_NEAR(learned, 100, 2);
  Cancel(learned + 1);
  EXPECT_EQ(endpoint->resets_max(), learned);
  Advance(Endpoint::kResetsKept);
  Cancel(learned + 1);
  EXPECT_EQ(endpoint->resets_max(), 2 * learned);
}

// Other calls are on them: what is left of each bound is used before any of them is ended.
TEST_F(PoolResetsTest, WhereAllHaveManyTheOneWithTheFewestIsNext) {
  options.connections_max = 2;
  Learn(200);
  for (int i = 0; i < 2; ++i) {
    NewCall("stays");
    Run();
    Cancel(102);
  }
  ASSERT_EQ(host.connections.size(), 3u);
  Cancel(60);
  const size_t one = host.connections[1]->Count(h2::kRstStream), other = host.connections[2]->Count(h2::kRstStream);
  EXPECT_NEAR(static_cast<double>(one), static_cast<double>(other), 8);
}

// The address may take one connection of a client and no more.
TEST_F(PoolResetsTest, ADialBesideThatFailsIsNoEvidence) {
  Learn(200);
  Cancel(50);
  const uint64_t failures = endpoint->metrics().failures->Value();
  const int dials = host.dials;
  host.mode = FakeHost::Mode::kRefuse;
  Cancel(100);
  EXPECT_GT(host.dials, dials);
  EXPECT_EQ(endpoint->metrics().failures->Value(), failures);
}

TEST_F(PoolResetsTest, ADrainIsNone) {
  Cancel(300);
  EndLast(kNoError);
  EXPECT_EQ(endpoint->resets_max(), UINT32_MAX);
}

TEST_F(PoolResetsTest, CallsMoveToAnotherConnectionBeforeTheBound) {
  Learn(200);
  for (int round = 0; round < 20; ++round) Cancel(100);
  for (const auto& connection : host.connections) EXPECT_LE(connection->Count(h2::kRstStream), 200u);
  EXPECT_GE(host.connections.size(), 20u);
  EXPECT_EQ(Open(), 1) << "those before have gone";
}

// The call that meets the bound does not wait for the next connection.
TEST_F(PoolResetsTest, NoCallWaitsAndNoneIsLost) {
  Learn(200);
  Caller& stays = NewCall("stays");
  Run();
  Cancel(endpoint->resets_max());
  ASSERT_EQ(host.connections.size(), 2u);
  host.speaks = false;  // the next one says nothing for now
  Caller& call = NewCall("call");
  EXPECT_NE(call.stream, nullptr);
  Run();
  ASSERT_EQ(host.connections.size(), 3u);
  Caller& same = NewCall("same");
  Run();
  EXPECT_EQ(host.connections[1]->streams.rbegin()->first, same.stream->id());
  host.last().Send(h2::Settings({}));
  Run();
  Caller& next = NewCall("next");
  Run();
  EXPECT_EQ(host.connections[2]->streams.rbegin()->first, next.stream->id());
  EXPECT_THAT(Log(), ::testing::Each(::testing::HasSubstr(" connection")));
  EXPECT_EQ(Open(), 2);
  for (Caller* caller : {&call, &same}) std::exchange(caller->stream, nullptr)->Release();
  Run();
  EXPECT_EQ(Open(), 2) << "a call is on it";
  std::exchange(stays.stream, nullptr)->Release();
  Run();
  CloseLeft();
  EXPECT_EQ(Open(), 1);
}

// A client that keeps calls open on all of them makes no more of them than are allowed.
TEST_F(PoolResetsTest, TheyAreNoMoreThanConnectionsMax) {
  options.connections_max = 3;
  Learn(200);
  for (int round = 0; round < 10; ++round) {
    NewCall("stays");
    Run();
    Cancel(100);
    EXPECT_LE(Open(), 3);
  }
  Caller& call = NewCall("call");
  EXPECT_NE(call.stream, nullptr) << "the best of them does";
}

// However fast calls are cancelled.
TEST_F(PoolResetsTest, ConnectionsAreNotBegunAsFastAsCallsAreCancelled) {
  Learn(200);
  const size_t before = host.connections.size();
  const base::TimePoint start = time.clock.Now();
  for (int i = 0; i < 2000; ++i) {
    Caller& call = NewCall("cancelled");
    Run();
    ASSERT_NE(call.stream, nullptr);
    std::exchange(call.stream, nullptr)->Release();
    Run();
    callers.pop_back();
    if (i % 10 == 0) Advance(milliseconds(1));
    CloseLeft();
  }
  const auto dials = static_cast<int64_t>(host.connections.size() - before);
  EXPECT_LE(dials, (time.clock.Now() - start) / EndpointPool::kBetweenWorn + 1);
  EXPECT_GE(dials, 2);
}

TEST_F(PoolResetsTest, WithTimeItIsAsGoodAsNew) {
  Learn(200);
  NewCall("stays");
  Run();
  Cancel(endpoint->resets_max());
  Advance(40 * seconds(1));
  ASSERT_EQ(host.connections.size(), 2u);
  NewCall("call");
  Run();
  EXPECT_EQ(host.connections.size(), 2u);
}

}  // namespace
}  // namespace sluice::upstream
