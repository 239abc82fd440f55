// What a call carries on to the endpoint besides the client's own metadata, and what of a client's it does not.
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::With;
using test::FramePeer;
using test::kLast;

class CallForwardingTest : public test::ProxyFixture {
 public:
  // The headers that the backend gets of a request with `fields`.
  Fields Forwarded(const Fields& fields) {
    if (client_ == nullptr) {
      Start({"10.0.0.1:1"});
      client_ = &Client();
    }
    next_ += 2;
    client_->Send(Headers(next_, Block(With(GrpcRequest(), fields)), kLast));
    Run();
    return Up().streams.rbegin()->second.headers[0];
  }
  static Fields Said(const char* chain, const char* proto, const char* host) {
    return {{"x-forwarded-for", chain}, {"x-forwarded-proto", proto}, {"x-forwarded-host", host}};
  }

  FramePeer* client_ = nullptr;
  uint32_t next_ = static_cast<uint32_t>(-1);
};

const Fields kLies = {{"x-forwarded-for", "198.51.100.1"},
                      {"x-forwarded-proto", "https"},
                      {"x-forwarded-host", "inside"},
                      {"x-forwarded-for", "198.51.100.2, 198.51.100.3"}};

TEST_F(CallForwardingTest, TheFieldsNameTheClient) {
  forwarding.x_forwarded = forwarding.via = true;
  EXPECT_EQ(Forwarded({}), With(With(GrpcRequest(), Said("192.0.2.7", "http", "test")), {{"via", "2 sluice"}}));
  Respond(Up(), 1, "");
  Run();
  EXPECT_EQ(client_->streams[1].headers[0], With(h2::GrpcResponse(), {{"via", "2 sluice"}}));
}

TEST_F(CallForwardingTest, WhatAClientSaysOfItselfIsReplaced) {
  forwarding.x_forwarded = true;
  EXPECT_EQ(Forwarded(kLies), With(GrpcRequest(), Said("192.0.2.7", "http", "test")));
}

TEST_F(CallForwardingTest, TheWordOfTrustedHopsStays) {
  forwarding.x_forwarded = true;
  listener.trusted_proxies = {2, {*net::AddressRange::Parse("192.0.2.0/24")}, {}};
  EXPECT_EQ(Forwarded(kLies), With(GrpcRequest(), Said("198.51.100.2, 198.51.100.3, 192.0.2.7", "https", "inside")));
  EXPECT_EQ(Forwarded({{"x-forwarded-for", "198.51.100.3"}}),
            With(GrpcRequest(), Said("198.51.100.3, 192.0.2.7", "http", "test")))
      << "a chain with fewer";
  EXPECT_EQ(Forwarded({{"x-forwarded-for", ""}, {"x-forwarded-for", ",,,10.0.0.1"}})[6].second, ",10.0.0.1, 192.0.2.7");
}

// By each way to be named; all others are clients, whose word is replaced.
TEST_F(CallForwardingTest, OnlyNamedPeersAreTrusted) {
  forwarding.x_forwarded = true;
  Start({"10.0.0.1:1"});
  const auto chain = [&](const char* peer, const net::TlsPeer* tls = nullptr) {
    FramePeer& client = ClientOf(front(), peer, {}, tls);
    client.Send(Headers(1, Block(With(GrpcRequest(), kLies)), kLast));
    Run();
    const Fields& got = Up().streams.rbegin()->second.headers[0];
    const auto said = [&](std::string_view name) {
      for (const auto& [field, value] : got) {
        if (field == name) return value;
      }
      return std::string();
    };
    return said("x-forwarded-for") + " " + said("x-forwarded-host");
  };
  EXPECT_EQ(chain("192.0.2.7:1"), "192.0.2.7 test");
  listener.trusted_proxies = {1, {*net::AddressRange::Parse("192.0.2.8"), *net::AddressRange::Parse("fd00::/8")}, {}};
  EXPECT_EQ(chain("192.0.2.7:1"), "192.0.2.7 test");
  EXPECT_EQ(chain("192.0.2.8:1"), "198.51.100.3, 192.0.2.8 inside");
  EXPECT_EQ(chain("[fd00::1]:1"), "198.51.100.3, [fd00::1] inside");
  EXPECT_EQ(chain("unix:"), "unix: test");
  listener.trusted_proxies = {1, {}, {"proxy.example.com"}};
  net::TlsPeer peer;
  peer.has_certificate = true;
  peer.names.dns = {"proxy.example.com"};
  peer.certificate_ends = time.clock.Now() + std::chrono::seconds(60);
  EXPECT_EQ(chain("192.0.2.8:1", &peer), "198.51.100.3, 192.0.2.8 inside");
  EXPECT_EQ(chain("192.0.2.8:1"), "192.0.2.8 test");
  Advance(std::chrono::seconds(60));
  EXPECT_EQ(chain("192.0.2.8:1", &peer), "192.0.2.8 test") << "its certificate has ended";
}

TEST_F(CallForwardingTest, AliasesGoWithTheNamesThatTheyStandFor) {
  forwarding.remove = {"x-user", "x-a-b"};
  claims = {"x-sub"};
  EXPECT_EQ(Forwarded({{"x_user", "root"},
                       {"x-user", "root"},
                       {"x_a-b", "1"},
                       {"x-a_b", "1"},
                       {"x_a_b", "1"},
                       {"x_sub", "root"},
                       {"x_forwarded_for", "192.0.2.1"},
                       {"x_forwarded_client_cert", "URI=a"},
                       {"x_users", "stays"}}),
            With(GrpcRequest(), {{"x_users", "stays"}}));
}

TEST_F(CallForwardingTest, TrailersHaveNothingThatAnyoneDecidesBy) {
  forwarding.remove = {"x-user"};
  routes[0].hash_by.metadata = "x-key";
  routes[0].access = {AccessRule{}};
  routes[0].access[0].metadata = {{"x-role", MetadataMatch::Kind::kExact, "admin"}};
  routes[0].access.push_back({AccessRule::Action::kAllow, {}, {}});
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Fields trailers;
  for (const char* name : {"x-forwarded-for",
                           "x-forwarded-proto",
                           "x-forwarded-host",
                           "x-forwarded-client-cert",
                           "forwarded",
                           "via",
                           "x-request-id",
                           "authorization",
                           "cookie",
                           "grpc-timeout",
                           "grpc-previous-rpc-attempts",
                           "grpc-encoding",
                           "grpc-status",
                           "traceparent",
                           "content-type",
                           "user-agent",
                           "x-user",
                           "x_user",
                           "x-key",
                           "x-role",
                           "x_role",
                           "x_request_id",
                           "grpc_timeout",
                           "sluice-reason",
                           "x-mine"}) {
    trailers.emplace_back(name, "1");
  }
  client.Send(Headers(1, Block(GrpcRequest())) + h2::Data(1, h2::Message("q")) + Headers(1, Block(trailers), kLast));
  Run();
  EXPECT_EQ(Up().streams[1].headers.back(), (Fields{{"x-mine", "1"}}));
}

TEST_F(CallForwardingTest, WithoutTheOptionTheFieldsAreMetadataAsAnyOther) {
  EXPECT_EQ(Forwarded(kLies), With(GrpcRequest(), kLies));
}

// A backend that reads them, perhaps because it is a Sluice too, must not read a client's.
TEST_F(CallForwardingTest, WhatTheProxySaysOfACallIsNotTheClientsToSay) {
  EXPECT_EQ(Forwarded({{"sluice-reason", "draining"},
                       {"x-mine", "1"},
                       {"sluice-cache", "hit"},
                       {"sluice-processed", "no"},
                       {"sluice-limit", "process/concurrency"},
                       {"sluice-waited", "1ms"}}),
            With(GrpcRequest(), {{"x-mine", "1"}}));
}

const std::vector<std::pair<uint16_t, uint32_t>> kProxied = {{0xf51c, 1}};

TEST_F(CallForwardingTest, EndpointsAreToldThatTheirClientIsAProxy) {
  Forwarded({});
  const h2::Frame settings = Up().frames.front();
  ASSERT_EQ(settings.type, h2::kSettings);
  EXPECT_NE(settings.payload.find(h2::Settings(kProxied).substr(9)), std::string::npos);
}

TEST_F(CallForwardingTest, HopsAreCountedFromTheSecondProxyOn) {
  EXPECT_EQ(Forwarded({}), GrpcRequest()) << "a plain client's calls carry nothing";
  client_->Send(h2::Settings(kProxied));
  EXPECT_EQ(Forwarded({{"x-mine", "1"}}), With(GrpcRequest(), {{"x-mine", "1"}, {"sluice-hops", "2"}}));
  EXPECT_EQ(Forwarded({{"sluice-hops", "2"}}), With(GrpcRequest(), {{"sluice-hops", "3"}}));
  EXPECT_EQ(Forwarded({{"sluice-hops", "many"}}), With(GrpcRequest(), {{"sluice-hops", "2"}}));
}

// A proxy of another kind between two of ours does not say that it is one, but passes the field on.
TEST_F(CallForwardingTest, HopsOfAnyClientAreCountedOn) {
  EXPECT_EQ(Forwarded({{"sluice-hops", "7"}}), With(GrpcRequest(), {{"sluice-hops", "8"}}));
  EXPECT_EQ(Forwarded({{"sluice-hops", "15"}}), With(GrpcRequest(), {{"sluice-hops", "16"}}));
  EXPECT_EQ(Forwarded({{"sluice-hops", "0"}}), GrpcRequest());
}

TEST_F(CallForwardingTest, ACallThatHasPassedSixteenProxiesGoesNowhere) {
  Forwarded({});
  const size_t before = Up().streams.size();
  for (const char* hops : {"16", "17", "4294967296", "99999999999999999999999"}) {
    next_ += 2;
    client_->Send(Headers(next_, Block(With(GrpcRequest(), {{"sluice-hops", hops}})), kLast));
    Run();
    EXPECT_EQ(client_->streams[next_].Value("grpc-status"), "13") << hops;
    EXPECT_EQ(client_->streams[next_].Value("sluice-reason"), "loop") << hops;
    EXPECT_EQ(client_->streams[next_].Value("sluice-processed"), "no") << hops;
  }
  EXPECT_EQ(Up().streams.size(), before);
}

}  // namespace
}  // namespace sluice::proxy
