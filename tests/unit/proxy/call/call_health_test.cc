// Calls and the health of endpoints: what they tell it, and how picks go by it.
#include <map>
#include <set>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"
#include "upstream/cluster_health.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;
using upstream::Cause;
using upstream::HealthState;

const std::vector<std::string> kThree = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};

class CallHealthTest : public test::ProxyFixture {
 public:
  CallHealthTest() {
    cluster.policy = upstream::Policy::kRingHash;
    routes[0].hash_by.kind = HashBy::Kind::kMetadata;
    routes[0].hash_by.metadata = "x-key";
  }
  upstream::Endpoint& At(size_t i) { return *state().endpoints[i].endpoint; }
  HealthState StateOf(size_t i) { return At(i).record().state(); }
  upstream::OutcomeCell& Cell(size_t i) { return At(i).MakeCell(0); }

  void Ask(FramePeer& client, uint32_t id, const std::string& key, const h2::Fields& more = {}) {
    h2::Fields request = h2::With(h2::GrpcRequest(), {{"x-key", key}});
    client.Send(Headers(id, Block(h2::With(request, more)), kLast));
    Run();
  }
  static h2::Fields Status(const char* code, const h2::Fields& more = {}) {
    return h2::With({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", code}}, more);
  }
  // Which endpoint answers a call with that key; it is answered with `status`.
  size_t Serve(FramePeer& client, const std::string& key, const char* status = "0", const h2::Fields& more = {}) {
    const auto before = Streams();
    const uint32_t id = next_id_;
    next_id_ += 2;
    Ask(client, id, key);
    for (const auto& [peer, streams] : Streams()) {
      const auto known = before.find(peer);
      if (known != before.end() && known->second.second == streams.second) continue;
      peer->Send(Headers(peer->streams.rbegin()->first, Block(Status(status, more)), kLast));
      Run();
      return streams.first;
    }
    ADD_FAILURE() << "no endpoint has the call";
    return kThree.size();
  }
  // Each connection of a host, with the host's place and how many streams it has seen.
  std::map<FramePeer*, std::pair<size_t, size_t>> Streams() {
    std::map<FramePeer*, std::pair<size_t, size_t>> out;
    for (size_t i = 0; i < kThree.size(); ++i) {
      for (const auto& peer : net.host(kThree[i]).connections) out[peer.get()] = {i, peer->streams.size()};
    }
    return out;
  }
  // A period of the judge's.
  void Judge() {
    Advance(upstream::Judge::kPeriod);
    auto work = state().health->Pass(*state().options, state().endpoints, *state().spill, time.clock.Now());
    for (auto& probe : work.probes) {
      worker->context.pools.Probe(probe.endpoint, state().options, nullptr, std::move(probe.result));
    }
    for (const auto& endpoint : work.returned) worker->context.pools.EndBackoff(*endpoint);
    Run();
  }
  // The n-th key of the endpoint's.
  std::string KeyOf(size_t endpoint, int n = 0) {
    for (int i = 0;; ++i) {
      const std::string key = "k" + std::to_string(i);
      auto yes = [](uint32_t) { return true; };
      auto none = [](uint32_t) { return 0u; };
      upstream::PickContext pick{base::Hash64(key, 0), 0, 0, yes, none};
      if (state().balancer->Pick(pick) == endpoint && n-- == 0) return key;
    }
  }

 private:
  uint32_t next_id_ = 1;
};

TEST_F(CallHealthTest, AFailingEndpointIsPassedOverAndItsKeysComeBackToIt) {
  Start(kThree);
  FramePeer& client = Client();
  const std::string mine = KeyOf(0), other = KeyOf(1), third = KeyOf(2);
  Judge();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Serve(client, KeyOf(0, i), "14"), 0u);
    EXPECT_EQ(Serve(client, other), 1u);
  }
  Judge();
  EXPECT_EQ(StateOf(0), HealthState::kSuspect);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Serve(client, other), 1u);
  Judge();
  EXPECT_EQ(StateOf(0), HealthState::kEjected);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(Serve(client, mine), 0u);
    EXPECT_EQ(Serve(client, other), 1u) << "other keys stay where they are";
    EXPECT_EQ(Serve(client, third), 2u);
  }
  const size_t connections = net.host(kThree[0]).connections.size();
  for (int i = 0; i < 40 && StateOf(0) != HealthState::kWarming; ++i) Judge();
  EXPECT_EQ(StateOf(0), HealthState::kWarming);
  EXPECT_EQ(net.host(kThree[0]).connections.size(), connections + 1) << "one probe";
  for (int i = 0; i < 400 && StateOf(0) != HealthState::kUp; ++i) {
    Serve(client, mine);
    Judge();
  }
  EXPECT_EQ(StateOf(0), HealthState::kUp);
  EXPECT_EQ(Serve(client, mine), 0u);
}

// What one caller's key brings with it, whichever status that is, costs no endpoint its good name.
TEST_F(CallHealthTest, OneKeysFailuresEjectNothing) {
  Start(kThree);
  FramePeer& client = Client();
  const std::string other = KeyOf(1), third = KeyOf(2);
  int nth = 0;
  for (const char* status : {"2", "13", "1", "14"}) {
    SCOPED_TRACE(status);
    const std::string mine = KeyOf(0, nth++);
    std::set<size_t> at;
    for (int i = 0; i < 60; ++i) {
      for (int n = 0; n < 5; ++n) at.insert(Serve(client, mine, status));
      if (i % 3 == 0) Serve(client, other);
      if (i % 4 == 0) Serve(client, third);
      Judge();
      for (size_t place = 0; place < 3; ++place) ASSERT_EQ(StateOf(place), HealthState::kUp) << place << ", " << i;
    }
    EXPECT_EQ(at.size(), 2u) << "it is tried elsewhere, and comes back when it fails there too";
    EXPECT_EQ(Serve(client, mine, status), 0u);
  }
}

// An endpoint that fails one key alone is left by that key alone.
TEST_F(CallHealthTest, AKeyThatOneEndpointFailsGoesToTheNext) {
  Start(kThree);
  FramePeer& client = Client();
  const std::string mine = KeyOf(0), beside = KeyOf(0, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Serve(client, mine, "14"), 0u);
  for (int i = 0; i < 5; ++i) EXPECT_NE(Serve(client, mine), 0u);
  EXPECT_EQ(Serve(client, beside), 0u);
  Judge();
  EXPECT_EQ(StateOf(0), HealthState::kUp);
  Advance(upstream::FailingKeys::kMoved);
  EXPECT_EQ(Serve(client, mine), 0u);
}

TEST_F(CallHealthTest, WhereAllAreEjectedCallsGoOn) {
  Start(kThree);
  FramePeer& client = Client();
  for (size_t i = 0; i < 3; ++i) At(i).SetAdmission({true, 0});
  EXPECT_EQ(Serve(client, KeyOf(1)), 1u);
}

// Of three, one is ejected for its calls. Those that may be repeated find out when it is well, and none of them fails.
TEST_F(CallHealthTest, ATrialIsMadeOfCallsThatMayBeRepeatedAndNoneFailsForIt) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start(kThree);
  FramePeer& client = Client();
  const std::string mine = KeyOf(0);
  At(0).SetAdmission({.out = true, .repeatable = true});
  // The status is not one of retry.on, and still not the client's.
  Ask(client, 1001, mine);
  ASSERT_TRUE(Connected(kThree[0]));
  Up(kThree[0]).Send(Headers(Up(kThree[0]).streams.rbegin()->first, Block(Status("13")), kLast));
  Run();
  EXPECT_FALSE(client.streams[1001].end);
  EXPECT_EQ(Cell(0).soft.load(), 1u);
  const size_t trials = Up(kThree[0]).streams.size();
  Ask(client, 1003, mine);
  EXPECT_EQ(Up(kThree[0]).streams.size(), trials) << "no more than the one that is asked for";
}

// It hangs: after a moment the call has another attempt beside it, though its route hedges nothing.
TEST_F(CallHealthTest, ATrialThatHangsHasAHedge) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start(kThree);
  FramePeer& client = Client();
  const std::string mine = KeyOf(0);
  Serve(client, KeyOf(1));
  Serve(client, KeyOf(2));
  At(0).SetAdmission({.out = true, .repeatable = true});
  Ask(client, 1001, mine);
  const auto before = Streams();
  Advance(milliseconds(49));
  EXPECT_EQ(Streams(), before);
  Advance(milliseconds(2));
  EXPECT_NE(Streams(), before);
}

TEST_F(CallHealthTest, OtherCallsAreNoTrial) {
  Start(kThree);
  FramePeer& client = Client();
  At(0).SetAdmission({.out = true, .repeatable = true});
  EXPECT_NE(Serve(client, KeyOf(0)), 0u);
  // Nor do they go where only those that may be repeated are to go.
  At(0).SetAdmission({.repeatable = true});
  EXPECT_NE(Serve(client, KeyOf(0)), 0u);
}

TEST_F(CallHealthTest, OneThatIsSparedTakesCallsThatMayBeRepeated) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start(kThree);
  FramePeer& client = Client();
  At(0).SetAdmission({.repeatable = true});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Serve(client, KeyOf(0)), 0u);
}

// Its connection was lost: its keys are served by others while a new one is made, and come back then.
TEST_F(CallHealthTest, CallsDoNotWaitForAConnectionThatWasLost) {
  Start(kThree);
  FramePeer& client = Client();
  const std::string mine = KeyOf(0);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(Serve(client, KeyOf(i)), i);
  net.host(kThree[0]).mode = test::FakeHost::Mode::kHang;
  Up(kThree[0]).wire().Close();
  Run();
  EXPECT_NE(Serve(client, mine), 0u);
  EXPECT_NE(Serve(client, mine), 0u);
  EXPECT_EQ(net.host(kThree[0]).dials, 2);
  net.host(kThree[0]).mode = test::FakeHost::Mode::kAccept;
  net.Answer(kThree[0]);
  Run();
  EXPECT_EQ(Serve(client, mine), 0u);
}

// CANCELLED, and neither the client nor the deadline is behind it.
TEST_F(CallHealthTest, ACancellationOfTheBackendsOwnCountsInTheErrorRate) {
  Start({kThree[0]});
  FramePeer& client = Client();
  Serve(client, "a", "1");
  EXPECT_EQ(Cell(0).soft.load(), 1u);
  EXPECT_EQ(Cell(0).cause.load(), Cause::kCancelled);
  // As the backend's timer runs out, a moment before ours.
  Ask(client, 101, "b", {{"grpc-timeout", "100m"}});
  Advance(milliseconds(99));
  Up().Send(Headers(Up().streams.rbegin()->first, Block(Status("1")), kLast));
  Run();
  EXPECT_EQ(Cell(0).soft.load(), 1u);
  EXPECT_EQ(Cell(0).cause.load(), Cause::kDeadline);
}

// The only endpoint is never ejected. Its port answers again: whatever the back-off was, calls go within a second.
TEST_F(CallHealthTest, ARefusedPortThatAnswersAgainTakesCallsWithinASecond) {
  cluster.backoff_base = cluster.backoff_max = seconds(60);
  Start({kThree[0]});
  net.host(kThree[0]).mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  Ask(client, 101, "a");
  EXPECT_EQ(At(0).health(), upstream::EndpointHealth::kBackoff);
  auto shown = [&] { return state().health->Describe(At(0), time.clock.Now()); };
  Judge();
  EXPECT_NE(shown().last_error, "") << "of the call's own connect: no probe has ended";
  EXPECT_TRUE(shown().last_error_ago.has_value());
  ASSERT_TRUE(shown().probe_in.has_value()) << "the back-off shows, though it is not ejected";
  EXPECT_LE(*shown().probe_in, seconds(1));
  for (int i = 0; i < 50; ++i) Judge();
  EXPECT_NE(shown().last_error, "");
  EXPECT_FALSE(At(0).record().out());
  EXPECT_LE(net.host(kThree[0]).dials, 13) << "the call's own, and one in 400 ms, four looks, at most";
  net.host(kThree[0]).mode = test::FakeHost::Mode::kAccept;
  for (int i = 0; i < 9; ++i) Judge();
  Ask(client, 103, "a");
  ASSERT_TRUE(Connected(kThree[0]));
  EXPECT_FALSE(Up(kThree[0]).streams.empty());
}

// The only endpoint, so that each attempt is its.
TEST_F(CallHealthTest, WhatIsTheEndpointsOwnMaking) {
  Start({kThree[0]});
  FramePeer& client = Client();
  auto counts = [&] {
    const upstream::OutcomeCell& cell = Cell(0);
    return std::vector<uint32_t>{cell.good, cell.bad, cell.soft, cell.answered};
  };
  using Counts = std::vector<uint32_t>;
  Serve(client, "a");
  EXPECT_EQ(counts(), (Counts{1, 0, 0, 1}));
  Serve(client, "a", "7");  // PERMISSION_DENIED is the application's
  EXPECT_EQ(counts(), (Counts{2, 0, 0, 2}));
  Serve(client, "b", "14");
  EXPECT_EQ(counts(), (Counts{2, 1, 0, 3}));
  Serve(client, "c", "14", {{"grpc-retry-pushback-ms", "100"}});
  EXPECT_EQ(counts(), (Counts{3, 1, 0, 4}));
  Serve(client, "d", "13");
  Serve(client, "e", "2");
  EXPECT_EQ(counts(), (Counts{3, 1, 2, 6}));
  // The client gives up.
  Ask(client, 101, "a");
  client.Send(h2::RstStream(101, 8));
  Run();
  EXPECT_EQ(counts(), (Counts{3, 1, 2, 6}));
  // The backend resets.
  Ask(client, 103, "f");
  Up().Send(h2::RstStream(Up().streams.rbegin()->first, 2));
  Run();
  EXPECT_EQ(counts(), (Counts{3, 2, 2, 6}));
  EXPECT_EQ(Cell(0).cause.load(), Cause::kReset);
  // A deadline that passes at the endpoint.
  Ask(client, 105, "g", {{"grpc-timeout", "50m"}});
  Advance(milliseconds(51));
  EXPECT_EQ(counts(), (Counts{3, 3, 2, 6}));
  EXPECT_EQ(Cell(0).cause.load(), Cause::kDeadline);
  // The same, and it had begun to answer: a stream that takes long.
  Ask(client, 107, "h", {{"grpc-timeout", "50m"}});
  Up().Send(Headers(Up().streams.rbegin()->first, Block(h2::GrpcResponse())));
  Run();
  Advance(milliseconds(51));
  EXPECT_EQ(counts(), (Counts{3, 3, 2, 7}));
  // A stream that is refused was not processed, and is no sickness.
  Ask(client, 109, "a", {{"grpc-timeout", "1S"}});
  Up().Send(h2::RstStream(Up().streams.rbegin()->first, 7));
  Run();
  EXPECT_EQ(Cell(0).bad.load(), 3u);
  Advance(seconds(2));
}

// An endpoint that waits for the rest of a request owes no answer, so its client's deadline is no evidence.
TEST_F(CallHealthTest, ADeadlineOfARequestThatHasNotEndedIsNoEvidence) {
  Start({kThree[0]});
  FramePeer& client = Client();
  Serve(client, "a");
  const auto begin = [&](uint32_t id) {
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(), {{"x-key", "a"}, {"grpc-timeout", "50m"}}))));
    client.Send(h2::Data(id, h2::Message("a part")));
    Run();
  };
  begin(101);
  Advance(milliseconds(51));
  EXPECT_EQ(client.streams[101].Value("grpc-status"), "4");
  EXPECT_EQ(Cell(0).bad.load(), 0u);
  begin(103);
  client.Send(h2::Data(103, "", h2::kEndStream));
  Run();
  Advance(milliseconds(51));
  EXPECT_EQ(client.streams[103].Value("grpc-status"), "4");
  EXPECT_EQ(Cell(0).bad.load(), 1u);
}

// Each attempt counts once, under the status that it ended with, whatever the call comes to.
TEST_F(CallHealthTest, AttemptsAreCountedByTheirStatus) {
  routes[0].timeout = seconds(60);
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kThree[0]});
  FramePeer& client = Client();
  using Counts = std::map<size_t, uint64_t>;
  auto counts = [&] {
    Counts out;
    const upstream::EndpointSeries::Sums sums = At(0).series().Read();
    for (size_t i = 0; i < sums.statuses.size(); ++i) {
      if (sums.statuses[i] > 0) out[i] = sums.statuses[i];
    }
    return out;
  };
  Serve(client, "a");
  EXPECT_EQ(counts(), (Counts{{0, 1}}));
  EXPECT_EQ(At(0).calls(), 1u);
  Serve(client, "a", "7");
  EXPECT_EQ(counts(), (Counts{{0, 1}, {7, 1}}));
  Ask(client, 101, "a");
  EXPECT_EQ(At(0).calls(), 3u) << "begun";
  EXPECT_EQ(counts(), (Counts{{0, 1}, {7, 1}})) << "not ended";
  client.Send(h2::RstStream(101, 8));
  Run();
  EXPECT_EQ(counts(), (Counts{{0, 1}, {1, 1}, {7, 1}}));
  Ask(client, 103, "a", {{"grpc-timeout", "50m"}});
  Advance(milliseconds(51));
  EXPECT_EQ(counts(), (Counts{{0, 1}, {1, 1}, {4, 1}, {7, 1}}));
  // A reset with INTERNAL_ERROR, which is tried again with success.
  Ask(client, 105, "a");
  Up().Send(h2::RstStream(Up().streams.rbegin()->first, 2));
  Run();
  Advance(seconds(2));
  Up().Send(Headers(Up().streams.rbegin()->first, Block(Status("0")), kLast));
  Run();
  EXPECT_EQ(counts(), (Counts{{0, 2}, {1, 1}, {4, 1}, {7, 1}, {13, 1}}));
  EXPECT_EQ(At(0).calls(), 6u);
}

}  // namespace
}  // namespace sluice::proxy
