// The client of a control plane and the sources that hear by it, against a server in this process. Time by hand.
#include "discovery/xds/ads_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "discovery/xds/stream_teller.h"
#include "discovery/xds/xds_source.h"
#include "integration/support/temp_dir.h"
#include "support/ads_server.h"
#include "support/captured_log.h"
#include "support/socket_worker.h"
#include "support/tls_certificates.h"

namespace sluice::discovery {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AdsServer;
using test::Assignment;
using test::EdsCluster;
using test::kClusterUrl;
using test::kEndpointsUrl;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// A source in a task of its own, and what it has said.
struct Heard {
  Bell bell;
  std::unique_ptr<XdsSource> source;
  bool over = false;
  std::vector<std::string> names;  // of the last list
  int lists = 0;
  std::vector<std::string> errors;

  static runtime::Task<void> Run(Heard& self) {
    while (!self.over) {
      runtime::Task<Answer> next = self.source->Next(base::kNever);
      const Answer answer = co_await std::move(next);
      if (const List* list = std::get_if<List>(&answer)) {
        ++self.lists;
        self.names.clear();
        for (const auto& endpoint : *list) self.names.push_back(endpoint.name);
      } else if (const auto* error = std::get_if<std::string>(&answer)) {
        self.errors.push_back(*error);
      }
    }
    self.source.reset();
  }
};

class AdsClientTest : public ::testing::Test {
 protected:
  AdsClientTest() {
    server.Put(EdsCluster("a"));
    server.Put(EdsCluster("b", "b-list"));
    server.Put(Assignment("a", {"10.0.0.1:1"}));
    server.Put(Assignment("b-list", {"10.0.0.2:1"}));
  }
  ~AdsClientTest() override {
    for (const auto& each : heard) {
      each->over = true;
      each->bell.Ring();
    }
    if (client != nullptr) client->Stop();
    time.Run();
    current.reset();
    time.runtime.Shutdown();
  }
  void Start(std::vector<std::string> servers = {}) {
    if (servers.empty()) servers = {server.target()};
    XdsBootstrap bootstrap;
    bootstrap.node.id = "node-1";
    for (const std::string& uri : servers) bootstrap.servers.push_back({.uri = uri});
    client = std::make_shared<AdsClient>(bootstrap);
    client->Start(time.runtime);
    time.Run();
  }
  Heard& Follow(const std::string& cluster) {
    Heard& one = *heard.emplace_back(std::make_unique<Heard>());
    one.source = std::make_unique<XdsSource>(client, XdsOptions{.resource = cluster}, one.bell);
    time.runtime.SpawnPinOnStart(Heard::Run(one));
    time.Run();
    return one;
  }
  void End(Heard& one) {
    one.over = true;
    one.bell.Ring();
    ASSERT_TRUE(Until([&] { return one.source == nullptr; }));
  }
  bool Until(const std::function<bool()>& done) {
    for (const auto until = std::chrono::steady_clock::now() + seconds(20); !done(); std::this_thread::yield()) {
      if (std::chrono::steady_clock::now() > until) return false;
      time.Run();
    }
    return true;
  }
  void Advance(base::Nanos by) {
    time.clock.Advance(by);
    time.Run();
  }
  // Time goes on until the client has a stream that the server knows.
  bool Reconnects() {
    const int before = server.streams_begun();
    return Until([&] {
      Advance(milliseconds(1));
      return server.streams_begun() > before;
    });
  }
  XdsResourceState StateOf(const std::string& url, const std::string& name) {
    for (const auto& each : client->Describe(time.clock.Now()).resources) {
      if (each.type_url == url && each.name == name) return each.state;
    }
    return XdsResourceState::kRequested;
  }

  AdsServer server;
  test::SocketWorker time;
  std::optional<runtime::Worker::ScopedCurrentForTest> current{time.worker};
  std::shared_ptr<AdsClient> client;
  std::vector<std::unique_ptr<Heard>> heard;
};

TEST_F(AdsClientTest, OneStreamServesAllClustersAndEachResponseIsAcked) {
  Start();
  Heard& a = Follow("a");
  Heard& b = Follow("b");
  ASSERT_TRUE(Until([&] { return a.lists > 0 && b.lists > 0; }));
  EXPECT_THAT(a.names, ElementsAre("10.0.0.1:1"));
  EXPECT_THAT(b.names, ElementsAre("10.0.0.2:1"));
  ASSERT_TRUE(Until([&] {
    return server.last(kClusterUrl).version == server.version(kClusterUrl) &&
           server.last(kEndpointsUrl).version == server.version(kEndpointsUrl);
  }));
  EXPECT_EQ(server.streams_begun(), 1);
  EXPECT_THAT(server.last(kEndpointsUrl).names, UnorderedElementsAre("a", "b-list"));
  const auto asked = server.asked();
  EXPECT_EQ(asked[0].node, "node-1");
  EXPECT_EQ(asked[0].type_url, kClusterUrl);
  for (size_t i = 1; i < asked.size(); ++i) EXPECT_EQ(asked[i].node, "") << "only the first request has it";
  for (const auto& each : asked) EXPECT_EQ(each.error, "");
  EXPECT_THAT(a.errors, IsEmpty());
  EXPECT_EQ(client->Describe(time.clock.Now()).stream, AdsStreamState::kConnected);
}

TEST_F(AdsClientTest, ChangesArePushedAndOnlyToThoseThatTheyConcern) {
  Start();
  Heard& a = Follow("a");
  Heard& b = Follow("b");
  ASSERT_TRUE(Until([&] { return a.lists > 0 && b.lists > 0; }));
  server.Put(Assignment("a", {"10.0.0.1:1", "10.0.0.3:1"}));
  ASSERT_TRUE(Until([&] { return a.names.size() == 2; }));
  server.Put(EdsCluster("a", "other"));
  server.Put(Assignment("other", {"10.0.0.4:1"}));
  ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.4:1"}; }));
  EXPECT_THAT(server.last(kEndpointsUrl).names, UnorderedElementsAre("b-list", "other"));
  EXPECT_THAT(b.names, ElementsAre("10.0.0.2:1"));
}

TEST_F(AdsClientTest, ABadListIsRefusedAndTheOthersAreTaken) {
  Start();
  Heard& a = Follow("a");
  Heard& b = Follow("b");
  ASSERT_TRUE(Until([&] { return a.lists > 0 && b.lists > 0; }));
  auto bad = Assignment("a", {"10.0.0.1:1"});
  bad.mutable_endpoints(0)->set_priority(9);
  server.Put(bad);
  ASSERT_TRUE(Until([&] { return !a.errors.empty(); }));
  EXPECT_THAT(a.errors[0], HasSubstr("endpoints[0].priority: 9; allowed: [0, 7]"));
  ASSERT_TRUE(Until([&] { return !server.last(kEndpointsUrl).error.empty(); }));
  EXPECT_THAT(server.last(kEndpointsUrl).error, HasSubstr("\"a\": endpoints[0].priority: 9; allowed: [0, 7]"));
  server.Put(Assignment("b-list", {"10.0.0.7:1"}));
  ASSERT_TRUE(Until([&] { return b.names == std::vector<std::string>{"10.0.0.7:1"}; }));
  EXPECT_THAT(a.names, ElementsAre("10.0.0.1:1"));
  EXPECT_THAT(b.errors, IsEmpty());
  const int lists = a.lists;
  server.Put(Assignment("a", {"10.0.0.1:1"}));
  ASSERT_TRUE(Until([&] { return a.lists > lists; })) << "the same list once more: the error is over";
  EXPECT_EQ(a.errors.size(), 1u);
}

TEST_F(AdsClientTest, AServerThatRestartsIsFoundAgainWithTheLastVersions) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  const std::string version = server.version(kEndpointsUrl);
  ASSERT_TRUE(Until([&] { return server.last(kEndpointsUrl).version == version; }));
  server.Stop();
  ASSERT_TRUE(Until([&] {
    Advance(milliseconds(1));
    return !a.errors.empty();
  }));
  EXPECT_THAT(a.errors[0], HasSubstr("the xDS server " + server.target() + " cannot be asked: UNAVAILABLE"));
  server.Start();
  ASSERT_TRUE(Reconnects());
  ASSERT_TRUE(Until([&] { return server.last(kEndpointsUrl).stream == server.streams_begun(); }));
  for (const auto& asked : server.asked()) {
    if (asked.stream != server.streams_begun() || !asked.nonce.empty()) continue;
    EXPECT_EQ(asked.version, server.version(asked.type_url)) << "of the stream before";
    EXPECT_EQ(asked.node, asked.type_url == kClusterUrl ? "node-1" : "");
  }
  server.Put(Assignment("a", {"10.0.0.8:1"}));
  ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.8:1"}; }));
}

TEST_F(AdsClientTest, AStreamThatEndsAfterAnAnswerIsNoError) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  server.EndStreams();
  ASSERT_TRUE(Reconnects());
  server.Put(Assignment("a", {"10.0.0.8:1"}));
  ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.8:1"}; }));
  EXPECT_THAT(a.errors, IsEmpty());
}

// A balancer in front of the server that lets no connection grow old.
TEST_F(AdsClientTest, StreamsThatFollowOnEachOtherAreOneLineOfTheLog) {
  test::CapturedLog log;
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  for (int i = 0; i < 5; ++i) {
    server.EndStreams();
    ASSERT_TRUE(Reconnects());
    server.Put(Assignment("a", {"10.0.0.8:" + std::to_string(i + 1)}));
    ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.8:" + std::to_string(i + 1)}; }));
    Advance(seconds(20));
  }
  EXPECT_EQ(log.Take(), "info xds: " + server.target() + " has answered\n");
  Advance(StreamTeller::kBetween);
  server.Stop();
  ASSERT_TRUE(Until([&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kBackoff; }));
  EXPECT_EQ(log.Take(), "");
  for (int i = 0; i < 20; ++i) {
    Advance(seconds(15));
    ASSERT_TRUE(Until([&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kBackoff; }));
  }
  EXPECT_THAT(log.Take(), ::testing::MatchesRegex("warning xds: no stream to " + server.target() + ": [^\n]*\n"));
}

// A server that knows the versions of the stream before may have nothing to say.
TEST_F(AdsClientTest, AServerThatHasNothingToSayIsNotAway) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  test::CapturedLog log;
  server.SetSilent(true);
  for (int i = 0; i < 5; ++i) {
    server.EndStreams();
    ASSERT_TRUE(Reconnects());
    for (int step = 0; step < 8; ++step) Advance(seconds(2));
    ASSERT_EQ(client->Describe(time.clock.Now()).stream, AdsStreamState::kConnected);
  }
  EXPECT_EQ(log.Take(), "");
  EXPECT_THAT(a.errors, IsEmpty());
}

// Each in its turn would be news each time, for each cluster.
TEST_F(AdsClientTest, TwoServersThatAreAwayAreOneError) {
  AdsServer second;
  server.Stop();
  second.Stop();
  Start({server.target(), second.target()});
  Heard& a = Follow("a");
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Until([&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kBackoff; }));
    Advance(seconds(20));
  }
  ASSERT_TRUE(Until([&] { return !a.errors.empty(); }));
  // Of the first alone, unless the second has failed before that was told; and of both.
  ASSERT_LE(a.errors.size(), 2u);
  for (const AdsServer* each : {&server, &second})
    EXPECT_THAT(a.errors.back(), HasSubstr("the xDS server " + each->target() + " cannot be asked: UNAVAILABLE"));
}

TEST_F(AdsClientTest, ASilentServerHasNothingAfterFifteenSeconds) {
  server.SetSilent(true);
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return server.streams_begun() == 1 && !server.asked().empty(); }));
  Advance(seconds(14));
  EXPECT_THAT(a.errors, IsEmpty());
  Advance(seconds(1));
  ASSERT_TRUE(Until([&] { return !a.errors.empty(); }));
  EXPECT_THAT(a.errors[0], HasSubstr("the cluster \"a\" does not exist on the server"));
  EXPECT_EQ(StateOf(kClusterUrl, "a"), XdsResourceState::kDoesNotExist);
  server.SetSilent(false);
  server.Put(EdsCluster("a"));
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
}

TEST_F(AdsClientTest, AClusterThatIsRemovedIsAnErrorAndComesBack) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  server.Remove(kClusterUrl, "a");
  ASSERT_TRUE(Until([&] { return !a.errors.empty(); }));
  EXPECT_THAT(a.errors[0], HasSubstr("the cluster \"a\" does not exist on the server"));
  EXPECT_EQ(a.lists, 1) << "no list, and not an empty one";
  server.Put(EdsCluster("a"));
  ASSERT_TRUE(Until([&] { return a.lists == 2; }));
}

TEST_F(AdsClientTest, TenThousandEndpointsAreRead) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < upstream::kEndpointsMax; ++i)
    addresses.push_back("10.0." + std::to_string(i / 250) + "." + std::to_string(i % 250) + ":1");
  server.Put(Assignment("a", addresses));
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.names.size() == upstream::kEndpointsMax; }));
}

TEST_F(AdsClientTest, WhatIsNoResponseEndsTheStream) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  server.SendBytes("\xff\xff\xff");
  ASSERT_TRUE(Reconnects());
  server.Put(Assignment("a", {"10.0.0.9:1"}));
  ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.9:1"}; }));
}

TEST_F(AdsClientTest, AskedAgainItSaysTheSameOnlyIfTheServerCouldTell) {
  Start();
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists == 1; }));
  a.source->Ask();
  a.bell.Ring();
  ASSERT_TRUE(Until([&] { return a.lists == 2; }));
  server.Stop();
  ASSERT_TRUE(Until([&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kBackoff; }));
  a.source->Ask();
  a.bell.Ring();
  time.Run();
  EXPECT_EQ(a.lists, 2) << "the server may have gone with what it said";
  ASSERT_TRUE(Until([&] {
    Advance(milliseconds(1));
    return !a.errors.empty();
  }));
}

TEST_F(AdsClientTest, WhatIsLackingIsAskedOfTheNextServerUntilTheFirstIsThere) {
  AdsServer second;
  second.Put(EdsCluster("a"));
  second.Put(Assignment("a", {"10.0.1.1:1"}));
  server.Stop();
  Start({server.target(), second.target()});
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  EXPECT_THAT(a.names, ElementsAre("10.0.1.1:1"));
  EXPECT_EQ(client->Describe(time.clock.Now()).server, 1u);
  EXPECT_THAT(client->Describe(time.clock.Now()).servers, ElementsAre(server.target(), second.target()));
  server.Start();
  Advance(AdsClient::kFirstServerEvery);
  ASSERT_TRUE(Until([&] { return a.names == std::vector<std::string>{"10.0.0.1:1"}; }));
  EXPECT_EQ(client->Describe(time.clock.Now()).server, 0u);
}

TEST_F(AdsClientTest, TheFirstServerIsAskedAgainAtOnceWhenTheNextOneGoesAway) {
  AdsServer second;
  second.Put(EdsCluster("a"));
  second.Put(Assignment("a", {"10.0.1.1:1"}));
  server.Stop();
  Start({server.target(), second.target()});
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  server.Start();
  second.Stop();
  ASSERT_TRUE(Until([&] {
    Advance(milliseconds(1));
    return a.names == std::vector<std::string>{"10.0.0.1:1"};
  }));
  EXPECT_EQ(client->Describe(time.clock.Now()).server, 0u);
}

TEST_F(AdsClientTest, WithoutClustersThereIsNoStream) {
  Start();
  EXPECT_EQ(server.streams_begun(), 0);
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  End(a);
  ASSERT_TRUE(Until([&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kNone; }));
  Heard& again = Follow("a");
  ASSERT_TRUE(Until([&] { return again.lists > 0; }));
  EXPECT_EQ(server.streams_begun(), 2);
}

TEST_F(AdsClientTest, FilesOfTlsThatCannotBeReadAreAnError) {
  XdsBootstrap bootstrap;
  bootstrap.servers = {{.uri = server.target(), .tls = true, .ca = "/nowhere/ca.pem"}};
  client = std::make_shared<AdsClient>(bootstrap);
  client->Start(time.runtime);
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return !a.errors.empty(); }));
  EXPECT_THAT(a.errors[0], HasSubstr("/nowhere/ca.pem: cannot be read: No such file or directory"));
}

TEST_F(AdsClientTest, ItSpeaksTlsWithCertificatesOfBothSides) {
  const test::TlsCert ca = test::MakeCert({.common_name = "ca", .authority = true});
  const test::TlsCert plane = test::MakeCert({.names = "IP:127.0.0.1"}, &ca);
  const test::TlsCert own = test::MakeCert({.common_name = "sidecar"}, &ca);
  grpc::SslServerCredentialsOptions options(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = ca.certificate_pem;
  options.pem_key_cert_pairs = {{plane.key_pem, plane.certificate_pem}};
  AdsServer secure(grpc::SslServerCredentials(options));
  secure.Put(EdsCluster("a"));
  secure.Put(Assignment("a", {"10.0.2.1:1"}));
  integration::TempDir dir;
  XdsBootstrap bootstrap;
  bootstrap.servers = {{.uri = secure.target(),
                        .tls = true,
                        .ca = dir.Write("ca", ca.certificate_pem),
                        .certificate = dir.Write("crt", own.certificate_pem),
                        .key = dir.Write("key", own.key_pem)}};
  client = std::make_shared<AdsClient>(bootstrap);
  client->Start(time.runtime);
  Heard& a = Follow("a");
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
  EXPECT_THAT(a.names, ElementsAre("10.0.2.1:1"));
}

TEST_F(AdsClientTest, CallsThatFailMakeItTryAgainSoon) {
  server.Stop();
  Start();
  Heard& a = Follow("a");
  const auto waits = [&] { return client->Describe(time.clock.Now()).stream == AdsStreamState::kBackoff; };
  for (int i = 0; i < 8; ++i) {  // the back-off grows
    ASSERT_TRUE(Until(waits));
    Advance(seconds(20));
  }
  ASSERT_TRUE(Until(waits));
  server.Start();
  Advance(seconds(1));
  a.source->Hurry();
  ASSERT_TRUE(Until([&] { return a.lists > 0; }));
}

}  // namespace
}  // namespace sluice::discovery
