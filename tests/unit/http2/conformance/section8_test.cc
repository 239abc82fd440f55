// RFC 9113 8: messages that are well-formed, and what is done with them; what is not stands in the scripts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/conformance/script.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Block;
using h2::Fields;
using h2::GrpcRequest;
using h2::Instead;
using h2::SessionHarness;
using h2::With;
using h2::Without;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct Good {
  const char* name;
  Fields fields;
};
void PrintTo(const Good& good, std::ostream* out) { *out << good.name; }

class GoodRequest : public ::testing::TestWithParam<Good> {};
TEST_P(GoodRequest, IsShown) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  for (uint32_t id = 1; id < 9; id += 2) {  // again: what is remembered of a block is not judged otherwise
    EXPECT_TRUE(server.Feed(h2::Headers(id, Block(GetParam().fields), h2::kEnd))) << server.error;
    EXPECT_TRUE(server.streams.count(id)) << id;
  }
  EXPECT_THAT(server.Said(), IsEmpty());
}
const Fields kGet = {{":method", "GET"}, {":scheme", "http"}, {":path", "/"}, {":authority", "a"}};
const Good kGoodRequests[] = {
    {"Plain", kGet},
    {"TeTrailers", With(kGet, {{"te", "trailers"}})},
    {"EmptyValue", With(kGet, {{"a", ""}})},
    {"HighBytesInAValue", With(kGet, {{"a", "v w\x80\xff"}})},
    {"ControlsInAValue", With(kGet, {{"a", "v\tw\x01"}})},
    {"AnyLegalName", With(kGet, {{"!#$%&'*+-.^_`|~09az", "v"}})},
    {"AnyLegalMethod", Instead(kGet, ":method", "X!#$%&'*+-.^_`|~09az")},
    {"AnyScheme", Instead(kGet, ":scheme", "Ab+-.9")},
    {"PathWithQuery", Instead(kGet, ":path", "/a/%20?b=/?:@!$&'()*+,;=")},
    {"PathWithHighBytes", Instead(kGet, ":path", "/\xc3\xa4")},
    {"EmptyAuthority", Instead(kGet, ":authority", "")},
    {"Ipv6Authority", Instead(kGet, ":authority", "[::1]:8080")},
    {"UserinfoOfAnotherScheme", Instead(Instead(kGet, ":scheme", "ftp"), ":authority", "user@a")},
    {"AtSignInThePath", Instead(kGet, ":path", "/user@a")},
    {"SameHost", With(kGet, {{"host", "a"}})},
    {"HostInOtherCase", With(kGet, {{"host", "A"}})},
    {"HostWithDefaultPort", With(kGet, {{"host", "a:80"}})},
    {"AuthorityWithDefaultPort", With(Instead(kGet, ":authority", "a:80"), {{"host", "a"}})},
    {"HostWithEmptyPort", With(kGet, {{"host", "a:"}})},
    {"HostWithDefaultPortOfHttps", With(Instead(kGet, ":scheme", "https"), {{"host", "a:443"}})},
    {"Ipv6HostWithDefaultPort", With(Instead(kGet, ":authority", "[::1]"), {{"host", "[::1]:80"}})},
    {"ContentLength0", With(kGet, {{"content-length", "0"}})},
    {"SameContentLengthTwice", With(kGet, {{"content-length", "0"}, {"content-length", "0"}})},
    {"Asterisk", {{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}}},
    {"CookieInParts", With(kGet, {{"cookie", "a=b"}, {"cookie", "c=d"}})},
};
INSTANTIATE_TEST_SUITE_P(Section8, GoodRequest, ::testing::ValuesIn(kGoodRequests),
                         [](const auto& info) { return std::string(info.param.name); });

std::string RequestOf(const Fields& fields) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, Block(fields), h2::kEnd));
  return server.log.empty() ? "" : server.log[0];
}

// 8.3.1: an intermediary constructs :authority, where the request has an authority.
TEST(Section8, AHostAloneBecomesTheAuthority) {
  EXPECT_EQ(RequestOf(With(Without(kGet, ":authority"), {{"x", "1"}, {"host", "b:1"}})),
            "1: request :method=GET, :scheme=http, :path=/, :authority=b:1, x=1, host=b:1 END");
  EXPECT_THAT(RequestOf(Without(kGet, ":authority")), Not(HasSubstr("authority")));
  EXPECT_THAT(RequestOf(With(Without(kGet, ":authority"), {{"host", ""}})), Not(HasSubstr("authority")));
  EXPECT_THAT(RequestOf({{":method", "OPTIONS"}, {":scheme", "http"}, {":path", "*"}, {"host", "b"}}),
              Not(HasSubstr("authority")));
}

// The same where the fields are in the tables, never indexed, and the block is one that came before.
TEST(Section8, AHostAloneBecomesTheAuthorityOfEveryRequest) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  const std::string block = std::string("\x83\x86\x84", 3) + std::string(
                                                                 "\x66\x01"
                                                                 "b"
                                                                 "\x10\x01s\x01t",
                                                                 8);
  for (uint32_t id = 1; id < 9; id += 2) {
    server.Feed(h2::Headers(id, block, h2::kEnd));
    ASSERT_EQ(server.log.size(), (id + 1) / 2) << server.error;
    EXPECT_THAT(server.log.back(), HasSubstr(":method=POST, :scheme=http, :path=/, :authority=b, host=b, s=t END"));
  }
}

// 8.5: we are no tunnel.
TEST(Section8, ConnectIsAnsweredWith501) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  const std::string connect = Block({{":method", "CONNECT"}, {":authority", "a:1"}});
  for (uint32_t id = 1; id < 9; id += 4) {
    server.Feed(h2::Headers(id, connect) + h2::Data(id, "x") + h2::Headers(id + 2, connect, h2::kEnd));
    const std::vector<h2::Frame> frames = server.Frames();
    ASSERT_EQ(frames.size(), 3u);
    EXPECT_EQ(frames[0].flags, h2::kEnd);
    EXPECT_THAT(frames[0].payload, HasSubstr("501"));
    EXPECT_EQ(Describe(frames[1]), "RST_STREAM[" + std::to_string(id) + "] 0");
    EXPECT_EQ(frames[2].stream, id + 2);
  }
  EXPECT_THAT(server.log, IsEmpty());
  EXPECT_EQ(server.session->open_streams(), 0u);
}

// 8.1.1: the sum of DATA without padding.
TEST(Section8, AContentLengthThatFitsIsTaken) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(h2::Headers(1, Block(With(GrpcRequest(), {{"content-length", "4"}}))) + h2::Data(1, "ab") +
              h2::Data(1, "") + h2::PaddedData(1, "cd", 9) + h2::Headers(1, Block({{"a", "b"}}), h2::kEnd));
  EXPECT_TRUE(server.Heard(1).end);
  EXPECT_EQ(server.Heard(1).data, "abcd");
}

// 8.1.1 and RFC 9110 6.4.1: responses that have a length and no content.
TEST(Section8, AResponseWithoutContentMayHaveALength) {
  for (const std::string& end :
       {std::string(), h2::Data(1, "", h2::kEndStream), h2::Headers(1, Block({{"a", "b"}}), h2::kEnd)}) {
    for (const std::string status : {"200", "204", "304"}) {
      SessionHarness client(Role::kClient);
      client.Handshake();
      client.Open(true, Instead(kGet, ":method", status == "200" ? "HEAD" : "GET"));
      client.Frames();
      client.Feed(h2::Headers(1, Block({{":status", status}, {"content-length", "5"}}),
                              end.empty() ? h2::kEnd : h2::kEndHeaders) +
                  end);
      EXPECT_TRUE(client.Heard(1).end) << status;
      EXPECT_FALSE(client.Heard(1).reset) << status;
    }
  }
}

TEST(Section8, AResponseToHeadHasNoContent) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open(true, Instead(kGet, ":method", "HEAD"));
  client.Frames();
  client.Feed(h2::Headers(1, Block({{":status", "200"}, {"content-length", "1"}})) + h2::Data(1, "x"));
  EXPECT_THAT(client.Said(), ElementsAre("RST_STREAM[1] 1"));
  EXPECT_EQ(client.Heard(1).data, "");
}

// 8.1: any number of interim responses, also in parts, then the final one.
TEST(Section8, InterimResponsesComeFirst) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  std::string frames;
  for (int i = 0; i < 20; ++i) {
    const std::string block = Block({{":status", std::to_string(102 + i)}, {"link", "x"}});
    frames += h2::Headers(1, block.substr(0, 4), 0) + h2::Continuation(1, block.substr(4));
  }
  client.Feed(frames + h2::Answer(1) + h2::Headers(1, Block(h2::GrpcTrailers()), h2::kEnd));
  EXPECT_EQ(client.log.size(), 22u);
  EXPECT_FALSE(client.Heard(1).reset);
}

// 8.1: what came before the reset that says "no more of the request" is the response.
TEST(Section8, ACompleteResponseSurvivesTheResetBehindIt) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  Stream& stream = client.Open();
  client.Feed(h2::Answer(1) + h2::Data(1, "whole", h2::kEndStream) + h2::RstStream(1, 0));
  EXPECT_THAT(client.log, ElementsAre(StartsWith("1: headers"), "1: data 5 END", "1: reset NO_ERROR peer"));
  EXPECT_EQ(client.Heard(1).data, "whole");
  EXPECT_EQ(stream.state(), StreamState::kClosed);
}

// 8.7: REFUSED_STREAM and a GOAWAY below a stream say that nothing of it was seen; so nothing of it may be.
TEST(Section8, NothingThatWasShownIsRefused) {
  SessionOptions options;
  options.concurrent_streams_max = 1;
  SessionHarness server(Role::kServer, options);
  server.Handshake();
  server.Request(1);
  server.Feed(h2::Headers(3, Block(GrpcRequest())) + h2::Data(3, "x"));
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[3] 7"));
  EXPECT_FALSE(server.streams.count(3));
  server.Release(1);
  server.Request(5);
  server.Release(5);
  EXPECT_THAT(server.Said(), ElementsAre("RST_STREAM[1] 8", "RST_STREAM[5] 8"));  // CANCEL: they were shown
  server.session->GoawayNow(ErrorCode::kNoError, "");
  EXPECT_THAT(server.Said(), ElementsAre("GOAWAY last=5 code=0"));
}

}  // namespace
}  // namespace sluice::http2
