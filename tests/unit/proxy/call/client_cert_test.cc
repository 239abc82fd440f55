// x-forwarded-client-cert and metadata that only proxies may set: what endpoints, routes and the cache read of them.
#include <gtest/gtest.h>

#include "proxy/call/forwarded_fields.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test::FramePeer;
using test::kLast;

constexpr const char* kName = "x-forwarded-client-cert";

TEST(LastElements, AreCountedFromTheEnd) {
  EXPECT_EQ(LastElements("a, b , c", 1, false), "c");
  EXPECT_EQ(LastElements("a, b , c", 2, false), "b , c");
  EXPECT_EQ(LastElements("a, b", 3, false), "a, b");
  EXPECT_EQ(LastElements("a, b", 0, false), "");
  EXPECT_EQ(LastElements("", 2, false), "");
  EXPECT_EQ(LastElements(",,a", 2, false), ",a");
}

TEST(LastElements, ACommaInQuotesIsNone) {
  EXPECT_EQ(LastElements("Subject=\"O=a,CN=b\",Subject=\"O=c,CN=d\"", 1, true), "Subject=\"O=c,CN=d\"");
  EXPECT_EQ(LastElements("x,Subject=\"a\\\",b\"", 1, true), "Subject=\"a\\\",b\"");
  // What a client says, joined to what a proxy says: no quote of the one may take in the comma between.
  for (const char* said : {"X=\"", "X=\"\\", "X=\"a\\\"", "X=\\\"", "X=\\"}) {
    for (const char* trusted : {"Subject=\"CN=c\"", "Subject=\"a\\\"b\"", "Subject=\"a\\\\\"", "URI=u"}) {
      EXPECT_EQ(LastElements(std::string(said) + "," + trusted, 1, true), "") << said << ' ' << trusted;
    }
  }
}

class ClientCertTest : public test::ProxyFixture {
 public:
  FramePeer& WithCertificate(const std::string& forwarded, base::Nanos left = seconds(3600)) {
    net::TlsPeer peer;
    peer.has_certificate = true;
    peer.client_cert = forwarded;
    peer.certificate_ends = time.clock.Now() + left;
    return ClientOf(front(), "192.0.2.7:40000", {}, &peer);
  }
  // The values that the endpoint gets of a request with these.
  std::vector<std::string> Forwarded(FramePeer& client, const std::vector<std::string>& said,
                                     const std::string& name = kName) {
    Fields fields;
    for (const std::string& value : said) fields.emplace_back(name, value);
    const uint32_t id = next_[&client] += 2;
    client.Send(Headers(id - 1, Block(With(GrpcRequest(), fields)), kLast));
    Run();
    std::vector<std::string> out;
    for (const auto& [field, value] : Up().streams.rbegin()->second.headers[0]) {
      if (field == name) out.push_back(value);
    }
    return out;
  }

  std::map<FramePeer*, uint32_t> next_;
};

using Values = std::vector<std::string>;

TEST_F(ClientCertTest, WithoutTheOptionNoClientSaysACertificate) {
  Start({"10.0.0.1:1"});
  EXPECT_EQ(Forwarded(Client(), {"URI=spiffe://lie", "Hash=1"}), Values());
  EXPECT_EQ(Forwarded(WithCertificate("URI=spiffe://app"), {"URI=spiffe://lie"}), Values());
}

TEST_F(ClientCertTest, TheEndpointIsToldTheClientsCertificateOnly) {
  forwarding.client_cert = true;
  Start({"10.0.0.1:1"});
  FramePeer& client = WithCertificate("Hash=1;URI=spiffe://app");
  EXPECT_EQ(Forwarded(client, {}), Values{"Hash=1;URI=spiffe://app"});
  EXPECT_EQ(Forwarded(client, {"URI=spiffe://lie"}), Values{"Hash=1;URI=spiffe://app"});
  EXPECT_EQ(Forwarded(client, {"URI=spiffe://lie", "Hash=1;URI=spiffe://app"}), Values{"Hash=1;URI=spiffe://app"});
  EXPECT_EQ(Forwarded(client, {"URI=spiffe://lie,Hash=1;URI=spiffe://app"}), Values{"Hash=1;URI=spiffe://app"});
  EXPECT_EQ(Forwarded(Client(), {"URI=spiffe://lie"}), Values());
  FramePeer& late = WithCertificate("URI=spiffe://late", seconds(10));
  Advance(seconds(10));
  EXPECT_EQ(Forwarded(late, {}), Values());
}

TEST_F(ClientCertTest, TheWordOfTrustedHopsStandsBeforeIt) {
  forwarding.client_cert = true;
  listener.trusted_proxies = {1, {*net::AddressRange::Parse("192.0.2.0/24")}, {}};
  Start({"10.0.0.1:1"});
  FramePeer& client = WithCertificate("URI=spiffe://front");
  EXPECT_EQ(Forwarded(client, {"URI=spiffe://lie,Subject=\"O=a,CN=b\";URI=spiffe://app"}),
            Values{"Subject=\"O=a,CN=b\";URI=spiffe://app,URI=spiffe://front"});
  EXPECT_EQ(Forwarded(client, {"URI=spiffe://lie", "URI=spiffe://app"}), Values{"URI=spiffe://app,URI=spiffe://front"});
  EXPECT_EQ(Forwarded(client, {}), Values{"URI=spiffe://front"});
  EXPECT_EQ(Forwarded(Client(), {"URI=spiffe://lie,URI=spiffe://app"}), Values{"URI=spiffe://app"});
}

// The field is made once: another attempt, or another look at the routes, does not make it longer.
TEST_F(ClientCertTest, AnotherAttemptSaysTheSame) {
  forwarding.client_cert = true;
  listener.trusted_proxies = {2, {*net::AddressRange::Parse("192.0.2.0/24")}, {}};
  routes[0].retry.attempts_max = 2;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  net.host("10.0.0.1:1").mode = test::FakeHost::Mode::kRefuse;
  FramePeer& client = WithCertificate("URI=spiffe://front");
  for (uint32_t id = 1; id < 8; id += 2) {
    client.Send(Headers(id, Block(With(GrpcRequest(), {{kName, "URI=spiffe://app"}})), kLast));
    Run();
    const Fields& got = Up("10.0.0.2:1").streams.rbegin()->second.headers[0];
    EXPECT_EQ(got.back().second, "URI=spiffe://app,URI=spiffe://front") << id;
  }
  EXPECT_GT(metrics.retries[static_cast<size_t>(base::ErrorKind::kConnectFailed)]->Value(), 0u);
}

TEST_F(ClientCertTest, WhatOnlyProxiesMaySetIsTakenAwayBeforeItDecides) {
  forwarding.remove = {"x-user"};
  routes.push_back(routes[0]);
  routes[0].name = "users";
  routes[0].metadata = {{"x-user", MetadataMatch::Kind::kPresent, ""}};
  routes[0].access = {AccessRule{}};  // denies
  Start({"10.0.0.1:1"});
  EXPECT_EQ(Forwarded(Client(), {"root", "me"}, "x-user"), Values());
  EXPECT_EQ(Forwarded(Client(), {"root"}, "x-users"), Values{"root"});
}

// Metadata that a gate of another route sets, or its own: a client says none of it, also where no gate looks.
TEST_F(ClientCertTest, ClaimsAreTheGatesToSet) {
  claims = {"x-sub"};
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes[0].cache.vary = {"x-sub"};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  EXPECT_EQ(Forwarded(client, {"root", "me"}, "x-sub"), Values());
  client.Send(Headers(3, Block(With(GrpcRequest(), {{"x-sub", "root"}}))) +
              Data(3, Message("question"), h2::kEndStream));
  Run();
  const uint32_t id = Up().streams.rbegin()->first;
  Up().Send(Headers(id, Block(h2::GrpcResponse())) + Data(id, Message("answer")) +
            Headers(id, Block(h2::GrpcTrailers()), kLast));
  Run();
  ASSERT_EQ(response_cache->stats().entries, 1u);
  client.Send(Headers(5, Block(With(GrpcRequest(), {{"x-sub", "other"}}))) +
              Data(5, Message("question"), h2::kEndStream));
  Run();
  EXPECT_EQ(client.streams[5].data, Message("answer")) << "the key has no word of the client's";
  EXPECT_EQ(response_cache->stats().hits, 1u);
  client.Send(Headers(7, Block(GrpcRequest())) + Data(7, Message("more")) +
              Headers(7, Block({{"x-sub", "root"}, {"x-mine", "1"}}), kLast));
  Run();
  EXPECT_EQ(Up().streams.rbegin()->second.headers.back(), (Fields{{"x-mine", "1"}}));
}

// gRPC has no trailers of requests, but HTTP/2 has, and servers that read both alike.
TEST_F(ClientCertTest, NorAreTrailersAWayForThem) {
  forwarding.remove = {"x-user"};
  forwarding.client_cert = true;
  Start({"10.0.0.1:1"});
  FramePeer& client = WithCertificate("URI=spiffe://app");
  client.Send(
      Headers(1, Block(GrpcRequest())) + Data(1, Message("question")) +
      Headers(1,
              Block({{"x-user", "root"}, {kName, "URI=spiffe://lie"}, {"sluice-reason", "draining"}, {"x-mine", "1"}}),
              kLast));
  Run();
  ASSERT_EQ(Up().streams[1].headers.size(), 2u);
  EXPECT_EQ(Up().streams[1].headers[1], (Fields{{"x-mine", "1"}}));
}

// A reload brings the option while a request is under way: the next look at the routes is by the new one.
TEST_F(ClientCertTest, ACallThatWaitsThroughAReloadSaysWhatTheNewConfigurationSays) {
  cluster.concurrency.max = 0;
  routes[0].retry.attempts_max = 2;
  Start({"10.0.0.1:1"});
  FramePeer& client = WithCertificate("URI=spiffe://app");
  client.Send(Headers(1, Block(With(GrpcRequest(), {{kName, "URI=spiffe://lie"}})), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers[0], GrpcRequest()) << "taken away";
  forwarding.client_cert = true;
  SetEndpoints({"10.0.0.2:1"});
  Up().Send(h2::RstStream(1, 7));  // REFUSED_STREAM: not processed
  Run();
  EXPECT_EQ(Up("10.0.0.2:1").streams[1].headers[0], With(GrpcRequest(), {{kName, "URI=spiffe://app"}}));
}

// What endpoints may answer by is a part of the key, as it is said, not as the client says it.
TEST_F(ClientCertTest, AStoredAnswerIsOfItsCertificate) {
  forwarding.client_cert = true;
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes[0].cache.vary = {kName};
  Start({"10.0.0.1:1"});
  FramePeer& a = WithCertificate("URI=spiffe://a");
  FramePeer& b = WithCertificate("URI=spiffe://b");
  const auto ask = [&](FramePeer& client, uint32_t id, const Fields& more) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message("question"), h2::kEndStream));
    Run();
  };
  ask(a, 1, {});
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, Message("of a")) +
            Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  ASSERT_EQ(response_cache->stats().entries, 1u);
  ask(b, 1, {{kName, "URI=spiffe://a"}});
  EXPECT_EQ(b.streams[1].data, "");
  EXPECT_EQ(response_cache->stats().hits, 0u);
  ask(a, 3, {{kName, "URI=spiffe://b"}});
  EXPECT_EQ(a.streams[3].data, Message("of a"));
  EXPECT_EQ(response_cache->stats().hits, 1u);
}

}  // namespace
}  // namespace sluice::proxy
