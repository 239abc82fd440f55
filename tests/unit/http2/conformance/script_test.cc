// The scripts of tests/support/conformance, run against a session of either role.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/conformance/all.h"
#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Script;
using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

void RunScript(Role role, const Script& script) {
  SessionHarness peer(role);
  peer.Handshake();
  if (role == Role::kServer) {
    peer.Request(1);
    peer.Request(3, h2::kEnd);
  } else {
    peer.Open();
    peer.Open(/*end_stream=*/true);
  }
  peer.Frames();
  peer.log.clear();
  const bool ok = peer.Feed(script.frames);
  const std::vector<std::string> said = peer.Said();
  switch (script.outcome) {
    case Script::Outcome::kConnection:
      EXPECT_FALSE(ok);
      ASSERT_FALSE(said.empty());
      EXPECT_THAT(said.back(), StartsWith("GOAWAY"));
      EXPECT_THAT(said.back(), EndsWith(" code=" + std::to_string(script.code)));
      EXPECT_TRUE(peer.Heard(1).reset && peer.Heard(3).reset);
      EXPECT_EQ(peer.session->open_streams(), 0u);
      EXPECT_FALSE(peer.Feed(h2::Ping(1)));  // 5.4.1: nothing more is taken
      EXPECT_THAT(peer.Said(), IsEmpty());
      return;
    case Script::Outcome::kStream:
      EXPECT_TRUE(ok) << peer.error;
      EXPECT_THAT(said,
                  ElementsAre("RST_STREAM[" + std::to_string(script.stream) + "] " + std::to_string(script.code)));
      for (uint32_t id : {1, 3}) EXPECT_EQ(peer.Heard(id).reset, script.stream == id) << id;
      break;
    case Script::Outcome::kFine:
      EXPECT_TRUE(ok) << peer.error;
      EXPECT_THAT(said, ElementsAreArray(script.said));
      EXPECT_FALSE(peer.Heard(1).reset || peer.Heard(3).reset);
      EXPECT_EQ(peer.session->open_streams(), 2u);
      break;
  }
  EXPECT_TRUE(peer.Feed(h2::Ping(1)));
  EXPECT_THAT(peer.Said(), ElementsAre("PING ack"));
}

class ServerScript : public ::testing::TestWithParam<Script> {};
TEST_P(ServerScript, HasItsOutcome) { RunScript(Role::kServer, GetParam()); }

class ClientScript : public ::testing::TestWithParam<Script> {};
TEST_P(ClientScript, HasItsOutcome) { RunScript(Role::kClient, GetParam()); }

std::string Name(const ::testing::TestParamInfo<Script>& info) { return info.param.name; }
using ::testing::ValuesIn;
INSTANTIATE_TEST_SUITE_P(Section4, ServerScript, ValuesIn(h2::Section4OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section5, ServerScript, ValuesIn(h2::Section5OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section6, ServerScript, ValuesIn(h2::Section6OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section8, ServerScript, ValuesIn(h2::Section8OfAClient()), Name);
INSTANTIATE_TEST_SUITE_P(Section4, ClientScript, ValuesIn(h2::Section4OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section5, ClientScript, ValuesIn(h2::Section5OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section6, ClientScript, ValuesIn(h2::Section6OfAServer()), Name);
INSTANTIATE_TEST_SUITE_P(Section8, ClientScript, ValuesIn(h2::Section8OfAServer()), Name);

// RFC 9113 8.1.1: a message that is known to be malformed from its headers on is never passed on.
class NeverSeenByAServer : public ServerScript {};
TEST_P(NeverSeenByAServer, IsNotShown) {
  SessionHarness server(Role::kServer);
  server.Handshake();
  server.Feed(GetParam().frames);
  EXPECT_THAT(server.log, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Section8, NeverSeenByAServer, ValuesIn(h2::MalformedRequests()), Name);

class NeverSeenByAClient : public ClientScript {};
TEST_P(NeverSeenByAClient, IsNotShown) {
  SessionHarness client(Role::kClient);
  client.Handshake();
  client.Open();
  client.Feed(GetParam().frames);
  EXPECT_THAT(client.log.back(), "1: reset PROTOCOL_ERROR protocol");
  // An interim response may have been shown before.
  EXPECT_THAT(client.log, Not(Contains(StartsWith("1: headers :status=2"))));
  EXPECT_THAT(client.Heard(1).data, IsEmpty());
}
INSTANTIATE_TEST_SUITE_P(Section8, NeverSeenByAClient, ValuesIn(h2::MalformedResponses()), Name);

}  // namespace
}  // namespace sluice::http2
