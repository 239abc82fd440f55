// Which clients may call what: each attempt to pass a route's rules is refused, on each way to an answer.
#include "proxy/call/access_gate.h"

#include <gtest/gtest.h>

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
using Kind = MetadataMatch::Kind;
using Action = AccessRule::Action;

AccessRule Allow(std::vector<std::string> clients, std::vector<MetadataMatch> metadata = {}) {
  AccessRule rule;
  rule.action = Action::kAllow;
  rule.clients = std::move(clients);
  rule.metadata = std::move(metadata);
  return rule;
}
AccessRule Deny(std::vector<MetadataMatch> metadata, uint8_t status = 7, std::string message = "") {
  AccessRule rule;
  rule.metadata = std::move(metadata);
  rule.status = status;
  rule.message = std::move(message);
  return rule;
}

class AccessGateTest : public test::ProxyFixture {
 public:
  // A connection whose client has shown this certificate, which ends after `left`.
  FramePeer& WithCertificate(net::TlsNames names, base::Nanos left = seconds(3600)) {
    net::TlsPeer peer;
    peer.has_certificate = true;
    peer.names = std::move(names);
    peer.certificate_ends = time.clock.Now() + left;
    return ClientOf(front(), "192.0.2.7:40000", {}, &peer);
  }
  void Send(FramePeer& client, uint32_t id, const Fields& more = {}) {
    client.Send(Headers(id, Block(With(GrpcRequest(), more))) + Data(id, Message("question"), h2::kEndStream));
    Run();
  }
  void ExpectDenied(FramePeer& client, uint32_t id, const char* status = "7") {
    EXPECT_EQ(client.streams[id].Value("grpc-status"), status) << id;
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "access_denied") << id;
    EXPECT_EQ(client.streams[id].Value("sluice-processed"), "no") << id;
    EXPECT_EQ(client.streams[id].data, "") << id;
  }
  void ExpectAllowed(FramePeer& client, uint32_t id) {
    Respond(Up(), static_cast<uint32_t>(Up().streams.rbegin()->first), "answer");
    Run();
    EXPECT_EQ(client.streams[id].data, "answer") << id;
  }
};

const net::TlsNames kApp{"app", {"app.example.com"}, {"spiffe://corp/ns/app"}, {}};

TEST_F(AccessGateTest, TheFirstRuleThatFitsDecidesAndNoneRefuses) {
  routes[0].access = {Deny({{"x-debug", Kind::kPresent, ""}}, 16, "no debugging"), Allow({"spiffe://corp/ns/*"}),
                      Allow({}, {{"x-team", Kind::kPrefix, "core"}})};
  Start({"10.0.0.1:1"});
  FramePeer& app = WithCertificate(kApp);
  Send(app, 1);
  ExpectAllowed(app, 1);
  Send(app, 3, {{"x-debug", "1"}});
  ExpectDenied(app, 3, "16");
  EXPECT_EQ(app.streams[3].Value("grpc-message"), "no debugging");
  FramePeer& plain = Client();
  Send(plain, 1);
  ExpectDenied(plain, 1);
  EXPECT_EQ(plain.streams[1].Value("grpc-message"), "no access rule of route r allows this call");
  Send(plain, 3, {{"x-team", "core-x"}});
  ExpectAllowed(plain, 3);
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kAccessDenied)]->Value(), 2u);
}

TEST_F(AccessGateTest, ADenialWithoutAMessageNamesItsRule) {
  routes[0].access = {Allow({"app.example.com"}), Deny({})};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1);
  ExpectDenied(client, 1);
  EXPECT_EQ(client.streams[1].Value("grpc-message"), "rule access[1] of route r denies this call");
}

// Attempts of a client that the rule does not name.
TEST_F(AccessGateTest, NoOtherClientIsTakenForTheOneThatIsAllowed) {
  routes[0].access = {Allow({"spiffe://corp/ns/app", "app.example.com", "CN=old-app"})};
  Start({"10.0.0.1:1"});
  const net::TlsNames attempts[] = {
      {},                                            // a certificate without a name
      {"app.example.com", {}, {}, {}},               // a DNS name as common name
      {"", {"CN=old-app"}, {}, {}},                  // a common name as DNS name
      {"", {"xapp.example.com"}, {}, {}},            // not the whole name
      {"", {"app.example.com.evil.org"}, {}, {}},    // more than the name
      {"", {"*.example.com"}, {}, {}},               // a certificate for many hosts
      {"", {}, {"spiffe://corp/ns/app/x"}, {}},      // below the name
      {"", {}, {"spiffe://corp/ns/../ns/app"}, {}},  // the name, when it is resolved
      {"", {}, {"SPIFFE://corp/ns/app"}, {}},        // in another case
      {"", {}, {}, {"app.example.com"}},             // in the place of an address
      {"old-app\n", {}, {}, {}},                     // with something behind
  };
  for (const net::TlsNames& names : attempts) {
    FramePeer& client = WithCertificate(names);
    Send(client, 1);
    ExpectDenied(client, 1);
  }
  FramePeer& plain = Client();
  Send(plain, 1, {{"x-forwarded-client-cert", "URI=spiffe://corp/ns/app"}});
  ExpectDenied(plain, 1);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  FramePeer& app = WithCertificate({"", {"APP.example.com"}, {}, {}});
  Send(app, 1);
  ExpectAllowed(app, 1);
}

TEST_F(AccessGateTest, ACertificateCountsUntilItEnds) {
  routes[0].access = {Allow({"app.example.com"})};
  Start({"10.0.0.1:1"});
  FramePeer& client = WithCertificate(kApp, seconds(60));
  Send(client, 1);
  ExpectAllowed(client, 1);
  Advance(seconds(60));
  Send(client, 3);
  ExpectDenied(client, 3);
}

// What is in doubt is denied: the end of a certificate lets no denied client in, nor does a name for many.
TEST_F(AccessGateTest, ADeniedClientStaysDenied) {
  AccessRule rule;
  rule.clients = {"spiffe://corp/mallory", "*.example.com", "spiffe://corp/x/*"};
  routes[0].access = {rule, Allow({})};
  Start({"10.0.0.1:1"});
  FramePeer& mallory = WithCertificate({"", {}, {"spiffe://corp/mallory"}, {}}, seconds(60));
  Send(mallory, 1);
  ExpectDenied(mallory, 1);
  Advance(seconds(60));
  Send(mallory, 3);
  ExpectDenied(mallory, 3);
  for (const net::TlsNames& names : {net::TlsNames{"", {"a.example.com"}, {}, {}},
                                     {"", {"*.example.com"}, {}, {}},
                                     {"", {}, {"spiffe://corp/y/../x/a"}, {}}}) {
    FramePeer& client = WithCertificate(names);
    Send(client, 1);
    ExpectDenied(client, 1);
  }
  FramePeer& app = WithCertificate({"", {"a.example.org"}, {"spiffe://corp/app"}, {}});
  Send(app, 1);
  ExpectAllowed(app, 1);
  FramePeer& plain = Client();
  Send(plain, 1);
  ExpectAllowed(plain, 1);
}

// Of two fields an endpoint may read the other one.
TEST_F(AccessGateTest, ASecondFieldOfTheNamePassesNoRuleBy) {
  routes[0].access = {Deny({{"x-mode", Kind::kExact, "admin"}}), Allow({}, {{"x-role", Kind::kExact, "reader"}})};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const Fields attempts[] = {{{"x-role", "reader"}, {"x-role", "writer"}},
                             {{"x-role", "writer"}, {"x-role", "reader"}},
                             {{"x-role", "reader,writer"}},
                             {{"x-role", "reader;x"}},
                             {{"x-role", "Reader"}},
                             {{"x-role", ""}},
                             {{"x-role2", "reader"}},
                             {{"x-role", "reader"}, {"x-mode", "user"}, {"x-mode", "admin"}},
                             {{"x-role", "reader"}, {"x-mode", "admin"}, {"x-mode", "user"}}};
  uint32_t id = 1;
  for (const Fields& fields : attempts) {
    Send(client, id, fields);
    ExpectDenied(client, id);
    id += 2;
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  Send(client, id, {{"x-role", "reader"}, {"x-role", "reader"}});
  ExpectAllowed(client, id);
}

TEST_F(AccessGateTest, WhatIsStoredOrUnderWayIsForThoseThatMayCall) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes[0].access = {Allow({"app.example.com"})};
  Start({"10.0.0.1:1"});
  FramePeer& app = WithCertificate(kApp);
  FramePeer& plain = Client();
  Send(app, 1);
  Send(plain, 1);  // the same key, while the fetch is under way
  ExpectDenied(plain, 1);
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, Message("answer")) +
            Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  EXPECT_EQ(app.streams[1].data, Message("answer"));
  ASSERT_EQ(response_cache->stats().entries, 1u);
  Send(plain, 3);  // in one read: where the fast path would answer
  ExpectDenied(plain, 3);
  plain.Send(Headers(5, Block(GrpcRequest())));
  Run();
  ExpectDenied(plain, 5);
  EXPECT_EQ(response_cache->stats().hits, 0u);
  Send(app, 3);
  EXPECT_EQ(app.streams[3].data, Message("answer"));
  EXPECT_EQ(response_cache->stats().hits, 1u);
}

// One server reads the first member of a list, one the last, one all of it; some read "x_role" as "x-role".
TEST_F(AccessGateTest, EachMemberOfAListAndEachAliasIsJudged) {
  routes[0].access = {Deny({{"x-role", Kind::kExact, "admin"}}), Deny({{"x-key-bin", Kind::kExact, "YWRtaW4="}}),
                      Allow({}, {{"x-scope", Kind::kPrefix, "read"}})};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  const Fields kDenied[] = {
      {{"x-role", "admin"}},           {{"x-role", "user,admin"}},
      {{"x-role", "admin , user"}},    {{"x-role", "user"}, {"x-role", "x,\tadmin"}},
      {{"x_role", "admin"}},           {{"x_role", "user,admin"}, {"x-role", "user"}},
      {{"x-key-bin", "YWRtaW4="}},     {{"x-key-bin", "YWRtaW4"}},
      {{"x-key-bin", "AAAA,YWRtaW4"}}, {{"x_key-bin", "YWRtaW4"}},
  };
  for (const Fields& fields : kDenied) {
    Send(client, id, With({{"x-scope", "read"}}, fields));
    ExpectDenied(client, id);
    id += 2;
  }
  const Fields kNotAllowed[] = {
      {},
      {{"x-scope", "reader,admin"}},
      {{"x-scope", "admin,read"}},
      {{"x-scope", "read"}, {"x-scope", "write"}},
      {{"x-scope", "read"}, {"x_scope", "write"}},
      {{"x_scope", "read"}},
      {{"x-scope", "read,"}},
  };
  for (const Fields& fields : kNotAllowed) {
    Send(client, id, fields);
    ExpectDenied(client, id);
    id += 2;
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  for (const Fields& fields : {Fields{{"x-scope", "read"}}, Fields{{"x-scope", "reader, read"}},
                               Fields{{"x-scope", "read"}, {"x-role", "administrator"}}}) {
    Send(client, id, fields);
    ExpectAllowed(client, id);
    id += 2;
  }
}

// A route that denies is found by any member; its calls are not the next route's.
TEST_F(AccessGateTest, ARouteIsFoundByAMemberOfAList) {
  routes.push_back(routes[0]);
  routes[0].name = "admin";
  routes[0].metadata = {{"x-role", Kind::kExact, "admin"}};
  routes[0].access = {Deny({})};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1, {{"x-role", "user,admin"}});
  ExpectDenied(client, 1);
  Send(client, 3, {{"x_role", "admin"}});
  ExpectDenied(client, 3);
  Send(client, 5, {{"x-role", "user"}});
  ExpectAllowed(client, 5);
}

TEST_F(AccessGateTest, ARequestThatIsNotGrpcIsForbidden) {
  routes[0].access = {Deny({})};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block({{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}}), kLast));
  Run();
  EXPECT_EQ(client.streams[1].Value(":status"), "403");
}

// Gates that have not changed are the same: a call that waits is asked by others only.
TEST(GatesOf, KeepsAGateWhoseRulesHaveNotChanged) {
  RouteOptions route;
  route.name = "r";
  EXPECT_EQ(GatesOf(route, nullptr), nullptr);
  route.access = {Allow({"a.example.com"})};
  const auto first = GatesOf(route, nullptr);
  ASSERT_EQ(first->size(), 1u);
  EXPECT_EQ((*GatesOf(route, first.get()))[0], (*first)[0]);
  route.access.push_back(Deny({}));
  EXPECT_NE((*GatesOf(route, first.get()))[0], (*first)[0]);
  route.access = {Allow({"a.example.com"})};
  route.name = "other";
  EXPECT_NE((*GatesOf(route, first.get()))[0], (*first)[0]);
}

TEST_F(AccessGateTest, ARouteTakesCallsOfItsListenersOnly) {
  routes.push_back(routes[0]);
  routes[0].name = "inside";
  routes[0].listeners = {"inside"};
  routes[1].access = {Deny({}, 5)};
  Start({"10.0.0.1:1"});
  listener.name = "inside";
  FramePeer& inside = Client();
  listener.name = "outside";
  FramePeer& outside = Client();
  Send(outside, 1);
  ExpectDenied(outside, 1, "5");
  Send(inside, 1);
  ExpectAllowed(inside, 1);
}

// Headers that are equal have one plan, but not on two listeners.
TEST_F(AccessGateTest, AHitIsOfTheRouteOfItsListener) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes.push_back(routes[0]);
  routes[0].name = "inside";
  routes[0].listeners = {"inside"};
  routes[1].access = {Deny({})};
  Start({"10.0.0.1:1"});
  listener.name = "inside";
  FramePeer& inside = Client();
  listener.name = "outside";
  FramePeer& outside = Client();
  Send(inside, 1);
  Up().Send(Headers(1, Block(h2::GrpcResponse())) + Data(1, Message("answer")) +
            Headers(1, Block(h2::GrpcTrailers()), kLast));
  Run();
  for (uint32_t id = 3; id < 9; id += 2) {
    Send(inside, id);
    EXPECT_EQ(inside.streams[id].data, Message("answer")) << id;
    Send(outside, id);
    ExpectDenied(outside, id);
  }
}

}  // namespace
}  // namespace sluice::proxy
