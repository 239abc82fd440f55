// Clusters that share a route's calls by weight: the same key to the same one, no more keys moved than there must be,
// and all that belongs to a call stays with the cluster that was chosen.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "proxy/call/observer.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Headers;
using h2::Message;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

const std::string kUsers = "10.0.0.1:1", kUsersToo = "10.0.0.2:1", kCanary = "10.0.1.1:1";

class Clusters final : public CallObserver {
 public:
  void OnCallEnd(const CallRecord& record, uint32_t) override {
    if (!record.fetch) told.emplace_back(record.cluster);
  }
  std::vector<std::string> told;
};

class CallSplitTest : public test::ProxyFixture {
 public:
  CallSplitTest() {
    observers = {clusters};
    other.emplace();
    other->name = "other";
    other_addresses = {kCanary};
    routes[0].hash_by.kind = HashBy::Kind::kMetadata;
    routes[0].hash_by.metadata = "x-key";
    SetWeights(95, 5);
  }
  void SetWeights(uint32_t users, uint32_t canary) { routes[0].clusters = {{"c", users}, {"other", canary}}; }
  void Reload(uint32_t users, uint32_t canary) {
    SetWeights(users, canary);
    SetEndpoints({kUsers});
  }
  static h2::Fields Keyed(const std::string& key) { return h2::With(h2::GrpcRequest(), {{"x-key", key}}); }
  // Sends a request that is not answered yet; the host that has it, or none.
  std::string Ask(FramePeer& client, uint32_t id, const std::string& wire) {
    const std::map<std::string, size_t> before = Streams();
    client.Send(wire);
    Run();
    for (const auto& [host, streams] : Streams()) {
      if (streams != before.at(host)) last_ = {host, static_cast<uint32_t>(2 * streams - 1), id};
    }
    return Streams() == before ? "" : last_.host;
  }
  void Answer(const std::string& status = "0") {
    Up(last_.host).Send(Headers(last_.id, Block(h2::With(h2::GrpcResponse(), h2::GrpcTrailers(status))), kLast));
    Run();
  }
  // The host of each of so many keys.
  std::map<int, std::string> Map(FramePeer& client, int keys) {
    std::map<int, std::string> out;
    for (int key = 0; key < keys; ++key) {
      out[key] = Ask(client, next_, Headers(next_, Block(Keyed(std::to_string(key))), kLast));
      Answer();
      next_ += 2;
    }
    return out;
  }
  static std::set<int> Of(const std::map<int, std::string>& hosts, const std::string& host) {
    std::set<int> keys;
    for (const auto& [key, at] : hosts) {
      if (at == host) keys.insert(key);
    }
    return keys;
  }
  std::map<std::string, size_t> Streams() {
    std::map<std::string, size_t> out;
    for (const std::string& host : {kUsers, kUsersToo, kCanary}) {
      out[host] = 0;
      for (const auto& peer : net.host(host).connections) out[host] += peer->streams.size() - peer->streams.count(0);
    }
    return out;
  }
  uint64_t Counted(const std::string& cluster, const std::string& code = "0") {
    return registry.AddCounter("calls_total", "Calls.", {{"route", "r/" + cluster}, {"code", code}})->Value();
  }

  std::shared_ptr<Clusters> clusters = std::make_shared<Clusters>();
  uint32_t next_ = 1;
  struct {
    std::string host;
    uint32_t id = 0, client_id = 0;
  } last_;
};

TEST_F(CallSplitTest, AKeyHasOneClusterAndTheSharesAreTheWeights) {
  SetWeights(75, 25);
  Start({kUsers});
  FramePeer& client = Client();
  const auto hosts = Map(client, 400);
  EXPECT_EQ(Map(client, 400), hosts);
  EXPECT_NEAR(static_cast<double>(Of(hosts, kCanary).size()), 100, 35);
  EXPECT_EQ(Counted("other"), 2 * Of(hosts, kCanary).size());
  EXPECT_EQ(Counted("c"), 2 * Of(hosts, kUsers).size());
  for (int key = 0; key < 400; ++key)
    EXPECT_EQ(clusters->told[static_cast<size_t>(key)], hosts.at(key) == kCanary ? "other" : "c") << key;
}

TEST_F(CallSplitTest, AGrowingCanaryKeepsItsKeysAndNoOtherKeyMoves) {
  Start({kUsers});
  FramePeer& client = Client();
  std::set<int> before = Of(Map(client, 300), kCanary);
  EXPECT_FALSE(before.empty());
  for (const uint32_t canary : {10u, 30u, 60u, 100u}) {
    Reload(100 - canary, canary);
    const std::set<int> now = Of(Map(client, 300), kCanary);
    EXPECT_GT(now.size(), before.size());
    for (const int key : before) EXPECT_TRUE(now.contains(key)) << key << " left the canary at " << canary;
    before = now;
  }
  EXPECT_EQ(before.size(), 300u);
  Reload(100, 0);
  EXPECT_TRUE(Of(Map(client, 300), kCanary).empty());
}

// Else the canary's keys would be those of one endpoint.
TEST_F(CallSplitTest, TheChoiceHasNothingToDoWithTheRing) {
  SetWeights(50, 50);
  cluster.policy = upstream::Policy::kRingHash;
  Start({kUsers, kUsersToo});
  FramePeer& client = Client();
  const auto hosts = Map(client, 400);
  const size_t one = Of(hosts, kUsers).size(), two = Of(hosts, kUsersToo).size();
  EXPECT_NEAR(static_cast<double>(one + two), 200, 50);
  EXPECT_NEAR(static_cast<double>(one), static_cast<double>(two), 80);
}

TEST_F(CallSplitTest, WithoutAKeyChanceChooses) {
  routes[0].hash_by = {};
  SetWeights(1, 1);
  Start({kUsers});
  FramePeer& client = Client();
  EXPECT_NEAR(static_cast<double>(Of(Map(client, 200), kCanary).size()), 100, 40);
}

TEST_F(CallSplitTest, AKeyInTheMessageIsWaitedFor) {
  routes[0].hash_by = {};
  routes[0].hash_by.kind = HashBy::Kind::kField;
  routes[0].hash_by.fields = {{"", {1}}};
  SetWeights(1, 1);
  Start({kUsers});
  FramePeer& client = Client();
  std::set<std::string> met;
  for (const std::string key : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    const std::string message = Message("\x0a\x01" + key);
    const std::string whole = Ask(client, next_, Headers(next_, Block(h2::GrpcRequest())) + Data(next_, message, 1));
    Answer();
    next_ += 2;
    EXPECT_EQ(Ask(client, next_, Headers(next_, Block(h2::GrpcRequest()))), "");
    EXPECT_EQ(Ask(client, next_, Data(next_, message, 1)), whole) << key;
    Answer();
    next_ += 2;
    met.insert(whole);
  }
  EXPECT_EQ(met.size(), 2u);
}

TEST_F(CallSplitTest, AnotherAttemptStaysWithTheCluster) {
  routes[0].hash_by = {};
  SetWeights(1, 1);
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kUsers});
  FramePeer& client = Client();
  for (int i = 0; i < 20; ++i, next_ += 2) {
    const std::string first = Ask(client, next_, Headers(next_, Block(h2::GrpcRequest()), kLast));
    const std::map<std::string, size_t> before = Streams();
    Answer("14");
    Advance(milliseconds(100));
    const std::map<std::string, size_t> after = Streams();
    EXPECT_EQ(after.at(first), before.at(first) + 1);
    last_.id += 2;
    Answer();
    EXPECT_EQ(clusters->told.back(), first == kCanary ? "other" : "c");
  }
}

TEST_F(CallSplitTest, AWaitingCallGoesByTheNewWeights) {
  cluster.concurrency.max = 1;
  SetWeights(1, 0);
  Start({kUsers});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1, Headers(1, Block(Keyed("a")), kLast)), kUsers);
  EXPECT_EQ(Ask(client, 3, Headers(3, Block(Keyed("b")), kLast)), "");
  Reload(0, 1);
  const std::map<std::string, size_t> before = Streams();
  last_ = {kUsers, 1, 1};
  Answer();
  EXPECT_EQ(Streams().at(kCanary), before.at(kCanary) + 1);
}

TEST_F(CallSplitTest, LimitsAreThoseOfTheChosenCluster) {
  cluster.concurrency.max = 1;
  cluster.concurrency.queue_max = 0;
  SetWeights(0, 1);
  Start({kUsers});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1, Headers(1, Block(Keyed("a")), kLast)), kCanary);
  EXPECT_EQ(Ask(client, 3, Headers(3, Block(Keyed("b")), kLast)), kCanary);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
}

TEST_F(CallSplitTest, OneOfThemMayStepInForTheOthers) {
  SetWeights(0, 1);
  routes[0].failover = "other";
  other_addresses.clear();
  Start({kUsers});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1, Headers(1, Block(Keyed("a")), kLast)), "") << "it is its own failover";
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "no_endpoint");
  SetWeights(1, 0);
  other_addresses = {kCanary};
  SetEndpoints({});
  EXPECT_EQ(Ask(client, 3, Headers(3, Block(Keyed("a")), kLast)), kCanary);
}

class CallSplitCacheTest : public CallSplitTest {
 public:
  CallSplitCacheTest() {
    routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
    routes[0].cache.vary = {"x-key"};
  }
  std::string Request(uint32_t id, const std::string& text = "q") {
    return Headers(id, Block(Keyed("k"))) + Data(id, Message(text), h2::kEndStream);
  }
  void Reply(const std::string& text) {
    Up(last_.host)
        .Send(Headers(last_.id, Block(h2::GrpcResponse())) + Data(last_.id, Message(text)) +
              Headers(last_.id, Block(h2::GrpcTrailers()), kLast));
    Run();
  }
};

TEST_F(CallSplitCacheTest, WhatOneClusterAnsweredIsNotTheOthers) {
  SetWeights(1, 0);
  Start({kUsers});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1, Request(1)), kUsers);
  Reply("users");
  EXPECT_EQ(Ask(client, 3, Request(3)), "");
  EXPECT_EQ(client.streams[3].data, Message("users"));
  Reload(0, 1);
  EXPECT_EQ(Ask(client, 5, Request(5)), kCanary);
  Reply("canary");
  EXPECT_EQ(client.streams[5].data, Message("canary"));
  Reload(1, 0);
  EXPECT_EQ(Ask(client, 7, Request(7)), "");
  EXPECT_EQ(client.streams[7].data, Message("users"));
  EXPECT_EQ(Counted("c"), 3u);
  EXPECT_EQ(Counted("other"), 1u);
}

// Whatever chance chooses for a call, what it is answered is of the cluster that is in its key.
TEST_F(CallSplitCacheTest, AFetchGoesToTheClusterThatChanceChose) {
  routes[0].hash_by = {};
  SetWeights(1, 1);
  Start({kUsers});
  FramePeer& client = Client();
  for (uint32_t i = 0; i < 20; ++i, next_ += 2) {
    const std::string host = Ask(client, next_, Request(next_, "q" + std::to_string(i)));
    ASSERT_NE(host, "") << i;
    Reply(host);
    EXPECT_EQ(client.streams[next_].data, Message(host));
    EXPECT_EQ(clusters->told.back(), host == kCanary ? "other" : "c");
  }
}

}  // namespace
}  // namespace sluice::proxy
