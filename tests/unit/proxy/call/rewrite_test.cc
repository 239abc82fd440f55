// What endpoints and clients see otherwise than it was sent: by the functions alone, and through a whole proxy.
#include "proxy/call/rewrite.h"

#include <gmock/gmock.h>

#include <string>

#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Block;
using h2::Data;
using h2::Fields;
using h2::GrpcRequest;
using h2::GrpcResponse;
using h2::GrpcTrailers;
using h2::Headers;
using h2::Message;
using h2::With;
using std::chrono::milliseconds;
using test::FramePeer;
using test::kLast;
using testing::Contains;
using testing::Not;
using testing::Pair;

http2::HeaderList ListOf(const Fields& fields) {
  http2::HeaderList out;
  for (const auto& [name, value] : fields) out.Add(name, value);
  return out;
}
Fields FieldsOf(const http2::HeaderList& list) {
  Fields out;
  for (const http2::Field* field : list) out.emplace_back(field->name(), field->value());
  return out;
}

// Some server reads "x_user" as "x-user".
TEST(Rewrite, AliasesOfWhatIsSetOrRemovedGo) {
  RewriteOptions options;
  options.request.set = {{"x-user", "us"}};
  options.request.remove = {"x-role"};
  EXPECT_EQ(FieldsOf(Rewritten(ListOf({{":path", "/"}, {"x_user", "a"}, {"x-user", "b"}, {"x_role", "c"}}), options)),
            (Fields{{":path", "/"}, {"x-user", "us"}}));
}

TEST(Rewrite, TheAuthorityIsInFrontAndTheOnlyOne) {
  const RewriteOptions options{.authority = "users.internal"};
  EXPECT_EQ(FieldsOf(Rewritten(ListOf({{":method", "POST"}, {":path", "/a/B"}, {":authority", "x"}, {"host", "x"}}),
                               options)),
            (Fields{{":authority", "users.internal"}, {":method", "POST"}, {":path", "/a/B"}}));
  EXPECT_EQ(FieldsOf(Rewritten(ListOf({{":method", "POST"}, {"host", "x"}}), options)),
            (Fields{{":authority", "users.internal"}, {":method", "POST"}}));
}

TEST(Rewrite, RemovesSetsAndAddsInThisOrder) {
  RewriteOptions options;
  options.request = {{"a", "gone"}, {{"b", "1"}, {"new", "2"}}, {{"a", "3"}, {"c", "4"}}};
  EXPECT_EQ(FieldsOf(Rewritten(ListOf({{":path", "/"}, {"a", "x"}, {"b", "x"}, {"c", "x"}, {"b", "y"}}), options)),
            (Fields{{":path", "/"}, {"c", "x"}, {"b", "1"}, {"new", "2"}, {"a", "3"}, {"c", "4"}}));
}

TEST(Rewrite, HowAFieldWasSentStays) {
  http2::HeaderList request;
  request.Add(":path", "/", http2::Indexing::kIndexed);
  request.Add("authorization", "secret", http2::Indexing::kNever);
  const http2::HeaderList out = Rewritten(request, RewriteOptions{.authority = "a"});
  EXPECT_EQ(out[1].indexing, http2::Indexing::kIndexed);
  EXPECT_EQ(out[2].indexing, http2::Indexing::kNever);
}

TEST(Rewrite, TrailersOnlyLoseFields) {
  RewriteOptions options;
  options.response = {{"x-a"}, {{"x-b", "1"}}, {{"x-c", "2"}}};
  http2::HeaderList trailers = ListOf({{"grpc-status", "0"}, {"x-a", "a"}, {"x-b", "b"}});
  RewriteTrailers(options, trailers);
  EXPECT_EQ(FieldsOf(trailers), (Fields{{"grpc-status", "0"}, {"x-b", "b"}}));
  http2::HeaderList headers = ListOf({{":status", "200"}, {"x-a", "a"}, {"x-b", "b"}});
  RewriteHeaders(options, headers);
  EXPECT_EQ(FieldsOf(headers), (Fields{{":status", "200"}, {"x-b", "1"}, {"x-c", "2"}}));
}

class CallRewriteTest : public test::ProxyFixture {
 public:
  CallRewriteTest() {
    RewriteOptions& rewrite = routes[0].rewrite;
    rewrite.authority = "users.internal";
    rewrite.request = {{"x-debug"}, {{"x-tenant", "gold"}}, {}};
    rewrite.response = {{"server"}, {{"x-served", "here"}}, {}};
  }
  Fields Request() { return With(GrpcRequest(), {{"x-debug", "1"}, {"x-tenant", "tin"}}); }
};

TEST_F(CallRewriteTest, EndpointsAndClientsSeeTheOtherFields) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(Request())) + Data(1, Message("q"), h2::kEndStream));
  Run();
  const Fields& seen = Up().streams[1].headers.at(0);
  EXPECT_EQ(seen[0], (std::pair<std::string, std::string>(":authority", "users.internal")));
  EXPECT_THAT(seen, Contains(Pair("x-tenant", "gold")).Times(1));
  EXPECT_THAT(seen, Not(Contains(Pair("x-debug", "1"))));
  EXPECT_EQ(Up().streams[1].data, Message("q"));
  Up().Send(Headers(1, Block(With(GrpcResponse(), {{"server", "s"}}))) + Data(1, Message("a")) +
            Headers(1, Block(With(GrpcTrailers(), {{"server", "s"}, {"x-end", "e"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[1].headers.at(0), With(GrpcResponse(), {{"x-served", "here"}}));
  EXPECT_EQ(client.streams[1].headers.at(1), With(GrpcTrailers(), {{"x-end", "e"}}));
}

TEST_F(CallRewriteTest, AResponseThatIsOneBlockIsItsHeaders) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(Request()), kLast));
  Run();
  Up().Send(Headers(1, Block(With(With(GrpcResponse(), GrpcTrailers("5")), {{"server", "s"}})), kLast));
  Run();
  EXPECT_EQ(client.streams[1].headers.at(0), With(With(GrpcResponse(), GrpcTrailers("5")), {{"x-served", "here"}}));
}

// By what the client has said: else it would be another call for its second attempt.
TEST_F(CallRewriteTest, AnotherAttemptIsRoutedByTheClientsFields) {
  routes[0].authority = "test";
  routes[0].metadata = {{"x-debug", MetadataMatch::Kind::kPresent, ""}};
  routes[0].retry.methods = RetryOptions::Methods::kAll;
  Start({"10.0.0.1:1", "10.0.0.2:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(Request()), kLast));
  Run();
  const std::string first = Holders({"10.0.0.1:1", "10.0.0.2:1"}).at(0);
  const std::string second = first == "10.0.0.1:1" ? "10.0.0.2:1" : "10.0.0.1:1";
  Up(first).Send(h2::RstStream(1, 2));
  Run();
  ASSERT_TRUE(Connected(second));
  const Fields& seen = Up(second).streams[1].headers.at(0);
  EXPECT_THAT(seen, Contains(Pair(":authority", "users.internal")).Times(1));
  EXPECT_THAT(seen, Contains(Pair("x-tenant", "gold")).Times(1));
  EXPECT_THAT(seen, Contains(Pair("grpc-previous-rpc-attempts", "1")));
  Respond(Up(second), 1, "a");
  Run();
  EXPECT_EQ(client.streams[1].Value("grpc-status"), "0");
}

TEST_F(CallRewriteTest, TheNextProxyHearsOfTheClientsHost) {
  forwarding.x_forwarded = true;
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(Headers(1, Block(Request()), kLast));
  Run();
  EXPECT_THAT(Up().streams[1].headers.at(0), Contains(Pair("x-forwarded-host", "test")));
}

// A stored response is one of the fields that it was answered to.
TEST_F(CallRewriteTest, RoutesThatTellOneClusterDifferentThingsShareNoResponse) {
  routes[0].cache.methods = {{"/pkg.Service/Method", milliseconds(10'000)}};
  routes[0].cache.shared = true;
  routes[0].metadata = {{"x-debug", MetadataMatch::Kind::kPresent, ""}};
  routes.push_back(routes[0]);
  routes[1].name = "r2";
  routes[1].metadata.clear();
  routes[1].rewrite.authority = "others.internal";
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  const auto ask = [&](uint32_t id, const Fields& fields) {
    client.Send(Headers(id, Block(fields)) + Data(id, Message("q"), h2::kEndStream));
    Run();
  };
  ask(1, Request());
  Respond(Up(), 1, Message("users"));
  Run();
  ask(3, GrpcRequest());
  ASSERT_TRUE(Up().streams.contains(3));
  Respond(Up(), 3, Message("others"));
  Run();
  ask(5, Request());
  ask(7, GrpcRequest());
  EXPECT_FALSE(Up().streams.contains(5));
  EXPECT_EQ(client.streams[5].data, Message("users"));
  EXPECT_EQ(client.streams[7].data, Message("others"));
  for (const uint32_t id : {1, 5})
    EXPECT_THAT(client.streams[id].headers.at(0), Contains(Pair("x-served", "here")).Times(1));
}

}  // namespace
}  // namespace sluice::proxy
