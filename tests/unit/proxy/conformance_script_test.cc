// The scripts of tests/support/conformance through a whole proxy: what a bad client sends must not reach the
// backend, what a bad backend sends must become a status for the client, and neither may cost the other more.
#include <gmock/gmock.h>

#include <algorithm>

#include "support/conformance/all.h"
#include "support/proxy_fixture.h"

namespace sluice::proxy {
namespace {

using h2::Script;
using test::FramePeer;
using test::Heard;
using ::testing::AnyOf;
using ::testing::ValuesIn;

class ThroughTheProxy : public test::ProxyFixture, public ::testing::WithParamInterface<Script> {
 public:
  // The state of script.h: stream 1 open, stream 3 ended by the client, neither answered. Ids are equal on both sides.
  FramePeer& Begin() {
    Start({"10.0.0.1:1"});
    FramePeer& client = Client();
    client.Send(h2::Request(1));
    Run();
    client.Send(h2::Request(3, h2::kEnd));
    Run();
    EXPECT_TRUE(Seen(Up(), 1) && Seen(Up(), 3));
    return client;
  }
  static bool Seen(FramePeer& peer, uint32_t id) {
    return peer.streams.count(id) > 0 && !peer.streams[id].headers.empty();
  }
  static uint32_t Newest(FramePeer& peer) {
    uint32_t newest = 0;
    for (const auto& [id, stream] : peer.streams) newest = stream.headers.empty() ? newest : id;
    return newest;
  }
  // The backend answers, without content: a script may have closed a window.
  void ExpectServed(FramePeer& client, uint32_t id, FramePeer& up, uint32_t up_id) {
    up.Send(h2::Answer(up_id) + h2::Headers(up_id, h2::Block(h2::GrpcTrailers()), h2::kEnd));
    Run();
    EXPECT_EQ(client.streams[id].Value("grpc-status"), "0") << id;
    EXPECT_TRUE(client.streams[id].end) << id;
  }
  void ExpectOthersServed(FramePeer& client, uint32_t but) {
    for (uint32_t id : {1, 3}) {
      if (id != but) ExpectServed(client, id, Up(), id);
    }
  }
  // Of a block that came from the proxy alone.
  static bool OurOwn(const h2::Fields& fields) {
    return std::all_of(fields.begin(), fields.end(), [](const auto& field) {
      for (const char* name : {":status", "content-type", "grpc-status", "grpc-message", "sluice-reason",
                               "sluice-processed", "sluice-call-id"}) {
        if (field.first == name) return true;
      }
      return false;
    });
  }
};
std::string Name(const ::testing::TestParamInfo<Script>& info) { return info.param.name; }

class ClientOfTheProxy : public ThroughTheProxy {};

TEST_P(ClientOfTheProxy, DoesNoHarmToTheBackend) {
  const Script& script = GetParam();
  FramePeer& client = Begin();
  FramePeer& up = Up();
  const size_t gone_away = up.Count(h2::kGoaway);
  client.Send(script.frames);
  Run();
  if (script.outcome == Script::Outcome::kConnection) {
    ASSERT_NE(client.Last(h2::kGoaway), nullptr);
    EXPECT_EQ(client.Last(h2::kGoaway)->Word(4), script.code);
    EXPECT_TRUE(client.end);
    for (const auto& [id, stream] : up.streams) {  // whatever had begun is cancelled, and nothing of it ends well
      if (stream.headers.empty()) continue;
      EXPECT_EQ(stream.headers.size(), 1u) << id;
      EXPECT_EQ(stream.data, "") << id;
      EXPECT_EQ(stream.end, id == 3) << id;
      EXPECT_EQ(stream.reset, h2::kCancel) << id;
    }
  } else {
    EXPECT_FALSE(client.end);
    if (script.outcome == Script::Outcome::kStream) {
      EXPECT_EQ(client.streams[script.stream].reset, script.code);
      if (Seen(up, script.stream)) {
        Heard& stream = up.streams[script.stream];
        EXPECT_EQ(stream.reset, h2::kCancel);
        EXPECT_EQ(stream.headers.size(), 1u);
        EXPECT_EQ(stream.end, script.stream == 3);
      }
    }
    ExpectOthersServed(client, script.stream);
  }
  EXPECT_EQ(up.Count(h2::kGoaway), gone_away);
  EXPECT_FALSE(up.end);
  FramePeer& another = Client();
  another.Send(h2::Request(1, h2::kEnd));
  Run();
  ExpectServed(another, 1, up, Newest(up));
}
INSTANTIATE_TEST_SUITE_P(Section4, ClientOfTheProxy, ValuesIn(h2::Section4OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section5, ClientOfTheProxy, ValuesIn(h2::Section5OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section6, ClientOfTheProxy, ValuesIn(h2::Section6OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section8, ClientOfTheProxy, ValuesIn(h2::Section8OfAClient()), Name);

// RFC 9113 8.1.1: an intermediary must not forward a malformed request. Not even a connection is made for it.
class MalformedRequest : public ThroughTheProxy {};
TEST_P(MalformedRequest, NeverReachesABackend) {
  Start({"10.0.0.1:1"});
  FramePeer& client = Client();
  client.Send(GetParam().frames);
  Run();
  EXPECT_EQ(client.streams[5].reset, h2::kProtocolError);
  EXPECT_FALSE(Connected("10.0.0.1:1"));
}
INSTANTIATE_TEST_SUITE_P(Section8, MalformedRequest, ValuesIn(h2::MalformedRequests()), Name);

class BackendOfTheProxy : public ThroughTheProxy {};

TEST_P(BackendOfTheProxy, BecomesAStatusForTheClient) {
  const Script& script = GetParam();
  FramePeer& client = Begin();
  FramePeer& up = Up();
  up.Send(script.frames);
  Run();
  EXPECT_FALSE(client.end);
  EXPECT_EQ(client.Count(h2::kGoaway), 0u);
  if (script.outcome == Script::Outcome::kConnection) {
    ASSERT_NE(up.Last(h2::kGoaway), nullptr);
    EXPECT_EQ(up.Last(h2::kGoaway)->Word(4), script.code);
    EXPECT_TRUE(up.end);
    for (uint32_t id : {1, 3}) {
      EXPECT_THAT(client.streams[id].Value("grpc-status"), AnyOf("13", "14", "1")) << id;
      EXPECT_TRUE(client.streams[id].end) << id;
    }
    client.Send(h2::Request(5, h2::kEnd));
    Run();
    ASSERT_NE(&Up(), &up) << "no new connection";
    ExpectServed(client, 5, Up(), 1);
    return;
  }
  EXPECT_FALSE(up.end);
  if (script.outcome == Script::Outcome::kStream) {
    Heard& stream = client.streams[script.stream];
    EXPECT_EQ(up.streams[script.stream].reset, script.code);
    ASSERT_FALSE(stream.headers.empty());
    EXPECT_EQ(stream.Value("grpc-status"), "13");
    EXPECT_EQ(stream.Value("sluice-reason"), "upstream_protocol");
    EXPECT_TRUE(stream.end);
    EXPECT_TRUE(OurOwn(stream.headers.back()));
  }
  ExpectOthersServed(client, script.stream);
}
INSTANTIATE_TEST_SUITE_P(Section4, BackendOfTheProxy, ValuesIn(h2::Section4OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section5, BackendOfTheProxy, ValuesIn(h2::Section5OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section6, BackendOfTheProxy, ValuesIn(h2::Section6OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section8, BackendOfTheProxy, ValuesIn(h2::Section8OfAServer()), Name);

// RFC 9113 8.1.1: an intermediary must not forward a malformed response; a client sees our status and nothing else.
class MalformedResponse : public ThroughTheProxy {};
TEST_P(MalformedResponse, NeverReachesAClient) {
  FramePeer& client = Begin();
  Up().Send(GetParam().frames);
  Run();
  Heard& stream = client.streams[1];
  ASSERT_EQ(stream.headers.size(), 1u);
  EXPECT_EQ(stream.Value(":status"), "200");
  EXPECT_EQ(stream.Value("grpc-status"), "13");
  EXPECT_TRUE(OurOwn(stream.headers[0]));
  EXPECT_EQ(stream.data, "");
  EXPECT_TRUE(stream.end);
}
INSTANTIATE_TEST_SUITE_P(Section8, MalformedResponse, ValuesIn(h2::MalformedResponses()), Name);

}  // namespace
}  // namespace sluice::proxy
