// Calls whose execution ends their connection, and calls beside them.
#include <algorithm>
#include <set>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;

const std::vector<std::string> kPoisoned = {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"};

class CallPoisonTest : public test::ProxyFixture {
 public:
  CallPoisonTest() {
    cluster.policy = upstream::Policy::kRingHash;
    routes[0].hash_by.kind = HashBy::Kind::kMetadata;
    routes[0].hash_by.metadata = "x-key";
    routes[0].retry.methods = RetryOptions::Methods::kAll;
  }
  void Ask(FramePeer& client, uint32_t id, const std::string& key) {
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(), {{"x-key", key}})), kLast));
    Run();
  }
  std::vector<FramePeer*> Peers() {
    std::vector<FramePeer*> out;
    for (const std::string& address : kPoisoned) {
      for (const auto& peer : net.host(address).connections) out.push_back(peer.get());
    }
    return out;
  }
  // The backend's part: a request with a key in `poison` ends its connection with all that is on it, others are
  // answered, until nothing moves. How often each key was begun is counted in `runs`.
  void Work(const std::set<std::string>& poison) {
    for (bool moved = true; moved;) {
      moved = false;
      for (FramePeer* peer : Peers()) {
        if (peer->end) continue;
        std::vector<uint32_t> fresh;
        bool dies = false;
        for (auto& [id, heard] : peer->streams) {
          if (heard.headers.empty() || heard.reset || !seen_.insert({peer, id}).second) continue;
          const std::string key = heard.Value("x-key");
          ++runs[key];
          dies |= poison.contains(key);
          if (poison.contains(key)) beside = std::max(beside, Calls(*peer));
          fresh.push_back(id);
        }
        moved |= !fresh.empty();
        if (dies) {
          peer->wire().Break(ECONNRESET);
          peer->end = true;
        } else {
          for (uint32_t id : fresh) Respond(*peer, id, "ok");
        }
      }
      Run();
    }
  }
  static size_t Calls(const FramePeer& peer) {
    return static_cast<size_t>(std::count_if(peer.streams.begin(), peer.streams.end(),
                                             [](const auto& stream) { return !stream.second.headers.empty(); }));
  }
  // A key whose first endpoint is that of `key`.
  std::string Beside(const std::string& key, int n) {
    auto place = [&](const std::string& of) {
      auto yes = [](uint32_t) { return true; };
      auto none = [](uint32_t) { return 0u; };
      upstream::PickContext pick{base::Hash64(of, 0), 0, 0, yes, none};
      return state().balancer->Pick(pick);
    };
    for (int i = 0;; ++i) {
      const std::string other = "h" + std::to_string(i);
      if (place(other) == place(key) && n-- == 0) return other;
    }
  }
  uint32_t Bad() {
    uint32_t bad = 0;
    for (const auto& entry : state().endpoints) bad += entry.endpoint->MakeCell(0).bad;
    return bad;
  }

  std::map<std::string, int> runs;
  size_t beside = 0;  // streams on a connection that a poison was on, itself too

 private:
  std::set<std::pair<FramePeer*, uint32_t>> seen_;
};

TEST_F(CallPoisonTest, ItRunsTwiceAndCostsNoOtherCallAnything) {
  cluster.retry_budget.ratio = 0;
  cluster.retry_budget.min_per_second = 0;
  Start(kPoisoned);
  FramePeer& client = Client();
  Ask(client, 1, "p");  // the oldest, which hears of the loss last
  for (int i = 0; i < 3; ++i) Ask(client, static_cast<uint32_t>(3 + 2 * i), Beside("p", i));
  Work({"p"});
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "poison_call");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
  for (uint32_t id : {3, 5, 7}) EXPECT_EQ(client.streams[id].Value("grpc-status"), "0") << id << ", outside the budget";
  EXPECT_EQ(runs["p"], 2);
  EXPECT_EQ(Bad(), 1u) << "the first connection that was lost, once";
}

TEST_F(CallPoisonTest, OthersOfItsMethodAndKeyAreAloneFromTheFirstAttemptOn) {
  Start(kPoisoned);
  FramePeer& client = Client();
  Ask(client, 1, "p");
  Work({"p"});
  beside = 0;
  for (int i = 0; i < 10; ++i) {
    const auto id = static_cast<uint32_t>(3 + 4 * i);
    Ask(client, id, "p");
    Ask(client, id + 2, Beside("p", 0));
    runs.clear();
    Work({"p"});
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "poison_call");
    EXPECT_EQ(client.streams[id + 2].Value("grpc-status"), "0");
    EXPECT_EQ(runs["p"], 1);
    EXPECT_EQ(runs[Beside("p", 0)], 1) << "it was never beside it";
    Advance(milliseconds(100));
  }
  EXPECT_EQ(beside, 1u);
  EXPECT_EQ(Bad(), 1u) << "what follows the key says nothing against endpoints";
}

TEST_F(CallPoisonTest, WhatIsAnsweredAloneIsNoPoison) {
  Start(kPoisoned);
  FramePeer& client = Client();
  Ask(client, 1, "p");
  Work({"p"});
  Ask(client, 3, "p");
  Work({});  // it is mended
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "0");
  const size_t connections = Peers().size();
  Ask(client, 5, "p");
  Ask(client, 7, Beside("p", 0));
  Work({});
  EXPECT_EQ(client.streams[5].Value("grpc-status"), "0");
  EXPECT_LE(Peers().size(), connections + 1) << "it shares a connection again";
}

// Its method may not be repeated: nor may those beside it, and these fail. After two losses it is alone.
TEST_F(CallPoisonTest, WhereNothingMayBeRepeatedItIsAloneAfterTwoLosses) {
  routes[0].retry.methods = RetryOptions::Methods::kNone;
  Start(kPoisoned);
  FramePeer& client = Client();
  uint32_t id = 1, failed = 0;
  for (int i = 0; i < 10; ++i, id += 4) {
    Ask(client, id, "p");
    Ask(client, id + 2, Beside("p", i));
    Work({"p"});
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "14");
    failed += client.streams[id + 2].Value("grpc-status") == "0" ? 0 : 1;
    Advance(milliseconds(100));
  }
  EXPECT_GE(failed, 1u);
  EXPECT_LE(failed, 2u);
  EXPECT_EQ(runs["p"], 10);
}

// There is not a connection for each of them: the youngest have one, and it has just begun.
TEST_F(CallPoisonTest, BesideManyOldCallsItCostsNoneOfThem) {
  Start(kPoisoned);
  FramePeer& client = Client();
  const auto many = static_cast<uint32_t>(upstream::LoneCalls::kLoneMax + 40);
  for (uint32_t i = 0; i < many; ++i) Ask(client, 1 + 2 * i, Beside("p", 0));
  Ask(client, 1 + 2 * many, "p");
  Work({"p"});
  for (uint32_t i = 0; i < many; ++i) EXPECT_EQ(client.streams[1 + 2 * i].Value("grpc-status"), "0") << i;
  EXPECT_EQ(client.streams[1 + 2 * many].Value("sluice-reason"), "poison_call");
  EXPECT_EQ(runs["p"], 2);
}

TEST_F(CallPoisonTest, InQuarantineItIsNeverBesideOthersEvenIfThereAreTooMany) {
  Start(kPoisoned);
  FramePeer& client = Client();
  Ask(client, 1, "p");
  Work({"p"});
  uint32_t id = 3;
  for (size_t i = 0; i < upstream::LoneCalls::kLoneMax + 5; ++i, id += 2) Ask(client, id, "p");
  uint32_t refused = 0;
  for (uint32_t one = 3; one < id; one += 2) {
    if (client.streams[one].headers.empty()) continue;
    ++refused;
    EXPECT_EQ(client.streams[one].Value("sluice-reason"), "poison_call");
    EXPECT_EQ(client.streams[one].Value("sluice-processed"), "no");
  }
  EXPECT_GE(refused, 1u);
  for (const FramePeer* peer : Peers()) EXPECT_LE(Calls(*peer), 1u);
  Work({"p"});
}

}  // namespace
}  // namespace sluice::proxy
