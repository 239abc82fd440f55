// What is evidence against an endpoint, and what a call or a bound of the proxy's brings with it.
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
using upstream::Cause;

const std::string kOne = "10.0.0.1:1", kTwo = "10.0.0.2:1";

class CallEvidenceTest : public test::ProxyFixture {
 public:
  upstream::OutcomeCell& Cell(size_t i = 0) { return state().endpoints[i].endpoint->MakeCell(0); }
  void Ask(FramePeer& client, uint32_t id, const h2::Fields& more = {}) {
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(), more)), kLast));
    Run();
  }
};

TEST_F(CallEvidenceTest, AnEndByAgeGraceIsNone) {
  cluster.life.age_max = seconds(10);
  cluster.life.age_grace = seconds(1);
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(seconds(12));
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_ended");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("age_grace"), std::string::npos);
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "maybe");
  EXPECT_EQ(Cell().bad, 0u);
}

TEST_F(CallEvidenceTest, AnEndBehindAGoawayInGoodOrderIsNone) {
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 0));
  Run();
  EXPECT_TRUE(client.streams[1].headers.empty()) << "it may still be answered";
  Up().wire().Close();
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_ended");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("GOAWAY"), std::string::npos);
  EXPECT_EQ(Cell().bad, 0u);
}

TEST_F(CallEvidenceTest, AnEndBehindAGoawayWithAnErrorIsEvidence) {
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 2, "out of memory"));
  Run();
  Up().wire().Close();
  Run();
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_lost");
  EXPECT_EQ(Cell().bad, 1u);
}

// Its server has said that it ends, and then hangs: that a PING is not answered is another thing.
TEST_F(CallEvidenceTest, APeerThatIsDeadBehindItsGoawayIsEvidence) {
  cluster.keepalive.interval = seconds(1);
  cluster.keepalive.timeout = seconds(1);
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Up().Send(h2::Goaway(1, 0));
  Run();
  Up().acknowledge = false;
  Advance(seconds(2));
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "connection_lost");
  EXPECT_EQ(Cell().bad, 1u);
}

TEST_F(CallEvidenceTest, AServerThatAllowsNoStreamsIsLeftForAnother) {
  routes[0].retry.attempts_max = 2;
  net.host(kOne).settings = {{3, 0}};
  net.host(kTwo).settings = {{3, 0}};
  Start({kOne, kTwo});
  FramePeer& client = Client();
  Ask(client, 1);
  const bool first = Connected(kOne);
  net.host(first ? kTwo : kOne).settings = {{3, 100}};
  Advance(seconds(2));
  EXPECT_EQ(Holders({first ? kTwo : kOne}).size(), 1u);
  EXPECT_EQ(Cell(first ? 0 : 1).bad, 1u);
  EXPECT_EQ(Cell(first ? 0 : 1).cause.load(), Cause::kNoStream);
}

TEST_F(CallEvidenceTest, WhereNoOtherIsLeftTheCallFailsAndSaysWhy) {
  net.host(kOne).settings = {{3, 0}};
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1);
  Advance(seconds(2));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "pending_timeout");
  EXPECT_EQ(client.streams[1].Value("sluice-processed"), "no");
  EXPECT_NE(client.streams[1].Value("grpc-message").find("SETTINGS_MAX_CONCURRENT_STREAMS"), std::string::npos);
}

// Callers with short deadlines meet it, too.
TEST_F(CallEvidenceTest, ADeadlineThatPassesInTheWaitForAStreamThatIsNotAllowedIsEvidence) {
  net.host(kOne).settings = {{3, 0}};
  Start({kOne});
  FramePeer& client = Client();
  Ask(client, 1, {{"grpc-timeout", "50m"}});
  Advance(milliseconds(51));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(Cell().bad, 1u);
  EXPECT_EQ(Cell().cause.load(), Cause::kNoStream);
}

}  // namespace
}  // namespace sluice::proxy
