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
  forwarding.trusted_hops = 2;
  EXPECT_EQ(Forwarded(kLies), With(GrpcRequest(), Said("198.51.100.2, 198.51.100.3, 192.0.2.7", "https", "inside")));
  EXPECT_EQ(Forwarded({{"x-forwarded-for", "198.51.100.3"}}),
            With(GrpcRequest(), Said("198.51.100.3, 192.0.2.7", "http", "test")))
      << "a chain with fewer";
  EXPECT_EQ(Forwarded({{"x-forwarded-for", ""}, {"x-forwarded-for", ",,,10.0.0.1"}})[6].second, ",10.0.0.1, 192.0.2.7");
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

}  // namespace
}  // namespace sluice::proxy
