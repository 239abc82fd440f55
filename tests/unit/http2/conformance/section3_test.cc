// RFC 9113 3: how a connection starts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/h2_harness.h"

namespace sluice::http2 {
namespace {

using h2::Preface;
using h2::SessionHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

struct BadStart {
  std::string name, bytes;
};
void PrintTo(const BadStart& start, std::ostream* out) { *out << start.name; }
std::string Name(const ::testing::TestParamInfo<BadStart>& info) { return info.param.name; }

// First frames that are no SETTINGS. 3.4: that is an invalid preface, of either side.
std::vector<BadStart> FirstFrames() {
  return {
      {"Data", h2::Data(1, "x")},
      {"Headers", h2::Headers(1, h2::Block(h2::GrpcRequest()))},
      {"Priority", h2::RawFrame(h2::kPriority, 0, 1, "abcde")},
      {"Reset", h2::RstStream(1, 8)},
      {"SettingsAck", h2::SettingsAck()},
      {"SettingsOnAStream", h2::RawFrame(h2::kSettings, 0, 1, "")},
      {"PushPromise", h2::RawFrame(h2::kPushPromise, h2::kEndHeaders, 1, h2::Big(2, 4))},
      {"Ping", h2::Ping(1)},
      {"Goaway", h2::Goaway(0, 0)},
      {"WindowUpdate", h2::WindowUpdate(0, 1)},
      {"Continuation", h2::Continuation(1, "")},
      {"UnknownType", h2::RawFrame(0xaa, 0, 0, "")},
      {"UnknownTypeAboveTheSize", h2::RawFrame(0xaa, 0, 0, std::string(20000, 'x'))},
      {"Http1Response", "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"},
  };
}
std::vector<BadStart> ClientStarts() {
  std::vector<BadStart> out;
  for (const BadStart& start : FirstFrames()) out.push_back({start.name, Preface() + start.bytes});
  out.push_back({"Http1Request", "GET / HTTP/1.1\r\nHost: x\r\n\r\n"});
  out.push_back({"TlsHello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)});
  out.push_back({"SettingsWithoutThePreface", h2::Settings() + Preface()});
  return out;
}

void ExpectProtocolError(Role role, const std::string& bytes) {
  SessionHarness peer(role);
  peer.session->Start();
  EXPECT_FALSE(peer.Feed(bytes));
  EXPECT_THAT(peer.Said(), Contains("GOAWAY last=0 code=1"));
  EXPECT_THAT(peer.log, IsEmpty());
}

class ServerStart : public ::testing::TestWithParam<BadStart> {};
TEST_P(ServerStart, OfAnythingElseIsAProtocolError) { ExpectProtocolError(Role::kServer, GetParam().bytes); }
INSTANTIATE_TEST_SUITE_P(Section3, ServerStart, ::testing::ValuesIn(ClientStarts()), Name);

class ClientStart : public ::testing::TestWithParam<BadStart> {};
TEST_P(ClientStart, OfAnythingElseIsAProtocolError) { ExpectProtocolError(Role::kClient, GetParam().bytes); }
INSTANTIATE_TEST_SUITE_P(Section3, ClientStart, ::testing::ValuesIn(FirstFrames()), Name);

TEST(Section3, EveryByteOfTheClientsPrefaceCounts) {
  for (size_t i = 0; i < Preface().size(); ++i) {
    std::string bytes = Preface() + h2::Settings();
    bytes[i] ^= 0x20;
    ExpectProtocolError(Role::kServer, bytes);
  }
}

TEST(Section3, EmptySettingsAreEnough) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.session->Start();
    EXPECT_TRUE(peer.Feed((role == Role::kServer ? Preface() : "") + h2::Settings())) << peer.error;
    EXPECT_THAT(peer.Said(), Contains("SETTINGS ack"));
  }
}

TEST(Section3, OurSettingsComeFirstAndTheAcknowledgmentAfterThem) {
  for (Role role : {Role::kServer, Role::kClient}) {
    SessionHarness peer(role);
    peer.session->Start();
    peer.Feed((role == Role::kServer ? Preface() : "") + h2::Settings() + h2::Ping(1));
    EXPECT_THAT(peer.Said(), ElementsAre("SETTINGS", StartsWith("WINDOW_UPDATE[0]"), "SETTINGS ack", "PING ack"));
  }
}

// 3.4: a client need not wait for the server's preface; ours does not.
TEST(Section3, AClientsFirstBytesAreItsPrefaceThenSettings) {
  SessionHarness client(Role::kClient);
  client.session->Start();
  client.Open(true);
  std::string wire = client.Written();
  ASSERT_EQ(wire.substr(0, 24), Preface());
  wire.erase(0, 24);
  EXPECT_THAT(h2::Describe(h2::TakeFrames(wire)),
              ElementsAre("SETTINGS", StartsWith("WINDOW_UPDATE[0]"), HasSubstr("HEADERS[1]")));
}

TEST(Section3, AServerTakesWhatFollowsThePrefaceAtOnce) {
  SessionHarness server(Role::kServer);
  server.session->Start();
  EXPECT_TRUE(server.Feed(Preface() + h2::Settings() + h2::Headers(1, h2::Block(h2::GrpcRequest()))));
  EXPECT_THAT(server.log, ElementsAre(StartsWith("1: request")));
}

}  // namespace
}  // namespace sluice::http2
