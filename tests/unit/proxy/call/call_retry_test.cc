// What is tried again, where, and with which bytes.
#include <algorithm>
#include <map>
#include <set>

#include "proxy/call/call.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Headers;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

constexpr uint32_t kRefused = 7;
const std::vector<std::string> kTwo = {"10.0.0.1:1", "10.0.0.2:1"};

class CallRetryTest : public test::ProxyFixture {
 public:
  // The host that has the stream and has not reset it or been asked about it before.
  std::string Taken(uint32_t id = 1) {
    for (const std::string& address : Holders(kTwo, id)) {
      if (seen_.insert(address).second) return address;
    }
    return "none";
  }
  std::map<std::string, std::set<uint32_t>> done_;  // streams that a test has dealt with, by host

 private:
  std::set<std::string> seen_;
};

// A body whose bytes tell their place.
std::string Pattern(size_t bytes) {
  std::string out;
  for (size_t i = 0; i < bytes; ++i) out.push_back(static_cast<char>(i * 131 + i / 251));
  return out;
}

TEST_F(CallRetryTest, ARefusedStreamIsTriedElsewhereWithTheSameBytes) {
  Start(kTwo);
  FramePeer& client = Client();
  uint32_t id = 1;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{200}, size_t{256}, size_t{257}, size_t{300}, size_t{40'000}}) {
    SCOPED_TRACE(bytes);
    const std::string body = Pattern(bytes);
    const std::string mark = std::to_string(id);
    const h2::Fields request = h2::With(h2::GrpcRequest(), {{"mark", mark}});
    client.Send(Headers(id, Block(request)));
    // Several slices: cut in odd places, in several reads.
    for (size_t at = 0, n = 1; at < bytes; at += n, n = n * 3 + 1) {
      n = std::min<size_t>(std::min(n, bytes - at), 16384);
      client.Send(Data(id, std::string_view(body).substr(at, n)));
      if (n % 2 == 0) Run();
    }
    client.Send(Data(id, "", h2::kEndStream));
    Run();
    // The host that has the mark refuses; the other must then have the same request and body.
    int refused = 0, answered = 0;
    for (int round = 0; round < 2; ++round) {
      for (const std::string& address : kTwo) {
        if (!Connected(address)) continue;
        for (auto& [stream, heard] : Up(address).streams) {
          if (heard.headers.empty() || heard.Value("mark") != mark || heard.reset || !heard.end ||
              done_[address].contains(stream))
            continue;
          done_[address].insert(stream);
          EXPECT_EQ(heard.data, body);
          EXPECT_EQ(heard.headers[0], request);
          if (refused++ == 0) {
            Up(address).Send(h2::RstStream(stream, kRefused));
          } else {
            ++answered;
            Respond(Up(address), stream, "ok");
          }
          Run();
          break;
        }
      }
    }
    EXPECT_EQ(refused, 2);
    EXPECT_EQ(answered, 1);
    EXPECT_EQ(client.streams[id].data, "ok");
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0");
    id += 2;
  }
}

TEST_F(CallRetryTest, AGoawayBelowTheStreamSendsItElsewhere) {
  Start(kTwo);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, "body", h2::kEndStream));
  Run();
  const std::string first = Taken();
  Up(first).Send(h2::Goaway(0, 0));
  Run();
  const std::string second = Taken();
  ASSERT_NE(second, "none");
  EXPECT_EQ(Up(second).streams[1].data, "body");
  Respond(Up(second), 1, "ok");
  Run();
  EXPECT_EQ(client.streams[1].data, "ok");
  EXPECT_TRUE(Up(first).end);
}

TEST_F(CallRetryTest, AGoawayThatCoversTheStreamLetsItFinish) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  FramePeer& old = Up();
  old.Send(h2::Goaway(1, 0));
  Run();
  EXPECT_FALSE(old.end);
  client.Send(Headers(3, Block(h2::GrpcRequest()), kLast));
  Run();
  ASSERT_EQ(net.host("10.0.0.1:1").connections.size(), 2u);  // the new call has a new connection
  Respond(old, 1, "old");
  Respond(Up(), 1, "new");
  Run();
  EXPECT_EQ(client.streams[1].data, "old");
  EXPECT_EQ(client.streams[3].data, "new");
  EXPECT_TRUE(old.end);
}

TEST_F(CallRetryTest, ABodyAboveTheBufferIsNotTriedAgain) {
  routes[0].retry.buffer_bytes_max = 1000;
  Start(kTwo);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, Pattern(1001), h2::kEndStream));
  Run();
  Up(Taken()).Send(h2::RstStream(1, kRefused));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "upstream_refused");
  EXPECT_EQ(Taken(), "none");
}

TEST_F(CallRetryTest, ABodyAboveTheBufferThatWasNeverSentMayStillGoElsewhere) {
  routes[0].retry.buffer_bytes_max = 10;
  Start(kTwo);
  for (const std::string& address : kTwo) net.host(address).mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())));
  time.worker.Post([this] {
    for (const std::string& a : kTwo) net.host(a).mode = test::FakeHost::Mode::kAccept;
  });
  client.Send(Data(1, Pattern(5000), h2::kEndStream));
  Run();
  for (const std::string& address : Holders(kTwo)) {
    EXPECT_EQ(Up(address).streams[1].data, Pattern(5000));
    Respond(Up(address), 1, "ok");
  }
  Run();
  EXPECT_EQ(client.streams[1].data, "ok");
}

TEST_F(CallRetryTest, AttemptsAreBounded) {
  routes[0].retry.attempts_max = 3;
  Start(kTwo);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  int attempts = 0;
  for (bool more = true; more;) {
    more = false;
    for (const std::string& address : kTwo) {
      if (!Connected(address)) continue;
      for (auto& [id, heard] : Up(address).streams) {
        if (heard.headers.empty() || heard.reset || !done_[address].insert(id).second) continue;
        ++attempts;
        more = true;
        Up(address).Send(h2::RstStream(id, kRefused));
        break;
      }
    }
    Run();
    ASSERT_LT(attempts, 50);
  }
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(client.streams[1].Value("sluice-reason"), "upstream_refused");
}

TEST_F(CallRetryTest, WithOneAttemptNothingIsTriedAgain) {
  routes[0].retry.attempts_max = 1;
  Start(kTwo);
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest()), kLast));
  Run();
  Up(Taken()).Send(h2::RstStream(1, kRefused));
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "14");
  EXPECT_EQ(Taken(), "none");
}

TEST_F(CallRetryTest, AnEndpointThatRefusesConnectionsIsLeftForTheOther) {
  Start(kTwo);
  net.host(kTwo[0]).mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = Client();
  for (uint32_t id : {1, 3}) client.Send(Headers(id, Block(h2::GrpcRequest())) + Data(id, "b", h2::kEndStream));
  Run();
  EXPECT_EQ(net.host(kTwo[0]).dials, 1);
  Respond(Up(kTwo[1]), 1, "ok");
  Respond(Up(kTwo[1]), 3, "ok");
  Run();
  EXPECT_EQ(client.streams[1].data + client.streams[3].data, "okok");
}

TEST_F(CallRetryTest, ForwardingFieldsAreAddedOnceAlsoWhereTheFirstAttemptFoundNoConnection) {
  forwarding.x_forwarded = true;
  listener.trusted_proxies = {1, {*net::AddressRange::Parse("192.0.2.0/24")}, {}};
  forwarding.via = true;
  Start(kTwo);
  net.host(kTwo[0]).mode = test::FakeHost::Mode::kRefuse;
  net.host(kTwo[1]).mode = test::FakeHost::Mode::kAccept;
  FramePeer& client = Client();
  for (uint32_t id : {1, 3})
    client.Send(Headers(id, Block(h2::With(h2::GrpcRequest(), {{"x-forwarded-for", "10.9.9.9"}})), kLast));
  Run();
  Up(kTwo[1]).Send(h2::RstStream(1, kRefused));  // a further attempt, which must not add them again
  Run();
  int seen = 0;
  for (auto& [id, heard] : Up(kTwo[1]).streams) {
    if (heard.headers.empty()) continue;
    ++seen;
    EXPECT_EQ(heard.headers[0], h2::With(h2::GrpcRequest(), {{"x-forwarded-for", "10.9.9.9, 192.0.2.7"},
                                                             {"x-forwarded-proto", "http"},
                                                             {"x-forwarded-host", "test"},
                                                             {"via", "2 sluice"}}));
  }
  EXPECT_GE(seen, 3);
}

TEST_F(CallRetryTest, TheClientsWindowIsCreditedOnceAcrossAttempts) {
  Start(kTwo);
  FramePeer& client = Client();
  const std::string body = Pattern(64 * 1024);
  uint32_t id = 1;
  const uint64_t before = client.Credited(0);
  uint64_t sent = 0;
  for (int call = 0; call < 80; ++call, id += 2) {
    client.Send(Headers(id, Block(h2::GrpcRequest())));
    for (size_t at = 0; at < body.size(); at += 16384) {
      client.Send(Data(id, std::string_view(body).substr(at, 16384), at + 16384 == body.size() ? h2::kEndStream : 0));
    }
    sent += body.size();
    Run();
    bool refused = false;
    for (int round = 0; round < 2; ++round) {
      for (const std::string& address : kTwo) {
        if (!Connected(address)) continue;
        for (auto& [stream, heard] : Up(address).streams) {
          if (heard.headers.empty() || heard.reset || !done_[address].insert(stream).second) continue;
          EXPECT_EQ(heard.data.size(), body.size());
          if (!std::exchange(refused, true))
            Up(address).Send(h2::RstStream(stream, kRefused));
          else
            Respond(Up(address), stream, "ok");
          Run();
          break;
        }
      }
    }
    ASSERT_EQ(client.streams[id].data, "ok") << call;
  }
  EXPECT_LE(client.Credited(0) - before, sent);
  EXPECT_GE(client.Credited(0) - before + 4 * 1024 * 1024 / 2, sent);
}

TEST_F(CallRetryTest, ARemovedEndpointsWaitingCallsGoElsewhereWithoutCountingAsAttempts) {
  routes[0].retry.attempts_max = 1;
  Start({kTwo[0]});
  net.host(kTwo[0]).mode = test::FakeHost::Mode::kHang;
  FramePeer& client = Client();
  client.Send(Headers(1, Block(h2::GrpcRequest())) + Data(1, "b", h2::kEndStream));
  Run();
  SetEndpoints({kTwo[1]});
  Run();
  ASSERT_TRUE(Connected(kTwo[1]));
  Respond(Up(kTwo[1]), 1, "ok");
  Run();
  EXPECT_EQ(client.streams[1].data, "ok");
}

}  // namespace
}  // namespace sluice::proxy
