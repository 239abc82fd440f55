// Deadlines, forwarding fields and the access log of calls.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using std::chrono::milliseconds;
using test::FakeHost;
using test::FramePeer;
using test::kLast;

class CallDeadlineTest : public test::ProxyFixture {};

TEST_F(CallDeadlineTest, TheUpstreamGetsTheTimeThatRemains) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").settings = {{3, 1}};
  FramePeer& client = Client();
  const Fields request = With(GrpcRequest(), {{"grpc-timeout", "5S"}, {"after", "1"}});
  client.Send(Headers(1, Block(request), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers[0], With(GrpcRequest(), {{"grpc-timeout", "5000000u"}, {"after", "1"}}));
  net.host("10.0.0.1:1").mode = FakeHost::Mode::kHang;
  client.Send(Headers(3, Block(request), kLast));  // waits for room, 1.5 s
  Run();
  Advance(milliseconds(1500));
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(Up().streams[3].Value("grpc-timeout"), "3500000u");
}

TEST_F(CallDeadlineTest, WithoutADeadlineNoneIsMadeUp) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers[0], GrpcRequest());
}

TEST_F(CallDeadlineTest, TheRoutesTimeoutBoundsTheClients) {
  routes[0].timeout = milliseconds(2000);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "1H"}})), kLast));
  client.Send(Headers(5, Block(With(GrpcRequest(), {{"grpc-timeout", "1S"}})), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].Value("grpc-timeout"), "2000000u");
  EXPECT_EQ(Up().streams[3].Value("grpc-timeout"), "2000000u");
  EXPECT_EQ(Up().streams[5].Value("grpc-timeout"), "1000000u");
}

TEST_F(CallDeadlineTest, ADeadlineThatPassesWhileWaitingForAConnectionEndsTheCall) {
  Start({"10.0.0.1:1"});
  net.host("10.0.0.1:1").mode = FakeHost::Mode::kHang;
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
  Run();
  Advance(milliseconds(99));
  EXPECT_FALSE(client.streams[1].end);
  Advance(milliseconds(1));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "deadline");
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
}

TEST_F(CallDeadlineTest, ADeadlineThatPassesWhileWaitingForTheResponseEndsBothSides) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
  Run();
  Up().Send(Headers(3, Block(h2::GrpcResponse())) + Data(3, "part"));
  Run();
  Advance(milliseconds(100));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[1].headers.size(), 1u);
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "4");
  EXPECT_EQ(client.streams[3].headers.size(), 2u);
  EXPECT_EQ(Up().streams[1].reset, 8u);
  EXPECT_EQ(Up().streams[3].reset, 8u);
}

TEST_F(CallDeadlineTest, AResponseInTimeDisarmsTheDeadline) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
  Run();
  Respond(Up(), 1, "ok");
  Run();
  Advance(milliseconds(1000));
  EXPECT_EQ(client.streams[1].headers.size(), 2u);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(CallDeadlineTest, AMalformedTimeoutIsTheClientsError) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const char* text : {"", "1", "S", "123456789S", "-1S", "1 S", "1s", "1.5S", "+1S"}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), {{"grpc-timeout", text}}))));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "13") << text;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "malformed_request") << text;
    id += 2;
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

TEST_F(CallDeadlineTest, ATimeoutOfZeroHasPassedOnArrival) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"grpc-timeout", "0n"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

// Nor whether it is an error of the proxy's or of the backend's.
TEST_F(CallDeadlineTest, ABackendThatSaysItWhenItsTimeoutHasRunOutIsTheDeadline) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const auto& [at, reason] : {std::pair<base::Nanos, const char*>(milliseconds(99), "deadline"),
                                   {milliseconds(99) - base::Nanos(1), "<none>"}}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
    Run();
    time.clock.Advance(at);
    Up().Send(Headers(id, Block(With(h2::GrpcResponse(), {{"grpc-status", "4"}})), kLast));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "4");
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), reason);
    id += 2;
  }
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kDeadlineExceeded)]->Value(), 1u);
}

// The backend's timer and ours are of one deadline: which is seen first must not decide the call's status.
TEST_F(CallDeadlineTest, ABackendsCancelWhenItsTimeoutHasRunOutIsTheDeadline) {
  struct Case {
    base::Nanos at;
    uint32_t code;
    const char *status, *reason;
  };
  const Case kCases[] = {
      {milliseconds(90), 8, "4", "deadline"},  // the last tenth
      {milliseconds(90) - base::Nanos(1), 8, "1", "upstream_cancelled"},
      {base::Nanos(99'999'999), 8, "4", "deadline"},
      {base::Nanos(99'999'999), 2, "13", "upstream_reset"},
  };
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const Case& c : kCases) {
    for (bool begun : {false, true}) {
      SCOPED_TRACE(std::to_string(c.at.count()) + " ns, code " + std::to_string(c.code) + (begun ? ", begun" : ""));
      client.Send(Headers(id, Block(With(GrpcRequest(), {{"grpc-timeout", "100m"}})), kLast));
      Run();
      if (begun) Up().Send(Headers(id, Block(h2::GrpcResponse())));
      Run();
      time.clock.Advance(c.at);
      Up().Send(h2::RstStream(id, c.code));
      Run();
      EXPECT_EQ(client.streams[id].Value("grpc-status"), c.status);
      EXPECT_EQ(client.streams[id].Value("sluice-reason"), c.reason);
      id += 2;
    }
  }
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kDeadlineExceeded)]->Value(), 4u);
}

// Of a long timeout, which is cut when it is written.
TEST_F(CallDeadlineTest, ABackendsCancelInTheLastHundredMillisecondsIsTheDeadline) {
  for (auto [before, status] :
       {std::pair(base::Nanos(0), "4"), {milliseconds(1), "4"}, {milliseconds(99), "4"}, {milliseconds(100), "1"}}) {
    SCOPED_TRACE(before.count());
    if (!worker) {
      Start({"10.0.0.1:1"});
      net.host("10.0.0.1:1").settings = {{3, 1}};
    }
    net.host("10.0.0.1:1").mode = FakeHost::Mode::kAccept;
    FramePeer& client = Client();
    client.Send(Headers(1, Block(GrpcRequest()), kLast));
    Run();
    net.host("10.0.0.1:1").mode = FakeHost::Mode::kHang;
    client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "200S"}})), kLast));  // waits for room
    Run();
    Advance(base::Nanos(400'000));
    const uint32_t first = Up().streams.rbegin()->first;
    Respond(Up(), first, "");
    Run();
    const uint32_t id = first + 2;
    ASSERT_EQ(Up().streams[id].Value("grpc-timeout"), "199999m");  // 0.6 ms were cut off
    time.clock.Advance(milliseconds(199'999) - before);
    Up().Send(h2::RstStream(id, 8));
    Run();
    EXPECT_EQ(client.streams[3].Value("grpc-status"), status);
  }
}

TEST_F(CallDeadlineTest, ABackendsCancelAtTheRoutesTimeoutIsTheDeadline) {
  routes[0].timeout = milliseconds(2000);
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  time.clock.Advance(milliseconds(1999));
  Up().Send(h2::RstStream(1, 8));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "4");
}

TEST_F(CallDeadlineTest, AClientsCancelAtItsDeadlineIsTheDeadline) {
  struct Case {
    base::Nanos at;
    const char* timeout;
    uint32_t code;
    bool deadline;
  };
  const Case kCases[] = {
      {milliseconds(90), "100m", 8, true},  // a tenth
      {milliseconds(9), "10m", 8, true},
      {milliseconds(9'900), "10S", 8, true},  // 100 ms
      {milliseconds(90) - base::Nanos(1), "100m", 8, false},
      {milliseconds(9) - base::Nanos(1), "10m", 8, false},
      {milliseconds(9'900) - base::Nanos(1), "10S", 8, false},
      {milliseconds(99), "100m", 2, false},  // INTERNAL_ERROR
      {milliseconds(1), nullptr, 8, false},
      {milliseconds(1'999), nullptr, 8, false},  // of the route's timeout it knows nothing
      {milliseconds(1'999), "3S", 8, false},
  };
  routes.push_back(routes[0]);
  routes[0].timeout = milliseconds(2000);
  routes[0].service = "short.Service";
  routes[1].name = "other";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  auto count = [&](base::ErrorKind kind) { return metrics.errors[static_cast<size_t>(kind)]->Value(); };
  auto calls = [&](const char* route, const char* code) {
    return registry.AddCounter("calls_total", "Calls.", {{"route", route}, {"code", code}})->Value();
  };
  uint32_t id = 1;
  for (const Case& c : kCases) {
    const bool short_route = c.timeout == nullptr || c.at == milliseconds(1'999);
    SCOPED_TRACE(std::to_string(c.at.count()) + " ns of " + (c.timeout != nullptr ? c.timeout : "none"));
    const uint64_t deadlines = count(base::ErrorKind::kDeadlineExceeded);
    const uint64_t cancels = count(base::ErrorKind::kCancelled);
    const char* route = short_route ? "r" : "other";
    const uint64_t calls_before = calls(route, c.deadline ? "4" : "1");
    Fields request = GrpcRequest(short_route ? "/short.Service/Method" : "/pkg.Service/Method");
    if (c.timeout != nullptr) request = With(request, {{"grpc-timeout", c.timeout}});
    client.Send(Headers(id, Block(request)));
    Run();
    time.clock.Advance(c.at);
    client.Send(h2::RstStream(id, c.code));
    Run();
    EXPECT_EQ(count(base::ErrorKind::kDeadlineExceeded), deadlines + c.deadline);
    EXPECT_EQ(count(base::ErrorKind::kCancelled), cancels + !c.deadline);
    EXPECT_EQ(calls(route, c.deadline ? "4" : "1"), calls_before + 1);
    EXPECT_EQ(Up().streams[id].reset, 8u);
    id += 2;
  }
}

// The log's thread writes into a FIFO: reading it waits for the line, however long that takes.
TEST_F(CallDeadlineTest, TheAccessLogTellsACallInOneLine) {
  const std::string path = ::testing::TempDir() + "sluice_access_" + std::to_string(::getpid());
  ::unlink(path.c_str());
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  FILE* lines = ::fdopen(::open(path.c_str(), O_RDWR), "r+");
  ASSERT_NE(lines, nullptr);
  access_log = {AccessLogOptions::Format::kText, path};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest("/pkg.Service/Get"))) + Data(1, "12345", h2::kEndStream));
  Run();
  time.clock.Advance(milliseconds(3));
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, "123"));
  Run();
  time.clock.Advance(milliseconds(4));
  Up().Send(Headers(1, Block(h2::GrpcTrailers("5")), kLast));
  Run();
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"grpc-timeout", "x"}})), kLast));
  Run();
  char text[1000];
  ASSERT_NE(std::fgets(text, sizeof(text), lines), nullptr);
  EXPECT_THAT(std::string(text),
              ::testing::EndsWith(" 192.0.2.7:40000 \"/pkg.Service/Get\" NOT_FOUND client=- route=r cluster=c "
                                  "endpoint=10.0.0.1:1 attempts=1 tries=- in=5 out=3 "
                                  "upstream_ms=0.000 response_ms=3.000 total_ms=7.000 cache=- waited=- limit=- cause=- "
                                  "processed=- detail=\"\" call_id=" +
                                  CallId::Of(0, 1).ToString() + " request_id=-\n"));
  ASSERT_NE(std::fgets(text, sizeof(text), lines), nullptr);
  EXPECT_THAT(
      std::string(text),
      ::testing::EndsWith(" 192.0.2.7:40000 \"/pkg.Service/Method\" INTERNAL client=- route=- cluster=- "
                          "endpoint=- attempts=0 tries=- in=0 out=0 "
                          "upstream_ms=- response_ms=- total_ms=0.000 cache=- waited=- limit=- cause=malformed_request "
                          "processed=no detail=\"malformed grpc-timeout\" call_id=" +
                          CallId::Of(0, 2).ToString() + " request_id=-\n"));
  std::fclose(lines);
  ::unlink(path.c_str());
}

TEST_F(CallDeadlineTest, MetricsCountTheCallByItsStatus) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(GrpcRequest()), kLast));
  Run();
  EXPECT_EQ(metrics.calls_in_flight->Value(), 1);
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(metrics.calls_in_flight->Value(), 0);
  EXPECT_EQ(registry.AddCounter("calls_total", "Calls.", {{"route", "r"}, {"code", "0"}})->Value(), 1u);
}

TEST_F(CallDeadlineTest, TheAccessLogHasMetadataOfTheRequestAndOfTheResponsesEnd) {
  using Source = AccessLogField::Source;
  const std::string path = ::testing::TempDir() + "sluice_metadata_" + std::to_string(::getpid());
  access_log = {AccessLogOptions::Format::kJson,
                path,
                {{.field = AccessField::kStatus},
                 {Source::kMetadata, {}, "x-user", ""},
                 {Source::kTrailer, {}, "x-cost", "cost"}}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(With(GrpcRequest(), {{"x-user", "u\"1"}})), kLast));
  Run();
  Up().Send(Headers(1, Block(With(h2::GrpcResponse(), {{"x-cost", "of the headers"}}))) + Data(1, "123"));
  Up().Send(Headers(1, Block(With(h2::GrpcTrailers(), {{"x-cost", "7"}})), kLast));
  Run();
  ASSERT_TRUE(AccessLog::Flush(std::chrono::seconds(30)));
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"x-user", "u2"}, {"grpc-timeout", "x"}})), kLast));
  Run();
  ASSERT_TRUE(AccessLog::Flush(std::chrono::seconds(30)));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(),
            "{\"status\":\"OK\",\"x-user\":\"u\\\"1\",\"cost\":\"7\"}\n"
            "{\"status\":\"INTERNAL\",\"x-user\":\"u2\",\"cost\":\"\"}\n");
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace sluice::proxy
