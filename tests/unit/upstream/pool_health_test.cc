// Watches and Checks on a pool's connections, in frames: what is asked, what each answer comes to, and that calls and
// the ends of connections go before them.
#include "http2/error_code.h"
#include "pool_fixture.h"
#include "upstream/health/health_report.h"

namespace sluice::upstream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using Kind = HealthEnd::Kind;

const std::string kServing = h2::Message("\x08\x01"), kNotServing = h2::Message("\x08\x02"),
                  kServiceUnknown = h2::Message("\x08\x03");

class PoolHealthTest : public EndpointPoolTest {
 public:
  std::shared_ptr<HealthReport> Ask(bool watch = true) {
    Pool();
    auto report = std::make_shared<HealthReport>();
    set->AskHealth(endpoint, endpoint->options(), feedback, report, watch);
    Run();
    return report;
  }
  void Send(const std::string& bytes) {
    host.last().Send(bytes);
    Run();
  }
  void Answer(uint32_t stream, const std::string& messages) {
    Send(h2::Headers(stream, h2::Block(h2::GrpcResponse())) + h2::Data(stream, messages));
  }
  static std::string Trailers(uint32_t stream, const h2::Fields& fields) {
    return h2::Headers(stream, h2::Block(fields), h2::kEndHeaders | h2::kEndStream);
  }
  static void ExpectEnd(const HealthReport& report, Kind kind, const std::string& detail, uint32_t status = 0) {
    ASSERT_TRUE(report.Read().ended) << detail;
    EXPECT_EQ(report.end().kind, kind) << detail;
    EXPECT_EQ(report.end().detail, detail);
    EXPECT_EQ(report.end().status, status);
  }
};

TEST_F(PoolHealthTest, AWatchIsOneStreamOnAConnectionForCalls) {
  options.health.service = "pkg.Service";
  const auto report = Ask();
  EXPECT_TRUE(report->Read().opened);
  ASSERT_EQ(host.connections.size(), 1u);
  const test::Heard& stream = host.last().streams[1];
  EXPECT_EQ(stream.headers, (std::vector<h2::Fields>{{{":method", "POST"},
                                                      {":scheme", "http"},
                                                      {":path", "/grpc.health.v1.Health/Watch"},
                                                      {":authority", "10.0.0.1:1"},
                                                      {"te", "trailers"},
                                                      {"content-type", "application/grpc"},
                                                      {"user-agent", "sluice-health"}}}));
  EXPECT_EQ(stream.data, h2::Message("\x0a\x0bpkg.Service"));
  EXPECT_TRUE(stream.end);
  NewCall("a");
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_EQ(host.connections.size(), 1u) << "the call is on the same one";
  EXPECT_EQ(endpoint->metrics().in_flight->Value(), 0) << "a Watch is no call";
  EXPECT_EQ(Pool().in_flight(), 0u);
}

TEST_F(PoolHealthTest, AWatchGoesOnAConnectionThatIsThere) {
  NewCall("a");
  Run();
  Ask();
  EXPECT_EQ(host.connections.size(), 1u);
  EXPECT_EQ(host.last().streams[3].Value(":path"), "/grpc.health.v1.Health/Watch");
}

TEST_F(PoolHealthTest, ACheckHasItsTimeout) {
  options.health.timeout = milliseconds(1500);
  const auto report = Ask(/*watch=*/false);
  EXPECT_EQ(host.last().streams[1].Value(":path"), "/grpc.health.v1.Health/Check");
  EXPECT_EQ(host.last().streams[1].Value("grpc-timeout"), "1500m");
  Answer(1, kServing);
  Send(Trailers(1, h2::GrpcTrailers()));
  EXPECT_EQ(report->Read().status, ServingStatus::kServing);
  ExpectEnd(*report, Kind::kStatus, "OK");
}

TEST_F(PoolHealthTest, EachAnswerIsReported) {
  const auto report = Ask();
  EXPECT_EQ(report->Read().answers, 0u);
  Answer(1, kServing);
  EXPECT_EQ(report->Read().status, ServingStatus::kServing);
  Send(h2::Data(1, kNotServing));
  EXPECT_EQ(report->Read().status, ServingStatus::kNotServing);
  Send(h2::Data(1, kServing + kServiceUnknown));
  EXPECT_EQ(report->Read().status, ServingStatus::kServiceUnknown);
  EXPECT_FALSE(report->Read().ended);
  // 100,000 answers are more than the stream's window: it is credited.
  for (int i = 0; i < 100; ++i) {
    std::string many;
    for (int j = 0; j < 1000; ++j) many += h2::Data(1, kServing);
    Send(many);
  }
  Send(h2::Data(1, kNotServing));
  EXPECT_EQ(report->Read().status, ServingStatus::kNotServing);
  EXPECT_FALSE(report->Read().ended);
}

TEST_F(PoolHealthTest, AnAnswerMayBeSplitOverDataFramesAtEveryByte) {
  const std::string wire = kServing + kNotServing;
  const auto report = Ask();
  Send(h2::Headers(1, h2::Block(h2::GrpcResponse())));
  uint64_t answers = 0;
  for (size_t at = 0; at <= wire.size(); ++at) {
    Send(h2::Data(1, wire.substr(0, at)));
    EXPECT_EQ(report->Read().answers, answers + (at >= kServing.size() ? 1 : 0)) << at;
    if (at >= kServing.size() && at < wire.size()) {
      EXPECT_EQ(report->Read().status, ServingStatus::kServing);
    }
    Send(h2::PaddedData(1, wire.substr(at), 3));
    EXPECT_EQ(report->Read().status, ServingStatus::kNotServing) << at;
    // Both together may be read as one answer, the last.
    EXPECT_GT(report->Read().answers, answers) << at;
    answers = report->Read().answers;
  }
  for (const char byte : wire) Send(h2::Data(1, std::string(1, byte)));
  EXPECT_EQ(report->Read().answers, answers + 2);
  EXPECT_FALSE(report->Read().ended);
}

TEST_F(PoolHealthTest, EachEndOfAStreamHasItsKind) {
  const std::string headers = h2::Headers(1, h2::Block(h2::GrpcResponse()));
  struct Case {
    std::string bytes;
    Kind kind;
    std::string detail;
    uint32_t status = 0;
  };
  const Case cases[] = {
      {Trailers(1, h2::With(h2::GrpcResponse(), {{"grpc-status", "12"}})), Kind::kStatus, "UNIMPLEMENTED", 12},
      {headers + Trailers(1, {{"grpc-status", "14"}, {"grpc-message", "going\x1b down"}}), Kind::kStatus,
       "UNAVAILABLE: going? down", 14},
      {headers + h2::Data(1, kServing) + Trailers(1, h2::GrpcTrailers()), Kind::kStatus, "OK"},
      {headers + Trailers(1, {{"grpc-status", "99"}}), Kind::kStatus, "UNKNOWN", 2},
      {headers + Trailers(1, {{"grpc-status", "x"}}), Kind::kStatus, "UNKNOWN", 2},
      {headers + Trailers(1, {{"x", "y"}}), Kind::kBroken, "it ended without a gRPC status"},
      {headers + h2::Data(1, kServing, h2::kEndStream), Kind::kBroken, "it ended without a gRPC status"},
      {headers + h2::Data(1, kServing.substr(0, 3)) + Trailers(1, h2::GrpcTrailers()), Kind::kBroken,
       "it ended within a message"},
      {headers + h2::Data(1, std::string(5, '\xff')), Kind::kBroken, "a compressed message, though none was offered"},
      {Trailers(1, {{":status", "404"}}), Kind::kBroken, "no gRPC, and not HTTP's 200"},
      {h2::Headers(1, h2::Block({{":status", "503"}})), Kind::kBroken, "HTTP status 503"},
      {h2::RstStream(1, 2), Kind::kBroken, "reset: INTERNAL_ERROR"},
      {h2::RstStream(1, 7), Kind::kMoved, "the stream was refused"},
      {h2::Headers(1, h2::Block({{"x", "no status"}})), Kind::kBroken, "its answer broke HTTP/2: PROTOCOL_ERROR"},
  };
  for (const Case& each : cases) {
    const auto report = Ask();
    std::string bytes = each.bytes;
    const uint32_t id = host.last().streams.rbegin()->first;
    for (size_t at = 0; at < bytes.size();) {  // to the stream's id
      const size_t size = static_cast<uint8_t>(bytes[at]) << 16 | static_cast<uint8_t>(bytes[at + 1]) << 8 |
                          static_cast<uint8_t>(bytes[at + 2]);
      bytes.replace(at + 5, 4, h2::Big(id, 4));
      at += 9 + size;
    }
    Send(bytes);
    ExpectEnd(*report, each.kind, each.detail, each.status);
    NewCall("a");
    EXPECT_EQ(Log(), (Strings{"a connection"})) << "the connection goes on: " << each.detail;
    callers.clear();
    Run();
  }
  EXPECT_EQ(host.connections.size(), 1u);
}

TEST_F(PoolHealthTest, A1xxBeforeTheAnswerIsSkipped) {
  const auto report = Ask();
  Send(h2::Headers(1, h2::Block({{":status", "103"}})));
  Answer(1, kServing);
  EXPECT_EQ(report->Read().status, ServingStatus::kServing);
}

TEST_F(PoolHealthTest, WithoutAConnectionTheReportSaysWhy) {
  host.mode = FakeHost::Mode::kRefuse;
  ExpectEnd(*Ask(), Kind::kRefused, "refused");
  ExpectEnd(*Ask(), Kind::kRefused, "refused");
  EXPECT_EQ(host.dials, 2) << "whatever the back-off";
  host.mode = FakeHost::Mode::kAccept;
  host.speaks = false;
  const auto report = Ask();
  EXPECT_FALSE(report->Read().ended);
  EXPECT_FALSE(report->Read().opened);
  Advance(options.connect_timeout + milliseconds(1));
  ExpectEnd(*report, Kind::kNoConnection, "endpoint e accepts connections and says nothing");
}

TEST_F(PoolHealthTest, AConnectionThatIsLostEndsIt) {
  const auto report = Ask();
  host.last().wire().Close();
  Run();
  ExpectEnd(*report, Kind::kLost, "the connection was lost");
}

// GOAWAY of the server, age, a removal, the end of the process, another Watch: we end it, and say so.
TEST_F(PoolHealthTest, AConnectionThatTakesNoNewStreamsIsLeftAndCloses) {
  const auto report = Ask();
  Answer(1, kServing);
  Send(h2::Goaway(1, 0));
  ExpectEnd(*report, Kind::kMoved, "its connection takes no new streams");
  EXPECT_EQ(host.last().streams[1].reset, 8u) << "CANCEL";
  EXPECT_TRUE(host.last().end) << "nothing else is on it";
  Ask();
  EXPECT_EQ(host.connections.size(), 2u);
}

// An endpoint with connections of few milliseconds would else never be heard.
TEST_F(PoolHealthTest, AWatchThatAwaitsItsFirstAnswerLeavesItsConnectionWithIt) {
  const auto report = Ask();
  Send(h2::Goaway(1, 0));
  EXPECT_FALSE(report->Read().ended);
  EXPECT_FALSE(host.last().end);
  Answer(1, kServing);
  EXPECT_EQ(report->Read().status, ServingStatus::kServing);
  ExpectEnd(*report, Kind::kMoved, "its connection takes no new streams");
  EXPECT_TRUE(host.last().end);
}

TEST_F(PoolHealthTest, ACheckEndsOnItsConnectionThatTakesNoNewStreams) {
  const auto report = Ask(false);
  Send(h2::Goaway(1, 0));
  Answer(1, kServing);
  EXPECT_FALSE(report->Read().ended);
  Send(Trailers(1, {{"grpc-status", "0"}}));
  EXPECT_EQ(report->Read().status, ServingStatus::kServing);
  ExpectEnd(*report, Kind::kStatus, "OK", 0);
}

TEST_F(PoolHealthTest, AnAgedConnectionThatEndsBeforeTheAnswerSaysNothingOfTheEndpoint) {
  options.life.age_max = seconds(60);
  options.life.age_grace = seconds(1);
  const auto report = Ask();
  Advance(seconds(67));
  EXPECT_FALSE(report->Read().ended);
  Advance(seconds(2));
  ExpectEnd(*report, Kind::kMoved, "its connection takes no new streams");
  EXPECT_EQ(endpoint->metrics().timeouts->Value(), 0u) << "it is no call";
}

TEST_F(PoolHealthTest, OneThatWaitsForRoomGetsAConnectionWhenTheLastOneTakesNoMoreStreams) {
  host.settings = {{3, 1}};
  options.connections_max = 1;
  NewCall("a");
  Run();
  const auto report = Ask();
  EXPECT_FALSE(report->Read().opened);
  Send(h2::Goaway(1, 0));
  EXPECT_EQ(host.connections.size(), 2u);
  EXPECT_TRUE(report->Read().opened);
}

// Its server greets each connection, allows no stream on it, and ends it: that is no loop of connects.
TEST_F(PoolHealthTest, OneThatNoConnectionTakesEnds) {
  host.settings = {{3, 0}};
  const auto report = Ask();
  ASSERT_EQ(host.connections.size(), 1u);
  EXPECT_FALSE(report->Read().ended);
  host.last().wire().Close();
  Run();
  ExpectEnd(*report, Kind::kNoConnection, "its connections end before they take a stream");
  EXPECT_EQ(host.dials, 1);
}

TEST_F(PoolHealthTest, AgeEndsAConnectionThatHasAWatchWithoutAgeGrace) {
  options.life.age_max = seconds(60);
  options.life.age_grace = seconds(3600);
  const auto report = Ask();
  Answer(1, kServing);
  Advance(seconds(67));
  ExpectEnd(*report, Kind::kMoved, "its connection takes no new streams");
  EXPECT_TRUE(host.last().end);
}

TEST_F(PoolHealthTest, TheLastConnectionIsKeptWhileItIsWatchedAndOthersAreClosedAsIdle) {
  options.life.idle_timeout = seconds(60);
  options.http2.concurrent_streams_max = 100;
  host.settings = {{3, 2}};  // two streams a connection
  const auto report = Ask();
  Answer(1, kServing);
  for (int i = 0; i < 5; ++i) Advance(seconds(61));
  EXPECT_FALSE(report->Read().ended) << "it would have to be made anew at once";
  // Calls open a second connection, and go.
  NewCall("a");
  NewCall("b");
  Run();
  ASSERT_EQ(host.connections.size(), 2u);
  callers.clear();
  Run();
  EXPECT_FALSE(report->Read().ended);
  Advance(seconds(130));
  const auto open = std::count_if(host.connections.begin(), host.connections.end(),
                                  [](const auto& connection) { return !connection->end; });
  EXPECT_EQ(open, 1);
}

TEST_F(PoolHealthTest, ThePeersSilenceIsInOrderButItMustAnswerPings) {
  options.life.body_timeout = seconds(40);
  options.keepalive = {seconds(10), seconds(10), seconds(310)};
  const auto report = Ask();
  Answer(1, kServing);
  for (int i = 0; i < 60; ++i) Advance(seconds(10));
  EXPECT_FALSE(report->Read().ended) << "body_timeout is for calls";
  EXPECT_EQ(endpoint->metrics().timeouts->Value(), 0u);
  EXPECT_EQ(host.last().Count(h2::kPing), 2u) << "one after 10 s, then one each 310 s: what gRPC's servers bear";
  host.last().acknowledge = false;
  for (int i = 0; i < 40; ++i) Advance(seconds(10));
  ExpectEnd(*report, Kind::kLost, "the connection was lost");
}

TEST_F(PoolHealthTest, ARemovalAndAnotherAskEndIt) {
  const auto first = Ask();
  const auto second = Ask();
  ExpectEnd(*first, Kind::kMoved, "another took its place");
  EXPECT_FALSE(second->Read().ended);
  set->StopHealth(*endpoint, first.get());
  EXPECT_FALSE(second->Read().ended) << "an order for the one before it";
  endpoint->MarkRemoved();
  set->Drain(*endpoint);
  Run();
  EXPECT_TRUE(second->Read().ended);
  EXPECT_TRUE(host.last().end) << "a removed endpoint's connection does not wait for the Watch";
  ExpectEnd(*Ask(), Kind::kMoved, "the endpoint has left the list, or the proxy stops");
}

TEST_F(PoolHealthTest, AnOrderEndsIt) {
  const auto report = Ask();
  set->StopHealth(*endpoint, report.get());
  Run();
  ExpectEnd(*report, Kind::kMoved, "");
  EXPECT_EQ(host.last().streams[1].reset, 8u);
}

// The peer allows one stream a connection, and there may be one connection: the call has it.
TEST_F(PoolHealthTest, ACallThatFindsNoRoomGetsThePlaceOfTheWatch) {
  options.connections_max = 1;
  host.settings = {{3, 1}};
  const auto report = Ask();
  EXPECT_TRUE(report->Read().opened);
  NewCall("a");
  ExpectEnd(*report, Kind::kGaveWay, "a call waited for its place");
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  Run();
  const auto next = Ask();
  NewCall("b");
  EXPECT_FALSE(next->Read().opened) << "it waits for room, behind the calls";
  callers.clear();
  Run();
  EXPECT_TRUE(next->Read().opened);
}

TEST_F(PoolHealthTest, WithRoomForMoreConnectionsACallOpensOne) {
  host.settings = {{3, 1}};
  const auto report = Ask();
  NewCall("a");
  Run();
  EXPECT_EQ(Log(), (Strings{"a connection"}));
  EXPECT_FALSE(report->Read().ended);
  EXPECT_EQ(host.connections.size(), 2u);
}

TEST_F(PoolHealthTest, NoRequestIsWrittenToAPeerThatHasNotSaidHello) {
  host.speaks = false;
  const auto report = Ask();
  NewCall("a");
  Run();
  EXPECT_FALSE(report->Read().opened);
  Send(h2::Settings());
  EXPECT_TRUE(report->Read().opened);
  EXPECT_EQ(Log(), (Strings{"a connection"}));
}

}  // namespace
}  // namespace sluice::upstream
