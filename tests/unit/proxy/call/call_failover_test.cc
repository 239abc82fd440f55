// The cluster that steps in for a route's own: when it takes calls, whose limits hold, and when calls come home.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Headers;
using std::chrono::milliseconds;
using test::FakeHost;
using test::FramePeer;
using test::kLast;

const std::string kOwn = "10.0.0.1:1", kOwnToo = "10.0.0.2:1", kOther = "10.0.1.1:1";

class CallFailoverTest : public test::ProxyFixture {
 public:
  CallFailoverTest() {
    routes[0].failover = "other";
    other.emplace();
    other->name = "other";
    other_addresses = {kOther};
  }
  // Sends a call that is not answered yet; the host that has it, or none.
  std::string Ask(FramePeer& client, uint32_t id) {
    const std::map<std::string, size_t> before = Streams();
    client.Send(Headers(id, Block(h2::GrpcRequest()), kLast));
    Run();
    for (const auto& [host, streams] : Streams()) {
      if (streams != before.at(host)) return host;
    }
    return "";
  }
  std::map<std::string, size_t> Streams() {
    std::map<std::string, size_t> out;
    for (const std::string& host : {kOwn, kOwnToo, kOther}) {
      out[host] = 0;
      for (const auto& peer : net.host(host).connections) out[host] += peer->streams.size() - peer->streams.count(0);
    }
    return out;
  }
  void Refuse(const std::string& host) { net.host(host).mode = FakeHost::Mode::kRefuse; }
  uint64_t Failovers() { return registry.AddCounter("failovers_total", "Failovers.", {{"route", "r"}})->Value(); }
  std::string StatusOf(FramePeer& client, uint32_t id) { return client.streams[id].Value("grpc-status"); }
};

TEST_F(CallFailoverTest, WhileAnEndpointIsWellNoCallGoesToTheOther) {
  Start({kOwn, kOwnToo});
  FramePeer& client = Client();
  Refuse(kOwn);
  for (uint32_t id = 1; id < 20; id += 2) EXPECT_EQ(Ask(client, id), kOwnToo);
  EXPECT_EQ(Failovers(), 0u);
  EXPECT_FALSE(Connected(kOther));
}

TEST_F(CallFailoverTest, AnEmptyListGoesToTheOther) {
  Start({});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOther);
  Respond(Up(kOther), 1, "hello");
  Run();
  EXPECT_EQ(StatusOf(client, 1), "0");
  EXPECT_EQ(Failovers(), 1u);
}

TEST_F(CallFailoverTest, EjectedAndDrainingEndpointsSendCallsToTheOtherUntilTheyAreBack) {
  Start({kOwn});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOwn);
  upstream::Endpoint& own = *state().endpoints[0].endpoint;
  own.SetAdmission({true, 0});
  EXPECT_EQ(Ask(client, 3), kOther);
  own.SetAdmission({false, 0.05});
  EXPECT_EQ(Ask(client, 5), kOwn) << "one that warms takes calls where it is the only one";
  own.SetAdmission({false, 1});
  EXPECT_EQ(Ask(client, 7), kOwn);
  EXPECT_EQ(Failovers(), 1u);
}

// The attempts of the call itself find out; it does not fail.
TEST_F(CallFailoverTest, TheCallThatFindsAllPortsClosedGoesToTheOther) {
  Start({kOwn, kOwnToo});
  Refuse(kOwn);
  Refuse(kOwnToo);
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOther);
  EXPECT_EQ(Ask(client, 3), kOther);
  EXPECT_EQ(net.host(kOwn).dials, 1) << "the second call finds them in back-off";
  EXPECT_EQ(Failovers(), 2u);
}

// Three endpoints would be tried; attempts_max is two, of which none was sent.
TEST_F(CallFailoverTest, AttemptsThatFoundNoConnectionDoNotUseUpTheWayOut) {
  routes[0].retry.attempts_max = 2;
  Start({kOwn, kOwnToo, "10.0.0.3:1"});
  for (const char* host : {"10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1"}) Refuse(host);
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOther);
  EXPECT_EQ(StatusOf(client, 1), "<none>");
}

TEST_F(CallFailoverTest, WithBothDownTheCallFails) {
  Start({kOwn});
  Refuse(kOwn);
  Refuse(kOther);
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), "");
  EXPECT_EQ(StatusOf(client, 1), "14");
  EXPECT_EQ(Ask(client, 3), "");
  EXPECT_EQ(StatusOf(client, 3), "14");
}

TEST_F(CallFailoverTest, CallsComeHomeWhenTheBackOffIsOver) {
  Start({kOwn});
  Refuse(kOwn);
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOther);
  net.host(kOwn).mode = FakeHost::Mode::kAccept;
  EXPECT_EQ(Ask(client, 3), kOther) << "in back-off";
  Advance(milliseconds(200));
  EXPECT_EQ(Ask(client, 5), kOther) << "has a connection begun, and does not wait for it";
  EXPECT_EQ(Ask(client, 7), kOwn);
  EXPECT_EQ(Failovers(), 3u);
}

TEST_F(CallFailoverTest, NoCallWaitsForAConnectionInPlaceOfALostOne) {
  Start({kOwn});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kOwn);
  net.host(kOwn).mode = FakeHost::Mode::kHang;
  Up(kOwn).wire().Close();
  Run();
  EXPECT_EQ(Ask(client, 3), kOther);
  EXPECT_EQ(Ask(client, 5), kOther);
  EXPECT_EQ(net.host(kOwn).dials, 2) << "one at a time";
  net.host(kOwn).mode = FakeHost::Mode::kAccept;
  net.Answer(kOwn);
  Run();
  EXPECT_EQ(Ask(client, 7), kOwn);
}

// Where neither has a connection, the call waits at home.
TEST_F(CallFailoverTest, WhereTheOtherHasNoneEitherTheCallWaitsAtHome) {
  Start({kOwn});
  FramePeer& client = Client();
  ASSERT_EQ(Ask(client, 1), kOwn);
  Refuse(kOther);
  net.host(kOwn).mode = FakeHost::Mode::kHang;
  Up(kOwn).wire().Close();
  Run();
  EXPECT_EQ(Ask(client, 3), "");
  EXPECT_EQ(Ask(client, 5), "");
  net.host(kOwn).mode = FakeHost::Mode::kAccept;
  net.Answer(kOwn);
  Run();
  EXPECT_TRUE(Up(kOwn).streams.contains(1));
  EXPECT_TRUE(Up(kOwn).streams.contains(3));
}

// The limits that hold are those of the cluster that takes the call.
TEST_F(CallFailoverTest, TheOthersOwnLimitsHoldForItsCalls) {
  cluster.concurrency.max = 1;
  other->concurrency.max = 2;
  other->concurrency.queue_max = 0;
  Start({});
  FramePeer& client = Client();
  EXPECT_EQ(Ask(client, 1), kOther);
  EXPECT_EQ(Ask(client, 3), kOther) << "the limit of the route's own cluster is not asked";
  EXPECT_EQ(Ask(client, 5), "");
  EXPECT_EQ(StatusOf(client, 5), "8");
  EXPECT_EQ(other_state().limits->concurrency->in_use(), 2u);
  EXPECT_EQ(state().limits->concurrency->in_use(), 0u);
}

// It was to go to the other one when it came; a reload takes the failover away while it waits for its message.
TEST_F(CallFailoverTest, ACallWhoseRouteLosesItsFailoverGoesByItsOwnClustersLimits) {
  cluster.concurrency.max = 1;
  routes[0].hash_by.kind = HashBy::Kind::kField;
  routes[0].hash_by.fields = {{"", {1}}};
  Start({});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())));
  Run();
  EXPECT_EQ(Failovers(), 1u);
  routes[0].failover.clear();
  SetEndpoints({kOwn});
  client.Send(h2::Data(1, h2::Message("\x0a\x01k"), kLast));
  Run();
  ASSERT_TRUE(Connected(kOwn));
  EXPECT_TRUE(Up(kOwn).streams.contains(1));
  EXPECT_EQ(state().limits->concurrency->in_use(), 1u);
}

// A call that goes there after an attempt has passed the limits of its own cluster; the endpoint's hold all the same.
TEST_F(CallFailoverTest, TheLimitOfTheOthersEndpointsHoldsForCallsThatComeLate) {
  other->endpoint_concurrency.max = 1;
  other->endpoint_concurrency.queue_max = 0;
  Start({kOwn});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  client.Send(Headers(3, Block(h2::GrpcRequest()), kLast));
  Refuse(kOwn);
  Run();
  const limits::ConcurrencyLimiter& limit = *other_state().endpoints[0].endpoint->concurrency();
  EXPECT_EQ(limit.in_use(), 1u);
  const std::vector<std::string> statuses = {StatusOf(client, 1), StatusOf(client, 3)};
  EXPECT_EQ(std::count(statuses.begin(), statuses.end(), "8"), 1) << "one of them is refused";
  Respond(Up(kOther), Up(kOther).streams.rbegin()->first, "hello");
  Run();
  EXPECT_EQ(limit.in_use(), 0u);
}

}  // namespace
}  // namespace sluice::proxy
