// Calls with a connection each.
#include "upstream/lone_calls.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "pool_fixture.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LoneCallsTest : public EndpointPoolTest {
 public:
  Caller& NewLone(const std::string& name) {
    EndpointPool& pool = Pool();
    callers.push_back(std::make_unique<Caller>(name, log, *context, request));
    if (!pool.WaitAlone(*callers.back())) log.push_back(name + " full");
    return *callers.back();
  }
  size_t Open() const { return static_cast<size_t>(endpoint->metrics().connections->Value()); }
};

TEST_F(LoneCallsTest, EachHasAConnectionThatNoOtherCallGets) {
  NewCall("shared");
  NewLone("a");
  NewLone("b");
  Run();
  EXPECT_THAT(Log(), ::testing::UnorderedElementsAre("shared connection", "a connection", "b connection"));
  ASSERT_EQ(host.connections.size(), 3u);
  NewCall("another");
  Run();
  std::multiset<ptrdiff_t> calls;
  for (const auto& peer : host.connections)
    calls.insert(std::count_if(peer->streams.begin(), peer->streams.end(),
                               [](const auto& stream) { return !stream.second.headers.empty(); }));
  EXPECT_EQ(calls, (std::multiset<ptrdiff_t>{1, 1, 2}));
  EXPECT_EQ(host.connections.size(), 3u);
}

TEST_F(LoneCallsTest, TheConnectionEndsWithItsCall) {
  Caller& a = NewLone("a");
  Run();
  EXPECT_EQ(Open(), 1u);
  std::exchange(a.stream, nullptr)->Release();
  Run();
  host.last().wire().Close();
  Run();
  EXPECT_EQ(Open(), 0u);
  EXPECT_EQ(endpoint->metrics().lost->Value(), 0u);
  NewCall("b");
  Run();
  EXPECT_EQ(host.connections.size(), 2u);
}

TEST_F(LoneCallsTest, TheirNumberIsBounded) {
  for (size_t i = 0; i < LoneCalls::kLoneMax; ++i) NewLone("a");
  NewLone("one more");
  EXPECT_EQ(Log(), (Strings{"one more full"}));
  Run();
  EXPECT_EQ(host.connections.size(), LoneCalls::kLoneMax);
}

TEST_F(LoneCallsTest, FewAreDialedAtATimeAndTheOthersFollow) {
  host.speaks = false;
  for (size_t i = 0; i < LoneCalls::kLoneMax; ++i) NewLone("a");
  Run();
  EXPECT_EQ(host.connections.size(), LoneCalls::kDialsMax);
  host.connections[0]->Send(h2::Settings(host.settings));
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_EQ(host.connections.size(), LoneCalls::kDialsMax + 1);
  // The last of them waits no longer than the first.
  Advance(options.connect_timeout);
  EXPECT_EQ(Log().size(), LoneCalls::kLoneMax - 1);
  EXPECT_EQ(host.connections.size(), LoneCalls::kDialsMax + 1);
}

TEST_F(LoneCallsTest, ACallThatLeavesBeforeItIsDialedIsNotDialed) {
  host.speaks = false;
  for (size_t i = 0; i < LoneCalls::kDialsMax; ++i) NewLone("a");
  NewLone("b").CancelWait();
  NewLone("c");
  Run();
  host.connections[0]->Send(h2::Settings(host.settings));
  Run();
  EXPECT_EQ(host.connections.size(), LoneCalls::kDialsMax + 1);
  host.last().Send(h2::Settings(host.settings));
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection", "c connection"}));
}

TEST_F(LoneCallsTest, ADrainDialsForNoneThatWaits) {
  host.speaks = false;
  for (size_t i = 0; i < LoneCalls::kDialsMax + 5; ++i) NewLone("a");
  Run();
  set->Drain(*endpoint);
  Run();
  EXPECT_EQ(Log().size(), LoneCalls::kDialsMax + 5);
  EXPECT_EQ(host.dials, static_cast<int>(LoneCalls::kDialsMax));
}

TEST_F(LoneCallsTest, AConnectThatFailsOrHangsFailsItsCallAlone) {
  NewCall("shared");
  Run();
  Log();
  host.mode = FakeHost::Mode::kRefuse;
  NewLone("a");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connect_failed"}));
  host.mode = FakeHost::Mode::kAccept;
  host.speaks = false;
  NewLone("b");
  Run();
  Advance(options.connect_timeout);
  EXPECT_EQ(Log(), (Strings{"b connect_timeout"}));
  EXPECT_EQ(Open(), 1u);
  EXPECT_NE(Pool().Ready(), nullptr) << "the shared one is as it was";
}

TEST_F(LoneCallsTest, ACallThatLeavesLeavesNoConnection) {
  NewLone("a").CancelWait();
  Run();
  EXPECT_EQ(Log(), Strings{});
  host.last().wire().Close();
  Run();
  EXPECT_EQ(Open(), 0u);
}

TEST_F(LoneCallsTest, ADrainWaitsForThemUpToDrainTimeout) {
  Caller& a = NewLone("a");
  Run();
  NewLone("b");
  set->Drain(*endpoint);
  EXPECT_EQ(Log(), (Strings{"a connection", "b draining"}));
  Run();
  EXPECT_EQ(set->size(), 1u);
  Advance(options.drain_timeout);
  EXPECT_NE(a.stream, nullptr);
  host.connections[0]->wire().Close();
  Run();
  EXPECT_EQ(set->size(), 0u);
}

TEST_F(LoneCallsTest, AStopEndsThem) {
  NewLone("a");
  Run();
  NewLone("b");
  set->CloseAll();
  EXPECT_THAT(Log(), ::testing::Contains("b draining"));
  EXPECT_EQ(Open(), 0u);
}

}  // namespace
}  // namespace sluice::upstream
