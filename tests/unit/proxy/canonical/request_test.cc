// What a rule denies is not reached by another spelling of it, on any way to an answer.
#include "proxy/canonical/request.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::Headers;
using h2::kEndStream;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;

// Spellings that some server takes for "/pkg.Admin/Delete": one that decodes (net/http), one that cleans (connect-go),
// one that ignores case (ASP.NET), one that drops queries or parameters (Node.js, servlets).
const std::vector<std::string> kSpellings = {
    "/pkg.Admin/Delete?x",      "/pkg.Admin/Delete?",         "/pkg%2EAdmin/Delete",   "/pkg.Admin/%44elete",
    "/pkg.Admin%2fDelete",      "//pkg.Admin/Delete",         "/pkg.Admin//Delete",    "/x/../pkg.Admin/Delete",
    "/./pkg.Admin/Delete",      "/x/%2e%2e/pkg.Admin/Delete", "/PKG.admin/delete",     "/pkg.Admin/DELETE",
    "/pkg.admin/Delete",        "/pkg.Admin/Delete;a",        "/pkg.Admin;a=b/Delete", "/pkg.Admin/Delete/",
    "/pkg.Admin/Delete/.",      "/pkg.Admin\\Delete",         "/pkg.Admin/Delete%00",  "/pkg.Admin/Delete%20",
    "/pkg.Admin./Delete",       "/pkg.Admin/x/../Delete",     "/pkg.Admin/%2544elete", "/pkg.Admin/Delete%3fx",
    "/pkg.Admin/Delete%2f",     "/../pkg.Admin/Delete",       "/pkg%2eadmin/delete?x", "/%70kg.Admin/Delete",
    "///pkg.Admin///Delete///",
};
const std::vector<std::string> kAuthorities = {
    "admin.test.",
    "ADMIN.test",
    "Admin.Test.:443",
    "admin.test:",
    "admin.test:080",
    "admin.test..",
    "admin.test/",
    "admin.test?",
    "admin.test;",
    "admin.test,x",
    "admin.test:80:80",
    "admin%2etest",
    "admin.test\xff",
    "\xc3\xa4"
    "admin.test",
    "admin.test:x",
    "admin.test\\",
    "x,admin.test",
};

Fields To(const std::string& path, const std::string& authority = "test", const char* type = "application/grpc") {
  return {{":method", "POST"},       {":scheme", "http"},    {":path", path},
          {":authority", authority}, {"content-type", type}, {"te", "trailers"}};
}

class CanonicalRequestTest : public test::ProxyFixture {
 public:
  // A route that denies all, and one for the rest.
  CanonicalRequestTest() {
    routes.push_back(routes[0]);
    routes[0].name = "admin";
    routes[0].service = "pkg.Admin";
    routes[0].access = {AccessRule{}};
  }
  void Send(FramePeer& client, uint32_t id, const Fields& request) {
    client.Send(Headers(id, Block(request)) + Data(id, Message("q"), kEndStream));
    Run();
  }
  void ExpectRefused(FramePeer& client, uint32_t id, const std::string& what) {
    const std::string status = client.streams[id].Value("grpc-status");
    EXPECT_TRUE(status == "12" || status == "7" || status == "3") << what << ": " << status;
    EXPECT_TRUE(client.streams[id].end) << what;
    EXPECT_NE(client.streams[id].Value("sluice-reason"), "") << what;
  }
};

TEST_F(CanonicalRequestTest, NoSpellingOfADeniedPathArrives) {
  for (const bool method : {false, true}) {
    if (method) routes[0].method = "Delete";
    if (!method) Start({"10.0.0.1:1"});
    if (method) SetEndpoints({"10.0.0.1:1"});
    FramePeer& client = Client();
    uint32_t id = 1;
    for (const std::string& path : kSpellings) {
      for (const char* type :
           {"application/grpc", "application/grpc+proto", "Application/GRPC", "application/grpc-web"}) {
        Send(client, id, To(path, "test", type));
        if (std::string(type).ends_with("web")) {
          const std::string said = client.streams[id].Value(":status");
          EXPECT_TRUE(said == "404" || said == "403") << path << ": " << said;
        } else {
          ExpectRefused(client, id, path);
        }
        id += 2;
      }
    }
    EXPECT_FALSE(Connected("10.0.0.1:1"));
  }
}

// The same as a literal, in a repeated block and with a field behind it: what a run remembers says nothing of others.
TEST_F(CanonicalRequestTest, ARepeatedBlockIsRefusedEachTime) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  for (uint32_t id = 1; id < 12; id += 2) {
    Send(client, id, To("/pkg.Admin/Delete?x"));
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "12");
    EXPECT_EQ(client.streams[id].Value("sluice-reason"), "no_route");
    EXPECT_EQ(client.streams[id].Value("sluice-processed"), "no");
    EXPECT_EQ(client.streams[id].Value("grpc-message"),
              "the path of a gRPC call is /package.Service/Method, of letters, digits, _ and -, not "
              "/pkg.Admin/Delete?x");
  }
  EXPECT_EQ(metrics.errors[static_cast<size_t>(base::ErrorKind::kNoRoute)]->Value(), 6u);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}

TEST_F(CanonicalRequestTest, AListenerMayTakeAnyPathAndADeniedOneStaysDenied) {
  listener.paths = PathRule::kAny;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const std::string& path : kSpellings) {
    Send(client, id, To(path));
    ExpectRefused(client, id, path);
    id += 2;
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  Send(client, id, To("/v1/users/1?x=y"));
  EXPECT_EQ(Up().streams[1].Value(":path"), "/v1/users/1?x=y");
}

TEST_F(CanonicalRequestTest, PlainHttpPassesNoRuleByEither) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const std::string& path : kSpellings) {
    for (const char* type : {"application/json", "application/proto", "application/grpcish"}) {
      Send(client, id, To(path, "test", type));
      const std::string status = client.streams[id].Value(":status");
      EXPECT_TRUE(status == "404" || status == "403") << path << ": " << status;
      id += 2;
    }
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  for (const char* path : {"/", "/page?x=/pkg.Admin/Delete", "/a%20b/"}) {
    client.Send(
        Headers(id, Block({{":method", "GET"}, {":scheme", "http"}, {":path", path}, {":authority", "a"}}), kLast));
    Run();
    EXPECT_EQ(Up().streams.rbegin()->second.Value(":path"), path);
    id += 2;
  }
}

// Another case is another method to gRPC; where no rule guards it, that is the backend's to say.
TEST_F(CanonicalRequestTest, CaseCountsWhereNothingIsGuarded) {
  routes[0].access.clear();
  routes[0].method = "Delete";
  routes[1].service = "pkg.admin";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1, To("/pkg.admin/Delete"));
  EXPECT_EQ(Up().streams[1].Value(":path"), "/pkg.admin/Delete");
  Send(client, 3, To("/pkg.Admin/delete"));
  EXPECT_EQ(client.streams[3].Value("grpc-status"), "12");
  // A route that names the very spelling takes it, also beside a guarded one.
  routes[0].access = {AccessRule{}};
  routes[0].method = "";
  SetEndpoints({"10.0.0.1:1"});
  Send(client, 5, To("/pkg.admin/Delete"));
  EXPECT_EQ(Up().streams[3].Value(":path"), "/pkg.admin/Delete");
  Send(client, 7, To("/pkg.ADMIN/Delete"));
  EXPECT_EQ(client.streams[7].Value("grpc-status"), "12");
}

TEST_F(CanonicalRequestTest, ARateIsNotPassedByInAnotherCase) {
  routes[0].access.clear();
  routes[0].rate_limit.rate = 1;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1, To("/pkg.admin/Delete"));
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "12");
  EXPECT_EQ(
      client.streams[1].Value("grpc-message"),
      "no route for /pkg.admin/Delete: to some servers it is another spelling of a path that another route guards");
}

TEST_F(CanonicalRequestTest, NoSpellingOfADeniedAuthorityArrives) {
  routes[0].service = "";
  routes[0].authority = "Admin.test.";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  uint32_t id = 1;
  for (const std::string& authority : kAuthorities) {
    Send(client, id, To("/pkg.Service/Method", authority));
    ExpectRefused(client, id, authority);
    Fields by_host = To("/pkg.Service/Method", "");
    by_host.erase(by_host.begin() + 3);
    by_host.emplace_back("host", authority);
    Send(client, id + 2, by_host);
    ExpectRefused(client, id + 2, "host " + authority);
    id += 4;
  }
  EXPECT_FALSE(Connected("10.0.0.1:1"));
  EXPECT_NE(client.streams[21].Value("grpc-message").find(":authority is a host name or an address"),
            std::string::npos);
}

TEST_F(CanonicalRequestTest, EndpointsSeeWhatWasJudged) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1,
       With(To("/pkg.Service/Method", "Users.Test.:0443"), {{"host", "users.test.:0443"},
                                                            {"x_forwarded_for", "192.0.2.1"},
                                                            {"x-forwarded_client_cert", "URI=spiffe://corp/admin"},
                                                            {"grpc_timeout", "1S"},
                                                            {"x_request-id", "1"},
                                                            {"sluice_reason", "x"},
                                                            {"my_own-name", "stays"}}));
  const auto& seen = Up().streams[1];
  EXPECT_EQ(seen.Value(":authority"), "users.test:443");
  EXPECT_EQ(seen.Value("my_own-name"), "stays");
  for (const char* name :
       {"host", "x_forwarded_for", "x-forwarded_client_cert", "grpc_timeout", "x_request-id", "sluice_reason"}) {
    for (const auto& [field, value] : seen.headers[0]) EXPECT_NE(field, name);
  }
}

// One authority has one key in the cache, and a call that was moved is judged as any.
TEST_F(CanonicalRequestTest, AStoredAnswerIsThatOfEverySpelling) {
  routes[1].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  Send(client, 1, To("/pkg.Service/Method", "users.test"));
  Respond(Up(), 1, Message("answer"));
  Run();
  ASSERT_EQ(client.streams[1].data, Message("answer"));
  ASSERT_EQ(response_cache->stats().entries, 1u);
  uint32_t id = 3;
  for (const char* authority : {"users.test", "Users.Test", "users.test.", "users.test:"}) {
    Send(client, id, To("/pkg.Service/Method", authority));
    EXPECT_EQ(client.streams[id].data, Message("answer")) << authority;
    id += 2;
  }
  Send(client, id, To("/pkg.Service/Method?x", "users.test"));
  EXPECT_EQ(client.streams[id].Value("grpc-status"), "12");
  EXPECT_EQ(response_cache->stats().hits, 4u);
  EXPECT_FALSE(Up().streams.contains(3));
}

}  // namespace
}  // namespace sluice::proxy
