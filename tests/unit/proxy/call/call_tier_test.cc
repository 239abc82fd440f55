// Which priority's endpoints a call and its further attempts go to.
#include <map>
#include <string>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using test::FakeHost;
using test::FramePeer;
using test::kLast;

const std::string kFirst = "10.0.0.1:1", kFirstToo = "10.0.0.2:1", kLower = "10.0.1.1:1";

class CallTierTest : public test::ProxyFixture {
 public:
  CallTierTest() { priorities[kLower] = 1; }
  // Sends a call that is not answered yet; the host that has it, or none.
  std::string Ask(FramePeer& client, uint32_t id) {
    const std::map<std::string, size_t> before = Streams();
    client.Send(Headers(id, Block(h2::GrpcRequest()), kLast));
    Run();
    return Newer(before);
  }
  std::map<std::string, size_t> Streams() {
    std::map<std::string, size_t> out;
    for (const std::string& host : {kFirst, kFirstToo, kLower}) {
      out[host] = 0;
      for (const auto& peer : net.host(host).connections) out[host] += peer->streams.size() - peer->streams.count(0);
    }
    return out;
  }
  std::string Newer(const std::map<std::string, size_t>& before) {
    for (const auto& [host, streams] : Streams()) {
      if (streams != before.at(host)) return host;
    }
    return "";
  }
  // The newest stream of a host.
  uint32_t StreamOf(const std::string& host) { return Up(host).streams.rbegin()->first; }
};

class CallTierPolicyTest : public CallTierTest, public testing::WithParamInterface<upstream::Policy> {};
INSTANTIATE_TEST_SUITE_P(Policies, CallTierPolicyTest,
                         testing::Values(upstream::Policy::kRingHash, upstream::Policy::kRoundRobin,
                                         upstream::Policy::kLeastRequest));

TEST_P(CallTierPolicyTest, InGoodHealthNoCallGoesToTheLowerOne) {
  cluster.policy = GetParam();
  Start({kFirst, kLower, kFirstToo});
  FramePeer& client = Client();
  std::map<std::string, int> calls;
  for (uint32_t id = 1; id < 60; id += 2) ++calls[Ask(client, id)];
  EXPECT_EQ(calls[kLower], 0);
  EXPECT_GT(calls[kFirst], 0);
  EXPECT_GT(calls[kFirstToo], 0);
  EXPECT_FALSE(Connected(kLower));
}

TEST_F(CallTierTest, RoundRobinIsEvenAmongTheFirst) {
  Start({kFirst, kLower, kFirstToo});
  FramePeer& client = Client();
  std::map<std::string, int> calls;
  for (uint32_t id = 1; id < 80; id += 2) ++calls[Ask(client, id)];
  EXPECT_EQ(calls[kFirst], 20);
  EXPECT_EQ(calls[kFirstToo], 20);
}

// Before the judge has seen it.
TEST_F(CallTierTest, WhereAllPortsOfTheFirstAreClosedTheCallGoesOn) {
  Start({kFirst, kLower, kFirstToo});
  net.host(kFirst).mode = net.host(kFirstToo).mode = FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kLower);
  EXPECT_EQ(Ask(client, 3), kLower);
}

TEST_F(CallTierTest, ACallThatFailedIsTriedAtAnUntriedEndpointOfTheLowerOne) {
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({kFirst, kLower});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kFirst);
  const auto before = Streams();
  Up(kFirst).Send(Headers(StreamOf(kFirst),
                          Block({{":status", "200"}, {"content-type", "application/grpc"}, {"grpc-status", "14"}}),
                          kLast));
  Run();
  EXPECT_EQ(Newer(before), kLower);
}

// It was not processed, and the endpoint is well: another connection or another moment will do.
TEST_F(CallTierTest, ACallThatWasRefusedStaysWithThePriority) {
  Start({kFirst, kLower});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kFirst);
  const auto before = Streams();
  Up(kFirst).Send(h2::RstStream(StreamOf(kFirst), 7));
  Run();
  EXPECT_EQ(Newer(before), kFirst);
  EXPECT_FALSE(Connected(kLower));
}

TEST_F(CallTierTest, AFullEndpointIsNoReasonToGoElsewhere) {
  cluster.endpoint_concurrency.max = 1;
  Start({kFirst, kLower});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kFirst);
  EXPECT_EQ(Ask(client, 3), "") << "it waits";
  const auto before = Streams();
  Respond(Up(kFirst), StreamOf(kFirst), "hello");
  Run();
  EXPECT_EQ(Newer(before), kFirst);
  EXPECT_FALSE(Connected(kLower));
}

TEST_F(CallTierTest, NoCallWaitsForALostConnectionWhileTheLowerOneTakesIt) {
  Start({kFirst, kLower});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kFirst);
  net.host(kFirst).mode = FakeHost::Mode::kHang;
  Up(kFirst).wire().Close();
  Run();
  EXPECT_EQ(Ask(client, 3), kLower);
  EXPECT_EQ(net.host(kFirst).dials, 2) << "it has been begun";
  net.host(kFirst).mode = FakeHost::Mode::kAccept;
  net.Answer(kFirst);
  Run();
  EXPECT_EQ(Ask(client, 5), kFirst);
}

TEST_F(CallTierTest, WhereAllAreEjectedTheCallGoesSomewhere) {
  Start({kFirst, kLower});
  for (const auto& entry : state().endpoints) entry.endpoint->SetAdmission({true, 0});
  FramePeer& client = Client();
  EXPECT_NE(Ask(client, 1), "");
}

}  // namespace
}  // namespace sluice::proxy
